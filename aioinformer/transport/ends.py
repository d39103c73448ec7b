"""The end of a client or a server: all its connections are closed before the event loop ends.

aiohttp forgets a connection that it closes. Over TLS, it stays open until the peer has answered, for up to 30 s. If the
event loop ends meanwhile, Python warns about it.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds to wait for connections that were aborted: it takes a few iterations of the event loop.
ENDING: Final = 1.0


class OpenConnections:
    """The connections that are not closed. `add` one when it is made, and `discard` it when it is lost."""

    def __init__(self) -> None:
        #: The transports, and their sockets.
        self._sockets: dict[asyncio.Transport, Any] = {}
        #: Set when the last connection is lost, while `wait` waits for it.
        self._all_lost = asyncio.Event()

    def __iter__(self) -> Iterator[asyncio.Transport]:
        return iter(list(self._sockets))

    def add(self, transport: asyncio.Transport) -> None:
        """Note that a connection is open."""
        self._sockets[transport] = transport.get_extra_info("socket")

    def discard(self, transport: asyncio.Transport) -> None:
        """Note that a connection is lost."""
        self._sockets.pop(transport, None)
        if not self._sockets:
            self._all_lost.set()

    def abort(self) -> None:
        """Abort all connections."""
        for transport, wire in list(self._sockets.items()):
            transport.abort()
            # asyncio aborts no TLS connection that was closed twice, as aiohttp does. It notices the end of the socket.
            with suppress(OSError, TypeError):  # the sockets of uvloop, which needs no help, refuse it
                wire.shutdown(socket.SHUT_RDWR)

    async def wait(self, seconds: float = ENDING) -> None:
        """Wait until no connection is open, for some seconds at most."""
        if self._sockets:
            self._all_lost.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._all_lost.wait()
