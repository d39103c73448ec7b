"""The session that a transport makes for itself, and how requests go out on sessions."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import ssl
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import aiohttp

from aioinformer.errors import TransportError, UsageError
from aioinformer.logs import get_logger
from aioinformer.transport.auth.token_file import stamp_of
from aioinformer.transport.proxies import SocksConnector
from aioinformer.transport.streaming import lean_connector

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from yarl import URL

    from aioinformer.transport.auth.tokens import Credential
    from aioinformer.transport.proxies import Proxy

_log = get_logger("aioinformer.transport")

#: Who reads the bodies of answers: aiohttp, or what stands beneath it; see `aioinformer.transport.streaming`.
Reader: TypeAlias = Literal["lean", "aiohttp"]

#: After 30 s of silence the peer is asked four times, 15 s apart. The first option has another name on macOS; the last
#: (in ms, Linux) does the same for what was sent and never acknowledged.
_KEEPALIVE = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPALIVE", 30),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", 90_000),
)


@dataclass(frozen=True, slots=True)
class TLS:
    """How the server is verified, and what the client shows.

    Attributes:
        certificate_authority: file of PEM certificates to trust, None for those of the system.
        client_certificate: file with the client's certificate chain, None for none.
        client_key: file with its key, None if the certificate's file holds it.
        verify: False accepts any certificate for any name.
        strict: True refuses certificates that do not follow RFC 5280 to the letter, as Python does since 3.13
            (`ssl.VERIFY_X509_STRICT`). Many clusters have such certificates, and kubectl takes them.
        server_name: name to verify and to send as SNI in place of the URL's host, None for the latter.
    """

    certificate_authority: str | os.PathLike[str] | None = None
    client_certificate: str | os.PathLike[str] | None = None
    client_key: str | os.PathLike[str] | None = None
    verify: bool = True
    strict: bool = False
    server_name: str | None = None


class TLSContexts:
    """Hands out the context for the next connection."""

    def __init__(self, tls: TLS) -> None:
        self.tls = tls
        self._lock = asyncio.Lock()
        self._context: ssl.SSLContext | None = None
        self._stamp: object = None

    async def context(self, credential: Credential) -> ssl.SSLContext:
        """The context for these settings, with the credential's client certificate if it has one.

        While files are being replaced (a certificate beside the old key), the context before is used.

        Raises:
            UsageError: a file cannot be read or is not what it should be; the message names it.
            TransportError: the credential's certificate is not usable.
        """
        stamp = self._stamp_with(credential)
        if self._context is not None and stamp == self._stamp:
            return self._context
        async with self._lock:
            stamp = self._stamp_with(credential)
            if self._context is None or stamp != self._stamp:
                try:
                    # Reading the system's bundle takes 20 ms and more.
                    self._context = await asyncio.to_thread(_make_context, self.tls, credential)
                except (UsageError, TransportError) as error:
                    if self._context is None:
                        raise
                    _log.warning("the TLS files have changed but cannot be used, the former are kept: %s", error)
                self._stamp = stamp
            return self._context

    def _stamp_with(self, credential: Credential) -> tuple[object, ...]:
        tls = self.tls
        files = (tls.certificate_authority, tls.client_certificate, tls.client_key)
        return (*map(stamp_of, files), credential.certificate, credential.key)


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


def full_pool(session: aiohttp.ClientSession | None, server: URL) -> str:
    """Return which limit of a session's connector is reached and what to do about it, "" if there is one left.

    aiohttp lets requests beyond the limit wait in silence, and a watch gives its connection back when it ends. Where a
    connector does not tell what it has handed out, the answer is "".
    """
    connector = None if session is None else session.connector
    if connector is None:
        return ""
    taken = len(getattr(connector, "_acquired", ()))
    by_host = getattr(connector, "_acquired_per_host", {})
    limit, limit_per_host = connector.limit, connector.limit_per_host
    if limit and taken >= limit:
        reached = f"limit={limit}"
    elif limit_per_host and any(len(each) >= limit_per_host for key, each in by_host.items() if _is_of(key, server)):
        reached = f"limit_per_host={limit_per_host}"
    else:
        return ""
    return (
        f"all connections that {reached} allows to the connector of the borrowed session are in use, and each watch "
        "holds one; make it with aiohttp.TCPConnector(limit=0, limit_per_host=0), or leave out session="
    )


def _make_context(tls: TLS, credential: Credential) -> ssl.SSLContext:
    authority = tls.certificate_authority
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"certificate-authority file {authority} cannot be used: {_reason(error)}; "
            "name a readable file of PEM certificates"
        ) from error
    context.set_alpn_protocols(["http/1.1"])
    if tls.strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    else:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate:
        _load_pem(context, credential)
    elif tls.client_certificate is not None:
        try:
            context.load_cert_chain(tls.client_certificate, tls.client_key, password=_no_password)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"client certificate {tls.client_certificate} with key {tls.client_key or 'in the same file'} "
                f"cannot be used: {_reason(error)}; name readable PEM files that belong together"
            ) from error
    return context


def _load_pem(context: ssl.SSLContext, credential: Credential) -> None:
    """Loads a certificate from memory. OpenSSL wants files; they are the owner's alone, and gone at once."""
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
        certificate, key = os.path.join(folder, "certificate"), os.path.join(folder, "key")
        try:
            for path, name in ((certificate, "certificate"), (key, "key")):
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(getattr(credential, name))  # no local variable, which a traceback could show
            context.load_cert_chain(certificate, key, password=_no_password)
        except UnicodeError:
            flaw = "not a PEM file"
        except (OSError, ValueError) as error:
            flaw = _reason(error)
        else:
            return
    raise TransportError(f"the credentials' client certificate cannot be used: {flaw}")


def _no_password() -> str:
    """Without this OpenSSL would ask for the password of an encrypted key on the terminal, and wait."""
    raise ValueError("the key is encrypted, and there is no password")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "not a PEM file" if error.args else "not a PEM file"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


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


def _is_of(key: object, server: URL) -> bool:
    return (getattr(key, "host", None), getattr(key, "port", None)) == (server.raw_host, server.port)
