"""Requests and responses, and the protocol of what sends them.

`exchange` sends one request and reads the whole answer, for small answers of any kind; `aioinformer.client` is for
objects.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from aioinformer.backoff import retry_after
from aioinformer.errors import DecodeError
from aioinformer.transport.list_parser import status_error

_MAX_BYTES = 1024 * 1024

T = TypeVar("T")


class Carrier(Protocol):
    """The connection that carries a request which has no answer yet."""

    def abort(self) -> None:
        """Close the connection at once, so that the kernel discards what it has not sent. The request fails."""


class SendCheck(Generic[T]):
    """Decides at the last moment whether a request is sent: a transport calls it right before the bytes leave.

    A request without an answer can be called back as far as the server does not have it: see `abort`.

    Args:
        check: raises if the request must not be sent any more.

    Attributes:
        unsent: whether the request has certainly not been sent as a whole. A permission sets it to False. A transport
            sets it to True when it begins to send the request, if it will ask for permission itself.
        refusal: what `check` has raised.
        carrier: the connection that carries the request. A transport sets it before the first byte leaves, and to None
            when the answer comes. A request that ends without an answer, such as by a cancellation, aborts it.
    """

    __slots__ = ("_check", "carrier", "refusal", "unsent")

    def __init__(self, check: Callable[[], T]) -> None:
        self._check = check
        self.unsent = True
        self.refusal: Exception | None = None
        self.carrier: Carrier | None = None

    def __call__(self) -> T:
        """Permit that the request is sent; return what `check` returns.

        Raises:
            Exception: the check raised this. The request must not be sent.
        """
        try:
            permission = self._check()
        except Exception as error:
            self.refusal = error
            raise
        self.unsent = False
        return permission

    def abort(self) -> None:
        """Abort the connection that carries the request, and no other; does nothing if none does, or it was answered.

        The request fails with a `TransportError`. What a proxy or the kernel of the server has received is not undone.
        """
        if self.carrier is not None:
            self.carrier.abort()


class Sending(msgspec.Struct):
    """What a transport reports about a request while it sends it, for errors that the sender raises.

    Attributes:
        handed: whether the request was handed to a connection, so that the server may have it; None if that is not
            known. If it is sent again, this is about the last time.
        reused: whether that connection had been used before.
        waited: seconds in which it waited for a slot; see `HttpTransport`.
        waited_for: "one of 64 slots"; "" if it did not wait.
        status: the HTTP status of the answer, 0 for none.
    """

    handed: bool | None = None
    reused: bool = False
    waited: float = 0.0
    waited_for: str = ""
    status: int = 0

    def __str__(self) -> str:
        if self.waited_for:
            return f", of them {self.waited:.1f} s waiting for {self.waited_for}"
        return ""


class Counting(Protocol):
    """Counts requests."""

    def count(self, method: str, code: str, seconds: float | None) -> None:
        """Count a request: its method, the status of the answer, and the time to its head, None for a watch."""


class HttpRequest(msgspec.Struct, frozen=True):
    """An HTTP request.

    Attributes:
        path: absolute path, already quoted: "/api/v1/pods".
        query: pairs, not yet quoted.
        method: "GET" by default.
        headers: sent unchanged, in addition to the headers of authentication.
        body: bytes to send, or None.
        total_timeout: seconds for the whole exchange, None for no limit (watches, lists of unknown size).
        late_head: the head of the response may come as late as the first byte of its body: no limit of the transport
            applies to it. Use it for watches: some proxies hold back the head until the first event.
        stream: the body is an endless stream of small pieces, such as the events of a watch. A transport may read
            frequent pieces up to 3 ms late, in order to read several at once.
        check: called right before the last bytes of the request leave; None for none. A transport that does not call it
            may send the request late, and so does one that does not abort the connection of a request that ends without
            an answer; see `SendCheck.carrier`.
        lane: requests of another lane than "" have slots of their own in a transport that limits requests. So the
            renewal of a lease never waits for other requests.
        fresh: the request uses a new connection, and idle ones to the same server are closed. Use it after a timeout:
            all connections may be silent, such as those of a balancer that has died, while new ones work.
        paced: the body is read as fast as the caller's code takes its parts. The request then occupies its slot until
            the head of the response has arrived; otherwise that code could wait for a request that waits for the slot.
        sending: the transport's report; None if nothing reads it.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    total_timeout: float | None = None
    late_head: bool = False
    stream: bool = False
    check: SendCheck[Any] | None = None
    lane: str = ""
    fresh: bool = False
    paced: bool = False
    sending: Sending | None = None

    def __repr__(self) -> str:
        # Headers and body may be secret.
        return f"<HttpRequest {self.method} {self.path}{f' {self.query}' if self.query else ''}>"


class Response(Protocol):
    """A response whose head has arrived, and whose body is still to be read.

    It may have `nudge`, a function that lets `chunks` yield b"" at once; a `ShardedListWatch` uses it for a timer. And
    it may have `hint`, a text that says what the transport knows of the reason of a refusal.
    """

    @property
    def status(self) -> int:
        """The HTTP status. No status raises an exception."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, a case-insensitive mapping."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body, its content encoding undone, in pieces of the sizes in which it arrives.

        After a cancelled read, only `close()` may be called.

        Raises:
            TransportError: the connection broke, or ended before the body did.
        """
        ...

    async def close(self) -> None:
        """Close the connection at once, even in the middle of the body. A pending read ends.

        May be repeated. Never raises.
        """
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    async def request(self, request: HttpRequest) -> Response:
        """Send a request, and return as soon as the head of the response is there.

        The time for a connection attempt is limited, and so is the time for the head, unless the request says
        otherwise. Credentials are renewed before they expire. If the server answers 401, they are renewed once more,
        and the request is sent again if that gives other credentials.

        Raises:
            TransportError: there is no response. The message names the server and the reason, never credentials.
        """
        ...


async def exchange(transport: Transport, request: HttpRequest, what: str) -> dict[str, Any]:
    """Send a request and return the JSON object that the server answers with.

    Args:
        what: the kind of the object, for error messages.

    Raises:
        TransportError: no complete answer was received.
        ApiError: the server refused the request.
        DecodeError: the answer is not a JSON object, or is larger than 1 MiB.
    """
    response = await transport.request(request)
    chunks = response.chunks()
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > _MAX_BYTES:
                raise DecodeError(f"the server's answer is larger than {_MAX_BYTES} bytes; expected a {what}")
    finally:
        await response.close()
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()  # otherwise asyncio closes it later, in a task of its own
    if response.status >= 300:
        raise status_error(
            response.status, bytes(body), retry_after=retry_after(response.headers), hint=hint_of(response)
        )
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DecodeError(f"the server's answer is not a JSON object; expected a {what}") from None


def hint_of(response: Response) -> str:
    """Return what the transport knows of the reason of a refusal, "" for nothing."""
    hint: str = getattr(response, "hint", "")
    return hint
