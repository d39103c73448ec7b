"""The transport over an aiohttp session: it needs a URL, and can borrow a session of the application.

Rules that are easy to break:

* A stream has no total timeout and no read timeout: only the reader knows how long silence may last. The times for the
  connection and for the head of the response are limited.
* aiohttp closes the connection of a chunk that is not valid, and leaves its reader waiting. Therefore the transport
  looks at the connections of its responses now and then, by one timer for all.
* No status is an error here. Redirects are not followed, because a token must go to its own server only. The
  environment is read for proxies once; aiohttp's `trust_env` would read it for each request, at 0.5 ms each.
* No frame that can raise holds a token in plain text: local variables hold headers and tokens in types whose `repr`
  hides them.
"""

from __future__ import annotations

import asyncio
import os
import ssl as ssl_module
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, urlencode
from weakref import WeakSet

import aiohttp
from msgspec.structs import replace
from yarl import URL

from aioinformer.concurrency import running_loop
from aioinformer.errors import TransportError, UsageError
from aioinformer.exports import package_version
from aioinformer.logs import get_logger
from aioinformer.transport import HttpRequest, Sending
from aioinformer.transport.auth.refusals import Owner, explanation
from aioinformer.transport.auth.secret import PrivateHeaders, Secret
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.auth.tokens import Credential, Credentials, FixedCredentials, bearer_flaw, close, obtain
from aioinformer.transport.checked_writes import CheckedBody, WriteCarrier
from aioinformer.transport.connections import HttpResponse, StreamBody
from aioinformer.transport.failures import authority, transport_error
from aioinformer.transport.messages import Counting
from aioinformer.transport.proxies import environment_proxy, proxy_of
from aioinformer.transport.session import TLS, TLSContexts, full_pool, note_connections, own_session, send
from aioinformer.transport.slots import DEFAULT_REQUESTS, Slots

if TYPE_CHECKING:
    from collections.abc import Awaitable


_log = get_logger("aioinformer.transport")

READ_BUFFER = 128 * 1024
STREAM_BUFFER = 1024 * 1024
"""Bytes that may wait for the reader of a body, and of a stream. At twice as many, reading from the socket pauses until
the reader catches up, and each pause of a stream costs as much as several events."""

_NO_TYPE: Final = ("Content-Type",)
_UNLIMITED: Final = nullcontext()
#: The least time for a request after its wait for a slot, in seconds: 0 would mean no limit to aiohttp.
_LEAST: Final = 0.001

_CHECK_EVERY: Final = 2.2
"""Seconds between two looks at the connections of responses. The second one fails a body without a connection."""


class HttpTransport:
    """Talks to one API server over aiohttp. Use it as an async context manager, or call `aclose()` at the end.

    New requests use the current credentials and TLS files, also after rotation. Without `session`, the first request
    makes a session without a limit of connections (each watch holds one), with TCP keepalive, and with the proxies of
    the environment: `HTTPS_PROXY` for https, `HTTP_PROXY` for http, and `NO_PROXY`, with the rules of Go. Loopback is
    never proxied.

    Args:
        base_url: "https://host:6443", with a path if the API is below one.
        session: a session to borrow, which is never closed. Its connection limit, proxies, TLS and cookies apply. Each
            watch holds a connection: make its connector with `limit=0`.
        headers: sent with every request, unless the request has a header of the same name.
        token: a fixed bearer token.
        token_file: file with the bearer token, read again when it changes and every 60 s.
        credentials: another source of credentials. At most one of the three may be given.
        ssl: TLS settings by file; or a context, which is used unchanged and without client certificates of the
            credentials; or False to verify nothing. Default: the system's authorities, or those of a borrowed session.
        proxy: URL of a proxy (http, https, socks5 or socks5h), "" for none even if the environment has one. SOCKS needs
            the extra "socks", and does not work with a borrowed session.
        proxy_headers: headers for the proxy.
        connect_timeout: seconds for a connection, including name resolution and TLS, but not the wait for other
            connections: eight at once open over TLS, and eight more for requests with a total timeout.
        header_timeout: seconds from the start of a request until the head of the response is there. Does not apply to
            requests with a timeout of their own, and to watches, whose head a proxy may hold back until the first
            event.
        read_bufsize: bytes that may wait for the reader before reading pauses. Default: 1 MiB for streams, such as
            watches, and 128 KiB for other bodies.
        compression: request gzip. Costs CPU time on both sides; useful on slow networks.
        max_requests: how many requests are under way at once, None for no limit. Further ones wait in the order in
            which they came, and the wait counts in their timeout. Watches and followed logs are not counted; requests
            for leases and for tokens have as many slots of their own.
        collect_reads: whether the events of a frequent watch are read together, which saves wake-ups and delays them by
            up to 3 ms, from about 600 a second on. It is an attribute, too, which the next responses follow.
        owner: whose credentials these are, for the error after a 401; `connect` knows it.

    Raises:
        UsageError: arguments contradict each other, or `base_url` is not a URL.
    """

    def __init__(
        self,
        base_url: str,
        session: aiohttp.ClientSession | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        credentials: Credentials | None = None,
        ssl: TLS | ssl_module.SSLContext | bool | None = None,
        proxy: str | None = None,
        proxy_headers: Mapping[str, str] | None = None,
        connect_timeout: float = 10.0,
        header_timeout: float = 60.0,
        read_bufsize: int | None = None,
        compression: bool = False,
        max_requests: int | None = DEFAULT_REQUESTS,
        collect_reads: bool = True,
        owner: Owner | None = None,
    ) -> None:
        own_headers = PrivateHeaders(headers or {})
        own_proxy_headers = PrivateHeaders(proxy_headers or {})
        own_token = token if token is None else Secret(token)
        own_proxy = proxy if proxy is None else Secret(proxy)
        del headers, proxy_headers, token, proxy  # a traceback could show them
        self._url = _server_url(base_url)
        self._base = str(self._url).rstrip("/")
        self._server = authority(self._url)
        self._borrowed = session
        self._closed = False  # from here on repr() works, which a traceback may call
        if session is not None and not callable(getattr(session, "request", None)):
            raise UsageError(f"session: expected an aiohttp.ClientSession, not {type(session).__name__}")
        note_connections(getattr(session, "connector", None))
        if sum(source is not None for source in (own_token, token_file, credentials)) > 1:
            raise UsageError("token, token_file and credentials are alternatives; pass only one of them")
        self._token_file = TokenFile(token_file) if token_file is not None else None
        self._credentials = credentials or self._token_file or _fixed(own_token)
        self._session = session
        self._responses: WeakSet[HttpResponse] = WeakSet()
        self._check: asyncio.TimerHandle | None = None
        self._ssl: ssl_module.SSLContext | bool | None = None
        self._contexts: TLSContexts | None = None
        self._server_name: str | None = None
        if isinstance(ssl, TLS) or (session is None and (ssl is None or ssl is True)):
            settings = ssl if isinstance(ssl, TLS) else TLS()
            self._contexts = TLSContexts(settings) if self._url.scheme == "https" else None
            self._server_name = settings.server_name
        elif not isinstance(ssl, TLS):
            self._ssl = ssl
        self._proxy = (
            environment_proxy(self._url) if own_proxy is None and session is None else proxy_of(own_proxy, "proxy")
        )
        if self._proxy is not None and self._proxy.is_socks and session is not None:
            raise UsageError("proxy: a borrowed session cannot connect through SOCKS; leave out session")
        self._proxy_headers = own_proxy_headers
        self._connect_timeout = connect_timeout
        self._header_timeout = header_timeout
        self._read_bufsize = read_bufsize
        self.collect_reads = collect_reads
        self._slots = Slots(max_requests)
        self._pool_warned = False
        self._renewal_failure = ""
        self._owner = owner or Owner()
        self._counters: Counting | None = None
        self._headers = PrivateHeaders(
            {
                "User-Agent": f"aioinformer/{package_version()}".rstrip("/"),
                "Accept-Encoding": "gzip" if compression else "identity",
            }
        )
        self._headers.update(own_headers)

    @property
    def base_url(self) -> str:
        """The server's URL, without a slash at its end."""
        return self._base

    def __repr__(self) -> str:
        session = ", borrowed session" if self._borrowed is not None else ""
        closed = ", closed" if self._closed else ""
        return f"<{type(self).__name__} {self._base}{session}{closed}>"

    async def prepare(self) -> None:
        """Read the files that the settings name, to find mistakes before the first request.

        Raises:
            UsageError: a file cannot be used; the message names it.
        """
        if self._token_file is not None:
            self._token_file.check()
        if self._contexts is not None:
            await self._contexts.context(Credential())

    def count_requests(self, make: Callable[[str], Counting]) -> Counting:
        """Return what counts the requests. The first call makes it, from the address of the server."""
        if self._counters is None:
            self._counters = make(self._server)
        return self._counters

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send a request; see `aioinformer.transport.Transport`.

        Raises:
            TransportError: there is no response.
            UsageError: the transport or the borrowed session is closed, a TLS file cannot be used, a header contains a
                line break, or no event loop of asyncio runs in this thread.
        """
        clock = running_loop("a request is sent").time
        sending = request.sending or Sending()
        sending.handed = False
        total = request.total_timeout
        slot = await self._slots.acquire(request, sending, self._header_timeout if total is None else total)
        if sending.waited_for and total is not None:
            request = replace(request, total_timeout=max(total - sending.waited, _LEAST))
        counters = self._counters
        code = "<error>"
        began = clock()
        try:
            response = await self._exchange(request, sending)
            code = str(response.status)
        except BaseException:
            slot.release()
            raise
        finally:
            if counters is not None:
                counters.count(request.method, code, None if request.late_head else clock() - began)
        if request.paced:
            slot.release()
        response.slot = slot
        return response

    async def _exchange(self, request: HttpRequest, sending: Sending) -> HttpResponse:
        credential = await self._ask()
        response = await self._send(request, credential, sending)
        if response.status != 401:
            return response
        try:
            renewed = await self._ask(credential)
        except TransportError as error:
            # The 401 of the server tells the caller more than the failed renewal.
            self._warn_of_failed_renewal(str(error))
            return self._explained(response, credential)
        except BaseException:
            await response.close()
            raise
        self._renewal_failure = ""
        if renewed == credential:
            return self._explained(response, credential)
        await response.close()
        return self._explained(await self._send(request, renewed, sending), renewed)

    def _explained(self, response: HttpResponse, credential: Credential) -> HttpResponse:
        if response.status == 401:
            tls = None if self._contexts is None else self._contexts.tls
            response.hint = explanation(self._owner, credential, tls, time.time())
        return response

    async def _ask(self, refused: Credential | None = None) -> Credential:
        self._check_open()  # otherwise a renewal could begin after aclose(), and nothing would end it
        try:
            return await obtain(self._credentials, refused)
        except TransportError as error:
            error.unsent = True
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("this transport is closed; make a new one")

    def _warn_of_failed_renewal(self, reason: str) -> None:
        """Log that credentials cannot be renewed, once as long as the reason stays the same."""
        if reason != self._renewal_failure:
            _log.warning("%s: 401 Unauthorized, and the credentials cannot be renewed: %s", self._server, reason)
        self._renewal_failure = reason

    async def aclose(self) -> None:
        """Close all open responses, end a renewal of credentials, and close the session unless it is borrowed.

        May be repeated.
        """
        self._closed = True
        await close(self._credentials)
        if self._check is not None:
            self._check.cancel()
        for response in list(self._responses):
            # aiohttp's session would close the connection only, and its readers would wait for ever.
            await response.close()
        session = self._session
        self._session = None
        if session is not None and session is not self._borrowed:
            await session.close()

    async def __aenter__(self) -> Self:
        await self.prepare()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _send(self, request: HttpRequest, credential: Credential, sending: Sending) -> HttpResponse:
        sending.handed = False
        ssl = self._ssl if self._contexts is None else await self._contexts.context(credential)
        # Nothing is awaited between this and the request: the transport may be closed at any time.
        session = self._usable_session()
        self._warn_of_full_pool()
        mistake = ""
        check = request.check
        answered = False
        carrier = None
        if check is not None:
            check.unsent = True
            carrier = WriteCarrier(check)
        try:
            unlimited = request.late_head or request.total_timeout is not None
            async with _UNLIMITED if unlimited else asyncio.timeout(max(self._header_timeout - sending.waited, _LEAST)):
                response = await send(
                    request.method,
                    lambda: self._request(session, request, credential, ssl, carrier),
                    sending,
                    fresh=request.fresh,
                )
            answered = True
        except (aiohttp.ClientError, OSError) as error:
            late = isinstance(error, TimeoutError)
            hint = full_pool(session, self._url) if late and self._borrowed is not None else ""
            if carrier is not None and carrier.aborted:
                hint = "it was aborted, because the request may not be sent any more"
            failure = transport_error(self._server, error, hint or (str(sending).lstrip(", ") if late else ""))
            failure.unsent = failure.unsent or sending.handed is False
        except ValueError as error:
            # aiohttp refuses headers with line breaks; its message does not quote them.
            mistake = str(error)
        else:
            if request.stream and request.total_timeout is None:
                StreamBody.take(response.content)
            wrapped = HttpResponse(response, self._server, coalesce=request.stream and self.collect_reads)
            self._responses.add(wrapped)
            if self._check is None:
                self._check = asyncio.get_running_loop().call_later(_CHECK_EVERY, self._check_connections)
            return wrapped
        finally:
            if carrier is not None:
                carrier.end(answered=answered)
        # Raised here, the error does not get the caught one as its context; see `transport_error`.
        if mistake:
            raise UsageError(f"the request cannot be sent: {mistake}")
        if check is not None:
            failure.unsent = failure.unsent or check.unsent
            if check.refusal is not None and check.unsent:
                raise check.refusal.with_traceback(None)
        raise failure

    def _request(
        self,
        session: aiohttp.ClientSession,
        request: HttpRequest,
        credential: Credential,
        ssl: ssl_module.SSLContext | bool | None,
        carrier: WriteCarrier | None,
    ) -> Awaitable[aiohttp.ClientResponse]:
        proxy = self._proxy if self._proxy is not None and not self._proxy.is_socks else None
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        return session.request(
            request.method,
            URL(f"{self._base}{request.path}{query}", encoded=True),
            headers=self._headers_of(request, credential),
            data=request.body if carrier is None else CheckedBody(request.body or b"", carrier),
            # Without a body, aiohttp names no type, either.
            skip_auto_headers=None if carrier is None or request.body is not None else _NO_TYPE,
            timeout=_timeout(request.total_timeout, self._connect_timeout, borrowed=self._borrowed is not None),
            allow_redirects=False,
            raise_for_status=False,
            read_bufsize=self._read_bufsize or (STREAM_BUFFER if request.stream else READ_BUFFER),
            proxy=proxy.url if proxy is not None else None,
            proxy_headers=PrivateHeaders(self._proxy_headers) if self._proxy_headers else None,  # aiohttp changes it
            server_hostname=self._server_name,
            ssl=True if ssl is None else ssl,  # True, aiohttp's default, means the context of the connector
        )

    def _headers_of(self, request: HttpRequest, credential: Credential) -> PrivateHeaders:
        headers = PrivateHeaders(self._headers)
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        headers.update(request.headers)
        return headers

    def _warn_of_full_pool(self) -> None:
        """Warn once that requests wait for a connection of the borrowed session."""
        if self._borrowed is not None and not self._pool_warned and (hint := full_pool(self._borrowed, self._url)):
            self._pool_warned = True
            _log.warning("%s: a request waits for a connection: %s", self._server, hint)

    def _check_connections(self) -> None:
        """Fail the bodies that have lost their connection; check again later while there are unfinished bodies."""
        unfinished = [response.check_connection() for response in list(self._responses)]
        self._check = (
            asyncio.get_running_loop().call_later(_CHECK_EVERY, self._check_connections) if any(unfinished) else None
        )

    def _usable_session(self) -> aiohttp.ClientSession:
        self._check_open()
        if self._session is None:
            self._session = own_session(self._proxy)
        if self._session.closed:
            raise UsageError("the session of this transport is closed; keep it open as long as the transport is used")
        return self._session


@lru_cache(maxsize=16)
def _timeout(total: float | None, seconds: float, *, borrowed: bool) -> aiohttp.ClientTimeout:
    # In the own session, the time for a connection begins after the wait for other connections; see `Connector`.
    return aiohttp.ClientTimeout(total=total, **{"connect" if borrowed else "sock_connect": seconds})


def _server_url(base_url: str) -> URL:
    if not isinstance(base_url, str | URL):
        raise UsageError(f"base_url: expected the URL of the server, https://host:6443, not {type(base_url).__name__}")
    try:
        url = URL(base_url)
    except ValueError as error:
        raise UsageError(f"base_url is not a URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError("base_url must begin with http:// or https:// and name a host, as in https://host:6443")
    if url.user is not None or url.password is not None:
        raise UsageError("base_url must not hold a user or a password; pass a token or credentials")
    if url.query_string or url.fragment:
        raise UsageError("base_url must end with its path; remove the query and the fragment")
    return url


def _fixed(token: Secret | None) -> FixedCredentials:
    if token is None:
        return FixedCredentials()
    if (flaw := bearer_flaw(token.text)) is not None:
        raise UsageError(f"token {flaw}; pass the bare token")
    return FixedCredentials(Credential(authorization=f"Bearer {token.text.strip()}"))
