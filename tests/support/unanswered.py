"""Writes that a server has not answered, and what is aborted of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.transport import HttpRequest, Transport


class Unanswered:
    """A transport that carries some writes for ever, unless they are aborted.

    Args:
        transport: sends the other requests.
        carries: returns whether a request is one of these writes.

    Attributes:
        carried: the writes, by their paths.
        aborted: the paths of those that were aborted.
    """

    def __init__(self, transport: Transport, carries: Callable[[HttpRequest], bool]) -> None:
        self.carried: dict[str, asyncio.Future[None]] = {}
        self.aborted: set[str] = set()
        self._transport = transport
        self._carries = carries

    async def request(self, request: HttpRequest) -> Any:
        check = request.check
        if check is None or not self._carries(request):
            return await self._transport.request(request)
        check()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.carried[request.path] = future
        check.carrier = _Carrier(self, request.path)
        await future
        raise TransportError("aborted")

    async def aclose(self) -> None:
        for each in self.carried.values():
            each.cancel()


class _Carrier:
    def __init__(self, transport: Unanswered, path: str) -> None:
        self._transport = transport
        self._path = path

    def abort(self) -> None:
        self._transport.aborted.add(self._path)
        future = self._transport.carried[self._path]
        if not future.done():
            future.set_result(None)
