"""The session that a transport makes for itself, and how requests go out on sessions."""

from __future__ import annotations

import functools
import socket
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import aiohttp

from aioinformer.transport.lean import lean_connector
from aioinformer.transport.socks import SocksConnector

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.transport.proxies import Proxy

#: Who reads the bodies of answers: aiohttp, or what stands beneath it; see `aioinformer.transport.lean`.
Reader: TypeAlias = Literal["lean", "aiohttp"]


def own_session(reader: Reader, proxy: Proxy | None = None) -> aiohttp.ClientSession:
    """A session without a limit of connections, without cookies, and with TCP keepalive. Needs a running loop.

    Args:
        reader: who reads bodies.
        proxy: used here if it speaks SOCKS; one that speaks HTTP is named in each request.
    """
    kind = connector_kind(proxy)
    session = aiohttp.ClientSession(
        connector=lean_connector(kind, limit=0) if reader == "lean" else kind(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        trace_configs=[_reuse_tracing()],
    )
    # aiohttp sends a request a second time, and tells nobody, when the server closes without an answer. Whoever paces
    # requests must know of each of them.
    session._retry_connection = False
    return session


def connector_kind(proxy: Proxy | None) -> Callable[..., aiohttp.TCPConnector]:
    """What makes connectors whose sockets have TCP keepalive, and lead through the proxy if that speaks SOCKS."""
    if proxy is not None and proxy.is_socks:
        return functools.partial(SocksConnector, proxy, _keep_alive)
    return functools.partial(aiohttp.TCPConnector, socket_factory=_keepalive_socket)


async def send(method: str, request: Callable[[object], Awaitable[aiohttp.ClientResponse]]) -> aiohttp.ClientResponse:
    """Sends a request, and once more if it went out on a connection from the pool that the server had closed.

    Args:
        method: of the request.
        request: sends it, with the `trace_request_ctx` that it is given. A function, so that nothing of the request is
            a local variable where errors pass.
    """
    connection = _Connection()
    try:
        return await request(connection)
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        if method != "GET" or not connection.reused:
            raise
    return await request(None)


#: After 30 s of silence the peer is asked four times, 15 s apart. The first option has another name on macOS; the last
#: (in ms, Linux) does the same for what was sent and never acknowledged.
_KEEPALIVE = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPALIVE", 30),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", 90_000),
)


class _Connection:
    """What became known of the connection of one request: whether it had been used before."""

    def __init__(self) -> None:
        self.reused = False


def _reuse_tracing() -> aiohttp.TraceConfig:
    async def note(session: aiohttp.ClientSession, context: Any, params: Any) -> None:
        if isinstance(context.trace_request_ctx, _Connection):
            context.trace_request_ctx.reused = True

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(note)
    return tracing


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol = address[:3]
    opened = socket.socket(family, kind, protocol)
    _keep_alive(opened)
    return opened


def _keep_alive(opened: socket.socket) -> None:
    """Notice a peer that is gone after 90 s, whether data waits to be sent or not."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
