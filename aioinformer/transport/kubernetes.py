"""The transport over kubernetes_asyncio's `ApiClient`: its host, credentials, TLS settings, proxy and default headers.

The transport does not use the client's connection pool. The pool is limited to 100 connections, and each watch holds
one, so that request 101 would wait for ever; it reads the environment for proxies at every request; and its TLS context
never follows a rotated certificate. Instead, the transport has a session of its own, with the host, TLS and proxy
settings of the client's `Configuration`. Each request has the client's credentials and default headers of that moment.

This module does not import kubernetes_asyncio: a program that has an `ApiClient` has imported it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from aioinformer.errors import AioinformerError, TransportError
from aioinformer.transport import HttpRequest
from aioinformer.transport.auth.secret import PrivateHeaders
from aioinformer.transport.auth.tokens import Credential, Credentials, RenewedCredentials, place_of
from aioinformer.transport.clients import ApiClient
from aioinformer.transport.connections import HttpResponse
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.messages import Counting
from aioinformer.transport.session import TLS
from aioinformer.transport.slots import DEFAULT_REQUESTS

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration


class KubernetesTransport:
    """Talks to the server of an `ApiClient`. Use it as an async context manager, or call `aclose()` at the end.

    The client stays usable, and the transport does not close it. Headers set by `set_default_header` (impersonation,
    for example) are sent, unless the request has a header of the same name.

    Args:
        api_client: a configured client. Its host, TLS settings and proxy are read now; later changes have no effect.
        credentials: a source of credentials to use instead of the client's configuration.
        headers: sent with every request. They replace the client's default headers of the same names. A multidict may
            have a name more than once.
        connect_timeout: as for `HttpTransport`.
        header_timeout: as for `HttpTransport`.
        compression: as for `HttpTransport`.
        max_requests: as for `HttpTransport`.

    Raises:
        UsageError: the configuration has no usable host.
    """

    def __init__(
        self,
        api_client: ApiClient,
        *,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 10.0,
        header_timeout: float = 60.0,
        compression: bool = False,
        max_requests: int | None = DEFAULT_REQUESTS,
    ) -> None:
        configuration = api_client.configuration
        self.api_client = api_client
        self._headers = PrivateHeaders(headers or {})
        del headers  # a traceback could show them
        self._http = HttpTransport(
            configuration.host or "",
            credentials=credentials or ConfigurationCredentials(configuration),
            ssl=tls_settings(configuration),
            proxy=configuration.proxy,
            proxy_headers=configuration.proxy_headers,
            connect_timeout=connect_timeout,
            header_timeout=header_timeout,
            compression=compression,
            max_requests=max_requests,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._http.base_url}>"

    async def prepare(self) -> None:
        """Read the TLS files, to find mistakes before the first request.

        Raises:
            UsageError: a file cannot be used; the message names it.
        """
        await self._http.prepare()

    def count_requests(self, make: Callable[[str], Counting]) -> Counting:
        """Return what counts the requests. The first call makes it, from the address of the server."""
        return self._http.count_requests(make)

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send a request; see `aioinformer.transport.Transport`.

        Raises:
            TransportError: there is no response.
            UsageError: as `HttpTransport.request`.
        """
        return await self._http.request(replace(request, headers=self._headers_of(request)))

    def _headers_of(self, request: HttpRequest) -> PrivateHeaders:
        client = self.api_client
        headers = PrivateHeaders(
            # The generated User-Agent is left out; one that the application chose is sent.
            {name: value for name, value in client.default_headers.items() if not _is_generated(name, value)}
        )
        if client.cookie:
            headers["Cookie"] = client.cookie
        headers.update(self._headers)
        headers.update(request.headers)
        return headers

    async def aclose(self) -> None:
        """Close the connections of this transport, but not the client. May be repeated."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        await self.prepare()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class ConfigurationCredentials(RenewedCredentials):
    """The token of a `Configuration`, which its `refresh_api_key_hook` keeps current.

    As in the client itself, the hook (a function or a coroutine function) runs before requests, once for all requests
    that wait, and once more after a 401. A failed run is followed by a pause, as with other sources.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self._configuration = configuration

    async def current(self) -> Credential:
        if self._configuration.refresh_api_key_hook is None:
            return await self._read()
        return await super().current()

    async def renew(self, refused: Credential) -> Credential:
        if self._configuration.refresh_api_key_hook is None:
            return await self._read()
        return await super().renew(refused)

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        try:
            return await self._read(), None
        except AioinformerError as error:
            failure = TransportError(str(error))
        except Exception as error:
            raised = f"{type(error).__name__}{place_of(error)}"
            failure = TransportError(f"the refresh_api_key_hook of the client's configuration failed: {raised}")
        # Not in the `except` block: the caught error would become the context, and its message may contain the token.
        raise failure

    async def _read(self) -> Credential:
        # The client's loaders leave the newline of a token file in the token.
        settings: Any = self._configuration.auth_settings()
        if isawaitable(settings):  # since release 33
            settings = await settings
        return Credential(authorization=_token(settings))

    def _is_due(self) -> bool:
        return True  # the hook decides


def tls_settings(configuration: Configuration) -> TLS:
    """Return the TLS settings of a `Configuration`."""
    return TLS(
        certificate_authority=configuration.ssl_ca_cert,
        client_certificate=configuration.cert_file,
        client_key=configuration.key_file,
        verify=configuration.verify_ssl,
        strict=not getattr(configuration, "disable_strict_ssl_verification", False),  # since release 32
        server_name=getattr(configuration, "tls_server_name", None),  # since release 29
    )


def _token(settings: Mapping[str, Any]) -> str:
    return str((settings.get("BearerToken") or {}).get("value") or "").strip()


def _is_generated(name: str, value: str) -> bool:
    return name.lower() == "user-agent" and value.startswith("OpenAPI-Generator/")
