"""The listening socket: opened on a port, closed with all connections, opened again on the same port."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

_BACKLOG = 1024


class Listener:
    """Accepts connections for one handler of requests.

    Args:
        server: aiohttp's low-level server.
        host: address to listen on.
        port: 0 for a free one; after the first `open` it is fixed.
    """

    def __init__(self, server: web.Server, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self._server = server
        self._accepting: asyncio.Server | None = None

    async def open(self) -> None:
        """Listens; idempotent.

        Raises:
            OSError: the port is taken.
        """
        if self._accepting is not None:
            return
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Without it the port could not be had again while connections of before are in TIME_WAIT.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.setblocking(False)
            self._accepting = await asyncio.get_running_loop().create_server(
                self._server, sock=listening, backlog=_BACKLOG
            )
        except BaseException:
            listening.close()
            raise
        self.port = listening.getsockname()[1]

    def close(self) -> None:
        """New connections are refused from now on; those that are open stay."""
        if self._accepting is not None:
            self._accepting.close()
            self._accepting = None

    def abort_connections(self) -> None:
        """Cuts every connection, without sending what is buffered."""
        for connection in list(self._server.connections):
            if connection.transport is not None:
                connection.transport.abort()

    def close_connections(self) -> None:
        """Closes every connection, after what is buffered has been sent."""
        for connection in list(self._server.connections):
            if connection.transport is not None:
                connection.transport.close()
