"""A network in which all connections become silent, while new ones work, as behind a balancer that has died."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.loopback import forward, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class SilentLink:
    """Forwards connections to a server.

    Attributes:
        url: of the link.
        opened: how many connections there have been.
    """

    def __init__(self, server: str) -> None:
        self.url = ""
        self.opened = 0
        self._server = urlsplit(server)
        self._forwarding: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def started(self) -> AsyncIterator[SilentLink]:
        """Forward until the end of the block."""
        async with listening(self._serve) as url:
            self.url = url
            try:
                yield self
            finally:
                self._ended.set()
                self.silence()

    def silence(self) -> None:
        """Forward nothing more of the connections that are open. They stay open."""
        for task in self._forwarding:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        there, back = await asyncio.open_connection(self._server.hostname, self._server.port)
        both = {
            asyncio.create_task(forward(reader, back), name=f"connection {self.opened}: to the server"),
            asyncio.create_task(forward(there, writer), name=f"connection {self.opened}: to the client"),
        }
        self._forwarding |= both
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if any(each.cancelled() for each in both):
                await self._ended.wait()
        finally:
            self._forwarding -= both
            for each in both:
                each.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait(both)
            back.transport.abort()
