"""The aiohttp session of a transport: TLS contexts, connectors with TCP keepalive, and how a request is sent."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import ssl
import tempfile
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

import aiohttp

from aioinformer.errors import TransportError, UsageError
from aioinformer.logs import get_logger
from aioinformer.transport.auth.secret import Secret
from aioinformer.transport.auth.token_file import stamp_of
from aioinformer.transport.connections import Connector
from aioinformer.transport.proxies import SocksConnector

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from yarl import URL

    from aioinformer.transport import Sending
    from aioinformer.transport.auth.tokens import Credential
    from aioinformer.transport.proxies import Proxy

_log = get_logger("aioinformer.transport")

#: A part of a client certificate: the path of a file, or the PEM text.
_Part: TypeAlias = str | os.PathLike[str] | Secret

#: After 30 s of silence, four probes are sent, 15 s apart. The first option has another name on macOS. The last one (in
#: ms, Linux) limits the time for data that was sent and is not acknowledged.
_KEEPALIVE = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPALIVE", 30),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", 90_000),
)


@dataclass(frozen=True, slots=True)
class TLS:
    """How to verify the server, and which certificate the client has.

    Files are read again when they change. The fields with `_data` hold the PEM text itself, "" for none, and precede
    the files of the same name.

    Attributes:
        certificate_authority: file of PEM certificates to trust, None for those of the system.
        client_certificate: file with the client's certificate chain, None for none.
        client_key: file with its key, None if the certificate's file holds it.
        verify: False accepts any certificate for any name.
        strict: True refuses certificates that do not follow RFC 5280 to the letter, as Python does since 3.13
            (`ssl.VERIFY_X509_STRICT`). Many clusters have such certificates, and kubectl accepts them.
        server_name: name to verify and to send as SNI, None for the host of the URL.
        certificate_authority_data: PEM certificates to trust.
        client_certificate_data: the client's certificate chain, PEM.
        client_key_data: its key, PEM.
    """

    certificate_authority: str | os.PathLike[str] | None = None
    client_certificate: str | os.PathLike[str] | None = None
    client_key: str | os.PathLike[str] | None = None
    verify: bool = True
    strict: bool = False
    server_name: str | None = None
    certificate_authority_data: str = field(default="", repr=False)
    client_certificate_data: str = field(default="", repr=False)
    client_key_data: str = field(default="", repr=False)


class TLSContexts:
    """Makes the context for the next connection, and makes a new one when a file changes."""

    def __init__(self, tls: TLS) -> None:
        self.tls = tls
        self._lock = asyncio.Lock()
        self._context: ssl.SSLContext | None = None
        self._stamp: object = None

    async def context(self, credential: Credential) -> ssl.SSLContext:
        """Return the context for these settings, with the client certificate of the credential if it has one.

        While files are being replaced (a new certificate with the old key), the previous context is returned.

        Raises:
            UsageError: a file cannot be read or has invalid content; the message names it.
            TransportError: the certificate of the credential cannot be used.
        """
        stamp = self._stamp_with(credential)
        if self._context is not None and stamp == self._stamp:
            return self._context
        async with self._lock:
            stamp = self._stamp_with(credential)
            if self._context is None or stamp != self._stamp:
                try:
                    # Reading the system's bundle takes 20 ms and more.
                    self._context = await asyncio.to_thread(make_context, self.tls, credential)
                except (UsageError, TransportError) as error:
                    if self._context is None:
                        raise
                    _log.warning("TLS files have changed but cannot be used; keeping the previous ones: %s", error)
                self._stamp = stamp
            return self._context

    def _stamp_with(self, credential: Credential) -> tuple[object, ...]:
        tls = self.tls
        files = (tls.certificate_authority, tls.client_certificate, tls.client_key)
        return (*map(stamp_of, files), credential.certificate, credential.key)


def own_session(proxy: Proxy | None = None) -> aiohttp.ClientSession:
    """Return a session without a connection limit, without cookies, and with TCP keepalive. Needs a running loop.

    Args:
        proxy: used if it is a SOCKS proxy. An HTTP proxy is named in each request instead.
    """
    connector = connector_kind(proxy)(limit=0)
    note_connections(connector)
    session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
    # Otherwise aiohttp silently repeats a request if the server closes the connection without a response. The pace of
    # requests can be kept only if each of them is counted.
    session._retry_connection = False
    return session


def connector_kind(proxy: Proxy | None) -> Callable[..., aiohttp.TCPConnector]:
    """Return a function that makes connectors with TCP keepalive, through the proxy if it is a SOCKS proxy."""
    if proxy is not None and proxy.is_socks:
        return functools.partial(SocksConnector, proxy, _keep_alive)
    return functools.partial(Connector, socket_factory=_keepalive_socket)


async def send(
    method: str, request: Callable[[], Awaitable[aiohttp.ClientResponse]], sending: Sending, *, fresh: bool = False
) -> aiohttp.ClientResponse:
    """Send a request, and once more if the server had closed the pooled connection on which it was sent.

    Only GET requests are repeated. The session of a user would repeat PUT and DELETE, too: see `note_connections`.

    Args:
        request: sends the request. It is a function so that no local variable of this frame holds the request when an
            error is raised.
        fresh: whether it needs a new connection; see `HttpRequest`.
    """
    sending.handed = None  # until the connector is asked for a connection
    token = _SENDING.set(_Sent(sending, method, fresh))
    try:
        return await request()
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        if method != "GET" or not sending.reused:
            raise
    finally:
        _SENDING.reset(token)
    return await request()


def full_pool(session: aiohttp.ClientSession | None, server: URL) -> str:
    """Return which connection limit of a session is reached and what to do about it, "" if none is reached.

    Beyond the limit, requests of aiohttp wait without a message, and a watch returns its connection only at its end. If
    a connector does not show its connections, the result is "".
    """
    connector = None if session is None else session.connector
    if connector is None:
        return ""
    taken = len(getattr(connector, "_acquired", ()))
    by_host = getattr(connector, "_acquired_per_host", {})
    limit = connector.limit
    limit_per_host = connector.limit_per_host
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


def make_context(tls: TLS, credential: Credential) -> ssl.SSLContext:
    """Return a context for these settings; see `TLSContexts.context`. Reads files, and the system's bundle in 20 ms.

    Raises:
        UsageError: a file of the settings cannot be used.
        TransportError: the credentials' client certificate cannot be used.
    """
    context = _trusting(tls)
    context.set_alpn_protocols(["http/1.1"])
    if tls.strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    else:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate:
        if flaw := _load_chain(context, Secret(credential.certificate), Secret(credential.key)):
            raise TransportError(f"the credentials' client certificate cannot be used: {flaw}")
    elif tls.client_certificate is not None or tls.client_certificate_data:
        certificate = Secret(tls.client_certificate_data) or tls.client_certificate
        key = Secret(tls.client_key_data) or tls.client_key
        if flaw := _load_chain(context, certificate, key):
            names = (
                ("of client-certificate-data" if isinstance(certificate, Secret) else str(certificate)),
                ("of client-key-data" if isinstance(key, Secret) else str(key or "in the same file")),
            )
            raise UsageError(
                f"client certificate {names[0]} with key {names[1]} cannot be used: {flaw}; "
                "name readable PEM files that belong together"
            )
    return context


def _trusting(tls: TLS) -> ssl.SSLContext:
    source = f"certificate-authority file {tls.certificate_authority}"
    try:
        if tls.certificate_authority_data:
            source = "certificate-authority-data"
            return ssl.create_default_context(cadata=tls.certificate_authority_data)
        return ssl.create_default_context(cafile=tls.certificate_authority)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{source} cannot be used: {_reason(error)}; name a readable file of PEM certificates"
        ) from error


@contextmanager
def pem_file(text: Secret) -> Iterator[str]:
    """Write a PEM text to a file that only its owner can read, and delete it at the end of the block.

    On Linux, the file is in memory: containers may have no folder that can be written.
    """
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("pem"), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text.text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
        path = os.path.join(folder, "pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text.text)
        yield path


def _load_chain(context: ssl.SSLContext, certificate: _Part | None, key: _Part | None) -> str:
    """Load a client certificate, each part from a file or, for a `Secret`, from memory. Return what is wrong, or ""."""
    with ExitStack() as files:
        try:
            # OpenSSL requires files.
            paths = [
                files.enter_context(pem_file(part)) if isinstance(part, Secret) else part for part in (certificate, key)
            ]
            context.load_cert_chain(paths[0] or "", paths[1], password=no_password)
        except UnicodeError:
            return "not a PEM file"
        except (OSError, ValueError) as error:
            return _reason(error)
    return ""


def no_password() -> str:
    """Raise. Without this function, OpenSSL would ask for the password of an encrypted key on the terminal.

    Raises:
        ValueError: always.
    """
    raise ValueError("the key is encrypted, and there is no password")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "not a PEM file" if error.args else "not a PEM file"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


class _Sent:
    """A request that is sent: the report on it, its method, whether it needs a new connection, and aiohttp's form."""

    __slots__ = ("fresh", "method", "report", "request")

    def __init__(self, report: Sending, method: str, fresh: bool) -> None:
        self.report = report
        self.method = method
        self.fresh = fresh
        self.request: Any = None


#: What this task sends.
_SENDING: ContextVar[_Sent | None] = ContextVar("_SENDING", default=None)


def note_connections(connector: Any) -> None:
    """Let a connector report for each request when it has a connection, and whether that had been used before.

    A write that aiohttp repeats gets no connection. It repeats a request as another one, and middlewares the same one.

    aiohttp's tracing reports that, too, but makes each request a quarter more expensive. For a connector without
    `connect`, as sessions of tests have it, nothing is known.
    """
    connect = getattr(connector, "connect", None)
    if connect is None or hasattr(connect, "reports"):
        return
    used = WeakSet[Any]()

    async def connect_and_note(*arguments: Any, **options: Any) -> Any:
        sent = _SENDING.get()
        if sent is None:
            sending = None
        else:
            sending = sent.report
            request = arguments[0]
            if sent.method != "GET" and sent.request not in (None, request):
                raise aiohttp.ServerDisconnectedError
            sent.request = request
            if sending.handed is None:  # aiohttp may repeat a request that was handed over
                sending.handed = False
        connection = await connect(*arguments, **options)
        while sent is not None and sent.fresh and connection.protocol in used:
            connection.protocol.abort()
            connection.close()
            connection = await connect(*arguments, **options)
        if sending is not None:
            sending.handed = True
            sending.reused = connection.protocol in used
            if sending.reused:
                return connection
        used.add(connection.protocol)
        return connection

    connect_and_note.reports = True  # type: ignore[attr-defined]
    connector.connect = connect_and_note


def _keepalive_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol = address[:3]
    opened = socket.socket(family, kind, protocol)
    _keep_alive(opened)
    return opened


def _keep_alive(opened: socket.socket) -> None:
    """Close the connection if the peer has been gone for 90 s, whether or not data waits to be sent."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)


def _is_of(key: object, server: URL) -> bool:
    return (getattr(key, "host", None), getattr(key, "port", None)) == (server.raw_host, server.port)
