"""The listening socket: opened on a port, closed with all connections, opened again on the same port."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

#: The largest body that kube-apiserver takes, in bytes.
LARGEST_BODY = 3 * 1024 * 1024

_BACKLOG = 1024
# Go's limit is for all headers together; selectors of thousands of names come in one line.
_LONGEST_LINE = 1024 * 1024
_FAREWELL = 1.0


class Listener:
    """Accepts connections for one handler of requests.

    Args:
        handler: answers requests.
        host: address to listen on.
        port: 0 for a free one; after the first `open` it is fixed.
        tls: how to speak TLS, None for plain HTTP.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._handler = handler
        self._tls = tls
        self._server: web.Server | None = None
        self._accepting: asyncio.Server | None = None

    async def open(self) -> None:
        """Listens; idempotent.

        Raises:
            OSError: the port is taken.
        """
        if self._accepting is not None:
            return
        if self._server is None:
            # A handler whose client has gone is cancelled: an idle watch would not notice otherwise.
            loop = asyncio.get_running_loop()
            self._server = web.Server(
                self._handler,
                request_factory=partial(web.BaseRequest, loop=loop, client_max_size=LARGEST_BODY),
                handler_cancellation=True,
                access_log=None,
                max_line_size=_LONGEST_LINE,
                max_field_size=_LONGEST_LINE,
                auto_decompress=False,
            )
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            # Without it the port could not be had again while connections of before are in TIME_WAIT.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.setblocking(False)
            # A client that is gone does not say goodbye; a closed connection does not wait for it for long.
            farewell = None if self._tls is None else _FAREWELL
            self._accepting = await asyncio.get_running_loop().create_server(
                self._server, sock=listening, backlog=_BACKLOG, ssl=self._tls, ssl_shutdown_timeout=farewell
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
        for connection in self._connections():
            if connection.transport is not None:
                connection.transport.abort()

    def close_connections(self) -> None:
        """Closes every connection, after what is buffered has been sent."""
        for connection in self._connections():
            if connection.transport is not None:
                connection.transport.close()

    async def shutdown(self, patience: float) -> None:
        """Waits for answers that are under way, cancels them then, and closes every connection.

        Args:
            patience: seconds to wait.
        """
        if self._server is not None:
            await self._server.shutdown(patience)
        self.abort_connections()

    def _connections(self) -> list[web.RequestHandler]:
        return list(self._server.connections) if self._server is not None else []
