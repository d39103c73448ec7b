"""Slots: how many requests of a transport are under way at once.

A request occupies a slot from before its connection is opened until its response has been read or closed. Requests that
wait get slots in the order in which they came. Each lane of requests has slots of its own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aioinformer.errors import OptionError, TransportError

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest, Response, Sending, Transport

DEFAULT_REQUESTS = 64


class _Lane:
    def __init__(self, free: int) -> None:
        self.free = free
        self.waiting: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    async def wait(self) -> None:
        """Return when a slot has been handed over, in the order of the calls."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            self.waiting.pop(turn, None)
            if not turn.cancelled():  # it was handed over in the same moment
                self.release()
            raise

    def release(self) -> None:
        while self.waiting:
            turn, _ = self.waiting.popitem(last=False)
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1


class Slot:
    """The right to have one request under way. A slot that is dropped is released."""

    __slots__ = ("_lane",)

    def __init__(self, lane: _Lane | None) -> None:
        self._lane = lane

    def release(self) -> None:
        """Release the slot. May be repeated."""
        lane = self._lane
        self._lane = None
        if lane is not None:
            lane.release()

    __del__ = release


class InLane:
    """Sends the requests of a transport in one lane.

    Attributes:
        fresh: whether the next requests use new connections, as after a timeout; see `HttpRequest.fresh`.
    """

    def __init__(self, transport: Transport, lane: str) -> None:
        self._transport = transport
        self._lane = lane
        self.fresh = False

    async def request(self, request: HttpRequest) -> Response:
        return await self._transport.request(replace(request, lane=self._lane, fresh=self.fresh))


class Slots:
    """The slots of a transport: this number in each lane, None for no limit.

    Raises:
        OptionError: the limit is not a whole number of at least 1.
    """

    def __init__(self, limit: int | None) -> None:
        if limit is not None and (type(limit) is not int or limit < 1):
            raise OptionError(f"max_requests must be a whole number, at least 1, or None for no limit, not {limit!r}")
        self._limit = limit
        self._lanes: dict[str, _Lane] = {}

    async def acquire(self, request: HttpRequest, sending: Sending, seconds: float) -> Slot:
        """Return a slot for a request, at once for watches and followed logs, which need none; note the wait.

        Raises:
            TransportError: there was no slot in this number of seconds.
        """
        if self._limit is None or request.late_head or request.stream:
            return Slot(None)
        lane = self._lanes.get(request.lane) or self._lanes.setdefault(request.lane, _Lane(self._limit))
        if lane.free:
            lane.free -= 1
            return Slot(lane)
        clock = asyncio.get_running_loop().time
        begun = clock()
        sending.waited_for = f"one of {self._limit} slots"
        try:
            async with asyncio.timeout(seconds):
                await lane.wait()
            return Slot(lane)
        except TimeoutError:
            pass
        finally:
            sending.waited += clock() - begun
        failure = TransportError(f"{request.method} {request.path}: no answer within {seconds:g} s{sending}")
        failure.unsent = True
        raise failure
