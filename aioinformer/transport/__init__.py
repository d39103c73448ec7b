"""The one seam to the network: a request goes out, status, headers and chunks of bytes come back.

Everything above knows these two protocols and nothing of a client library. The adapters live beside this file:
`kubernetes` over kubernetes_asyncio's `ApiClient`, `http` over a bare `aiohttp.ClientSession`. `credentials` finds a
cluster as kubectl does, and connects to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aioinformer.transport.auth.credentials import Connection, connect
    from aioinformer.transport.auth.tokens import Credential, Credentials
    from aioinformer.transport.exchange import exchange
    from aioinformer.transport.http import HttpTransport
    from aioinformer.transport.kubernetes import KubernetesTransport
    from aioinformer.transport.session import TLS


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, as far as this framework needs one.

    Attributes:
        path: absolute path, already quoted: "/api/v1/pods".
        query: pairs, not yet quoted.
        method: "GET" by default.
        headers: sent as they are, in addition to what authentication needs.
        body: bytes to send, or None.
        total_timeout: seconds for the whole exchange, None for no limit (watches, lists of unknown size).
        late_head: the head of the response may come as late as the first byte of its body: no limit of the transport
            applies to it. For watches: some proxies hold back the head until the first event.
    """

    path: str
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    total_timeout: float | None = None
    late_head: bool = False


class Response(Protocol):
    """An answer whose body is still on its way.

    Attributes:
        status: the HTTP status; nothing is raised for any of them.
        headers: case-insensitive mapping.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body (content encoding undone) in the sizes in which it arrives, without copying twice.

        A cancelled read leaves the response fit for `close()` only.

        Raises:
            TransportError: the connection broke, or ended before the body did.
        """
        ...

    async def close(self) -> None:
        """Lets the connection go at once, also in mid-body. Idempotent; never raises; a pending read ends."""
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    async def request(self, request: Request) -> Response:
        """Sends the request and returns as soon as the header of the answer is there.

        A connection attempt is bounded in time, and so is the wait for the header, unless the request says otherwise.
        Credentials are current: renewed before they expire, and once when the server answers 401, if that yields other
        credentials than those that were refused.

        Raises:
            TransportError: no answer; the message names the server and the reason, never credentials.
        """
        ...


__all__ = [
    "TLS",
    "Connection",
    "Credential",
    "Credentials",
    "HttpTransport",
    "KubernetesTransport",
    "Request",
    "Response",
    "Transport",
    "connect",
    "exchange",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "auth.credentials": "Connection connect",
            "auth.tokens": "Credential Credentials",
            "exchange": "exchange",
            "http": "HttpTransport",
            "kubernetes": "KubernetesTransport",
            "session": "TLS",
        },
    )
