"""The listening socket. It can be closed with all connections, and opened again on the same port."""

from __future__ import annotations

import os
import socket
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiohttp import web

from aioinformer.concurrency import running_loop
from aioinformer.testing.api import statuses
from aioinformer.testing.api.responses import media_type
from aioinformer.transport.ends import OpenConnections

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Awaitable, Callable

    from aioinformer.testing.access.authz import Access

#: The largest body that kube-apiserver accepts, in bytes.
LARGEST_BODY = 3 * 1024 * 1024

_BACKLOG = 1024
# Go limits all headers together; a selector of thousands of names comes in one line.
_LONGEST_LINE = 1024 * 1024
_FAREWELL = 1.0
_OPEN = frozenset({"healthz", "livez", "readyz", "version"})
_SAFE = frozenset({"GET", "HEAD"})


class Listener:
    """Accept connections for one request handler.

    Args:
        port: 0 for a free one; the first `open` fixes it.
        tls: the TLS context, None for plain HTTP.
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
        self._server: _Server | None = None
        self._accepting: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen. Idempotent.

        Raises:
            OSError: the port is taken.
            UsageError: no event loop of asyncio runs in this thread.
        """
        loop = running_loop("an API server for tests starts")
        if self._accepting is not None:
            return
        if self._server is None:
            # Cancel a handler whose client has disconnected: an idle watch would not notice otherwise.
            self._server = _Server(
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
            # Without it the port could not be reused while earlier connections are in TIME_WAIT. On Windows it can, and
            # there this option would let another server take over the port.
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.setblocking(False)
            # A client that has crashed does not close its side; do not wait long for it.
            farewell = None if self._tls is None else _FAREWELL
            self._accepting = await loop.create_server(
                self._server, sock=listening, backlog=_BACKLOG, ssl=self._tls, ssl_shutdown_timeout=farewell
            )
        except BaseException:
            listening.close()
            raise
        self.port = listening.getsockname()[1]

    def close(self) -> None:
        """Refuse new connections; open ones stay."""
        if self._accepting is not None:
            self._accepting.close()
            self._accepting = None

    def abort_connections(self) -> None:
        """Cut all connections without sending what is buffered."""
        if self._server is not None:
            self._server.open.abort()

    def close_connections(self) -> None:
        """Close all connections after sending what is buffered."""
        if self._server is not None:
            for transport in self._server.open:
                transport.close()

    async def shutdown(self, patience: float) -> None:
        """Wait for pending responses, then cancel them and close all connections."""
        if self._server is not None:
            await self._server.shutdown(patience)
            await self._server.open.wait(_FAREWELL)
            self._server.open.abort()
            await self._server.open.wait()


class _Server(web.Server):
    """aiohttp's server.

    Attributes:
        open: its connections, also those that aiohttp has closed and forgotten.
    """

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], **options: Any) -> None:
        super().__init__(handler, **options)
        self.open = OpenConnections()
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        self._transports[handler] = transport
        self.open.add(transport)
        super().connection_made(handler, transport)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self.open.discard(self._transports.pop(handler))
        super().connection_lost(handler, exc)


class OriginChecks:
    """Check each request before anything else.

    Args:
        host: address that the server listens on. On loopback, requests must name a host on loopback.
    """

    def __init__(self, host: str, access: Access) -> None:
        self._on_loopback = is_loopback(host)
        self._access = access

    def check(self, request: web.BaseRequest, path: str) -> None:
        """Check `Host`, `Origin` and credentials.

        Raises:
            StatusError: 403 for a foreign host or origin, 401 without a credential that is accepted.
        """
        if self._on_loopback:
            hosts = request.headers.getall("Host", [])
            if not hosts or not all(map(_names_loopback, hosts)):
                raise _foreign("Host", hosts)
            origins = request.headers.getall("Origin", [])
            if not all(map(_is_local_origin, origins)):
                raise _foreign("Origin", origins)
        if not self.is_open(request.method, path):
            self._access.authn.authenticated(request)

    @staticmethod
    def is_open(method: str, path: str) -> bool:
        """Return whether a request needs no credentials: health checks and the version."""
        return method in _SAFE and path.removeprefix("/").partition("/")[0] in _OPEN

    def check_json(self, request: web.BaseRequest) -> None:
        """Check that a body, if there is one, is declared as JSON: a form of a web page cannot do that."""
        if request.body_exists and media_type(request.headers.get("Content-Type", "")) != "application/json":
            raise statuses.unsupported_media_type(("application/json",))


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is on loopback: localhost, 127.0.0.0/8 or ::1."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and (address.version == 4 or host == "::1")


def _names_loopback(authority: str) -> bool:
    try:
        parts = urlsplit(f"//{authority}")
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return is_loopback(host) and authority.lower() in (shown, f"{shown}:", f"{shown}:{port}")


def _is_local_origin(origin: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and _names_loopback(authority)


def _foreign(header: str, values: list[str]) -> statuses.StatusError:
    if values:
        subject = f"{header} {', '.join(values)!r} is"
    else:
        subject = f"without {header} a request is"
    message = f"{subject} refused: this server answers requests to localhost, 127.0.0.0/8 and [::1] only"
    return statuses.StatusError(403, "Forbidden", message)
