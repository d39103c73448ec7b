"""The transport for what users pass as a client: a transport, a `Connection`, an `ApiClient` or a URL."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.exports import lazy_type

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient as ApiClient

    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection as Connection
else:
    ApiClient = lazy_type("kubernetes_asyncio.client", "ApiClient")
    Connection = lazy_type("aioinformer.transport.auth.credentials", "Connection")

_ACCEPTED = "a transport, a Connection of connect()"
_FOREIGN = {"aiohttp", "httpx", "requests", "urllib3"}


class Client:
    """What a user passed as a client, and the transport for it.

    The user closes a transport or a `Connection`. For an `ApiClient` of kubernetes_asyncio or a URL, a transport is
    made at first use, and `aclose()` closes it.

    Args:
        client: a transport, a `Connection`, an `ApiClient` or a URL.
        argument: the name of the caller's argument, for errors.

    Raises:
        UsageError: `client` is none of these.
    """

    def __init__(self, client: Any, argument: str = "client") -> None:
        self._client = client
        self._transport: Any = None
        self._own: Any = None
        if isinstance(client, str):
            self._own = _from_url(client, argument)
            self._transport = self._own
        elif not _is_api_client(client):
            self._transport = _borrowed(client, argument, f"{_ACCEPTED}, an ApiClient of kubernetes_asyncio, or a URL")

    @property
    def transport(self) -> Transport:
        """The transport, made now if necessary."""
        if self._transport is None:
            from aioinformer.transport.kubernetes import KubernetesTransport

            self._own = KubernetesTransport(self._client)
            self._transport = self._own
        transport: Transport = self._transport
        return transport

    async def aclose(self) -> None:
        """Close the transport if it was made here. May be repeated."""
        own = self._own
        self._own = None
        if own is not None:
            await own.aclose()


def transport_of(client: Any, argument: str = "transport") -> Transport:
    """Return the transport of a client, for callers that have no method that could close a new transport.

    Args:
        client: a transport or a `Connection`.

    Raises:
        UsageError: `client` is neither. For a URL or an `ApiClient`, the message says which transport to make.
    """
    if isinstance(client, str):
        raise UsageError(
            f"{argument}: make a transport of the URL, and close it: `async with HttpTransport({client!r}) as "
            "transport`; SharedInformerFactory takes the URL itself"
        )
    if _is_api_client(client):
        raise UsageError(
            f"{argument}: make a transport of the ApiClient, and close it: `async with KubernetesTransport(api_client) "
            "as transport`; SharedInformerFactory takes the ApiClient itself"
        )
    return _borrowed(client, argument, f"{_ACCEPTED}")


def _from_url(url: str, argument: str) -> Any:
    from aioinformer.transport.http import HttpTransport

    try:
        return HttpTransport(url)
    except UsageError as error:
        reason = str(error).replace("base_url", "a URL", 1)
        raise UsageError(f"{argument}: {reason}; for a kubeconfig, pass `await connect()`") from None


def _is_api_client(client: Any) -> bool:
    package = type(client).__module__.partition(".")[0]
    return callable(getattr(client, "call_api", None)) and not isinstance(client, type) and package != "kubernetes"


def _borrowed(client: Any, argument: str, accepted: str) -> Transport:
    if inspect.iscoroutine(client):
        name = client.__name__
        client.close()  # otherwise Python warns that it was never awaited, which the error below already says
        raise UsageError(f"{argument}: {name}() was not awaited; write `await {name}()`")
    if isinstance(client, type):
        raise UsageError(f"{argument}: expected {accepted}, not the class {client.__name__}; make an instance of it")
    package = type(client).__module__.partition(".")[0]
    if package == "kubernetes":
        raise UsageError(f"{argument}: expected {accepted}; the client of the package kubernetes is synchronous")
    if package in _FOREIGN:
        raise UsageError(
            f"{argument}: expected {accepted}, not a {package} {type(client).__name__}; "
            "for a session of aiohttp: HttpTransport(url, session)"
        )
    if callable(getattr(client, "resource_for", None)):  # a Client, whose options a transport has not
        raise UsageError(f"{argument}: expected {accepted}, not a Client; pass its transport")
    transport: Any = client if callable(getattr(client, "request", None)) else getattr(client, "transport", None)
    if not callable(getattr(transport, "request", None)):
        hint = "; pass its api_client" if hasattr(client, "api_client") else ""
        kind = "None" if client is None else type(client).__name__
        raise UsageError(f"{argument}: expected {accepted}, not {kind}{hint}")
    found: Transport = transport
    return found
