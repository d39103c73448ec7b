"""Responses of the model server: bytes that arrive in pieces, late, or not at all, over connections that break."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from aioinformer.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.system.simulation.model_server import ModelServer
    from tests.system.simulation.watch import Watch

#: Separates two pieces that arrive at different times.
_APART = 1e-4


class Answer(ABC):
    """A response; implements `Response`.

    Attributes:
        closed: whether the client has closed it.
        broken: whether the connection broke.
        leave_alone: seconds of its header Retry-After.
    """

    def __init__(self, server: ModelServer, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.closed = False
        self.broken = False
        self.leave_alone = 0
        self._server = server
        self._waiter: asyncio.Future[None] | None = None

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._server.closed(self)
            self.wake()

    def break_off(self) -> None:
        """Break the connection; bytes in transit are lost."""
        self.broken = True
        self.wake()

    def wake(self) -> None:
        """Wake the response: there may be new events."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @abstractmethod
    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""

    async def sleep(self, until: float | None) -> None:
        """Wait until a time, or until there may be new events."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_at(until, self.wake) if until is not None else None
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    async def pause(self, seconds: float) -> None:
        """Wait, and raise if the connection breaks meanwhile."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self.broken and not self.closed and loop.time() < until:
            await self.sleep(until)
        self.check()

    def check(self) -> None:
        if self.broken:
            raise TransportError("the connection broke")
        if self.closed:
            raise TransportError("the answer was closed")

    async def pieces(self, data: bytes) -> AsyncIterator[bytes]:
        """Yield the data whole, or in pieces with random boundaries."""
        server, random = self._server, self._server.random
        dice = random.random()
        slow = server.strike("slow", self)
        bits = server.strike("bits", self)
        count = random.randint(8, 40) if bits else 1 if dice < 0.75 else random.randint(2, 4)
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(count - 1)) if data else []
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            await self._silence()
            if begin:
                await self.pause(slow.params["seconds"] if slow else _APART * random.randrange(3))
            self.check()
            if begin < end:
                yield data[begin:end]

    async def _silence(self) -> None:
        """Deliver nothing during a black hole; some connections never recover from it."""
        while (hole := self._server.strike("black_hole", self)) is not None:
            if self._server.random.random() < 0.5:
                await self.pause(1e6)
            await self.pause(hole.until - asyncio.get_running_loop().time())
        self.check()


class Body(Answer):
    """A response with a fixed body.

    Args:
        server: the model server.
        status: HTTP status.
        headers: HTTP headers.
        body: the complete body.
        ends: number of bytes after which the connection breaks or ends; None for all.
        verb: "list" or "watch".
    """

    def __init__(
        self,
        server: ModelServer,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        verb: str = "list",
        ends: tuple[int, bool] | None = None,
    ) -> None:
        super().__init__(server, status, headers)
        self.verb = verb
        self._body = body
        self._ends = ends

    async def chunks(self) -> AsyncIterator[bytes]:
        self.check()
        data = self._body if self._ends is None else self._body[: self._ends[0]]
        async for piece in self.pieces(data):
            yield piece
        if self._ends is not None and self._ends[1]:
            raise TransportError("the connection broke in the middle of the answer")


class Stream(Answer):
    """A response that continues until the watch ends."""

    verb = "watch"

    def __init__(self, server: ModelServer, watch: Watch) -> None:
        super().__init__(server, 200, {"Content-Type": "application/json"})
        self.watch = watch

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while True:
            self.check()
            data, end = self.watch.news(loop.time())
            if data:
                async for piece in self.pieces(data):
                    yield piece
            if end is not None:
                if end:
                    raise TransportError("the connection broke in the middle of a line")
                return
            if not data:
                await self.sleep(self.watch.next_at(loop.time()))
