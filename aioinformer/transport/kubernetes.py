"""The transport over kubernetes_asyncio's `ApiClient`: its host, credentials, TLS settings, proxy and default headers.

The client's own pool is not used. It is limited to 100 connections, and a watch holds one for as long as it lives: the
hundred and first request would wait for ever. It asks the environment for proxies at every request, and its TLS context
is made once and never follows a rotated certificate. So requests go through a session of this transport's own: with
the host, TLS and proxy settings of the client's `Configuration`, and with its credentials and the client's default
headers as they are at the time of each request.

kubernetes_asyncio is not imported here; whoever has an `ApiClient` has imported it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from aioinformer.errors import AioinformerError, TransportError
from aioinformer.transport.auth.secret import PrivateHeaders
from aioinformer.transport.auth.tokens import Credential, RenewedCredentials, place_of
from aioinformer.transport.http import READ_BUFFER, HttpTransport
from aioinformer.transport.session import TLS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from kubernetes_asyncio.client import ApiClient, Configuration

    from aioinformer.transport import Request
    from aioinformer.transport.auth.tokens import Credentials
    from aioinformer.transport.http import HttpResponse
    from aioinformer.transport.session import Reader


class KubernetesTransport:
    """Talks to the server an `ApiClient` is configured for. An async context manager; `aclose()` does the same.

    The client stays usable beside it, and stays the caller's to close. Headers set by `set_default_header`
    (impersonation, for one) are sent, unless the request has its own of the same name.

    Args:
        api_client: configured. Host, TLS and proxy are read now, as the client does itself.
        credentials: where credentials come from instead of the client's configuration.
        headers: sent with every request, before the client's default headers of the same names; a multi-dict may have
            a name more than once.
        connect_timeout: as for `HttpTransport`.
        header_timeout: as for `HttpTransport`.
        read_bufsize: as for `HttpTransport`.
        compression: as for `HttpTransport`.
        reader: as for `HttpTransport`.

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
        read_bufsize: int = READ_BUFFER,
        compression: bool = False,
        reader: Reader = "lean",
    ) -> None:
        configuration = api_client.configuration
        self.api_client = api_client
        self._headers = PrivateHeaders(headers or {})
        del headers  # which a traceback could show
        self._http = HttpTransport(
            configuration.host or "",
            credentials=credentials or ConfigurationCredentials(configuration),
            ssl=tls_settings(configuration),
            proxy=configuration.proxy,
            proxy_headers=configuration.proxy_headers,
            connect_timeout=connect_timeout,
            header_timeout=header_timeout,
            read_bufsize=read_bufsize,
            compression=compression,
            reader=reader,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._http.base_url}>"

    async def prepare(self) -> None:
        """Reads the TLS files, so that a mistake shows before the first request. Raises `UsageError`."""
        await self._http.prepare()

    async def request(self, request: Request) -> HttpResponse:
        """Sends a request; see `aioinformer.transport.Transport`."""
        return await self._http.request(replace(request, headers=self._headers_of(request)))

    def _headers_of(self, request: Request) -> PrivateHeaders:
        client = self.api_client
        headers = PrivateHeaders(
            # The generator's own name says nothing; a name that the application chose does.
            {name: value for name, value in client.default_headers.items() if not _is_generated(name, value)}
        )
        if client.cookie:
            headers["Cookie"] = client.cookie
        headers.update(self._headers)
        headers.update(request.headers)
        return headers

    async def aclose(self) -> None:
        """Closes this transport's connections, not the client. Idempotent."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        await self.prepare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class ConfigurationCredentials(RenewedCredentials):
    """The token of a `Configuration`, which its own `refresh_api_key_hook` keeps current.

    The hook, a function or a coroutine function, runs before requests, as the client itself has it, once for all that
    wait; and once more after a 401. A run in vain is followed by a pause, as with other sources.
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
        # Not in a handler: the words of what was raised, which would be the context, may hold the token.
        raise failure

    async def _read(self) -> Credential:
        # A token read from a file by the client's own loaders still has the newline of the file.
        return Credential(authorization=_token(await self._configuration.auth_settings()))

    def _is_due(self) -> bool:
        return True  # the hook knows


def tls_settings(configuration: Configuration) -> TLS:
    """The TLS settings of a `Configuration`, by file."""
    return TLS(
        certificate_authority=configuration.ssl_ca_cert,
        client_certificate=configuration.cert_file,
        client_key=configuration.key_file,
        verify=configuration.verify_ssl,
        strict=not configuration.disable_strict_ssl_verification,
        server_name=configuration.tls_server_name,
    )


def _token(settings: Mapping[str, Any]) -> str:
    return str((settings.get("BearerToken") or {}).get("value") or "").strip()


def _is_generated(name: str, value: str) -> bool:
    return name.lower() == "user-agent" and value.startswith("OpenAPI-Generator/")
