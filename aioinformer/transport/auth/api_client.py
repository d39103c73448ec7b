"""The `ApiClient` of a connection: kubernetes_asyncio's client for the same server, with the same credentials.

It is made when it is first asked for, because importing kubernetes_asyncio takes half a second and 45 MB. Its tokens
come from the same sources as those of the transport, which renew them before they expire.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from yarl import URL

from aioinformer.errors import TransportError, UsageError
from aioinformer.logs import get_logger
from aioinformer.transport.auth.refusals import Owner
from aioinformer.transport.auth.secret import Secret
from aioinformer.transport.auth.tokens import Credential, obtain
from aioinformer.transport.proxies import environment_proxy
from aioinformer.transport.session import connector_kind, make_context, pem_file

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable
    from types import ModuleType

    from kubernetes_asyncio.client import ApiClient, Configuration

    from aioinformer.transport.auth.secret import PrivateHeaders
    from aioinformer.transport.auth.tokens import Credentials
    from aioinformer.transport.proxies import Proxy
    from aioinformer.transport.session import TLS

_log = get_logger("aioinformer.transport")


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach and authenticate to one server.

    Attributes:
        credentials: the source of tokens, and of client certificates that are renewed.
        authenticates: whether requests have an `Authorization` header.
        headers: sent with each request, for impersonation.
        proxy: as named by the kubeconfig; None for that of the environment.
        owner: whose credentials these are.
    """

    server: str
    tls: TLS
    credentials: Credentials
    authenticates: bool
    headers: PrivateHeaders
    proxy: Proxy | None = None
    owner: Owner | None = None


class LazyApiClient:
    """Makes an `ApiClient` at its first use, and closes it."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._client: ApiClient | None = None
        self._closed = False
        self._files = ExitStack()

    def get(self) -> ApiClient:
        """Return the client, always the same one. Call it in the event loop.

        Raises:
            UsageError: kubernetes_asyncio cannot be imported, or the connection is closed.
        """
        if self._client is None:
            if self._closed:
                raise UsageError("this connection is closed; make a new one")
            self._client = _make(_client_module(), self._access, self._files)
        return self._client

    async def load(self) -> ApiClient:
        """Import kubernetes_asyncio in a thread, and return the client; see `get`."""
        await asyncio.to_thread(_client_module)
        return self.get()

    async def aclose(self) -> None:
        """Close the client if there is one, and delete its files. May be repeated."""
        self._closed = True
        try:
            if self._client is not None:
                await self._client.close()
        finally:
            self._files.close()


def _client_module() -> ModuleType:
    try:
        from kubernetes_asyncio import client
    except ImportError as error:
        raise UsageError("kubernetes_asyncio cannot be imported; install it, or use the transport instead") from error
    return client


def _make(library: Any, access: Access, files: ExitStack) -> ApiClient:
    tls = access.tls
    credentials = access.credentials
    configuration: Configuration = library.Configuration(host=access.server)
    if access.server.startswith("https"):
        configuration.ssl_ca_cert = _path(files, Secret(tls.certificate_authority_data), tls.certificate_authority)
        configuration.cert_file = _path(files, Secret(tls.client_certificate_data), tls.client_certificate)
        configuration.key_file = _path(files, Secret(tls.client_key_data), tls.client_key)
    configuration.verify_ssl = tls.verify
    configuration.tls_server_name = tls.server_name
    configuration.disable_strict_ssl_verification = not tls.strict

    async def refresh(configuration: Configuration) -> None:
        credential = await obtain(credentials)
        if not credential.authorization:
            raise TransportError(
                "the exec plugin returns client certificates, which the ApiClient cannot use; use the transport"
            )
        configuration.api_key["BearerToken"] = credential.authorization

    if access.authenticates:
        if iscoroutinefunction(configuration.auth_settings):
            # A function, not a method: copies of a Configuration share functions, but copy the object of a method.
            configuration.refresh_api_key_hook = refresh
        # Without this entry the client neither authenticates nor calls the hook.
        configuration.api_key["BearerToken"] = ""
    proxy = access.proxy or environment_proxy(URL(access.server))
    if access.proxy is not None and not access.proxy.is_socks:
        configuration.proxy = str(access.proxy.url)
    api_client: ApiClient = library.ApiClient(configuration)
    if access.authenticates and configuration.refresh_api_key_hook is None:
        _refresh_before_calls(api_client, refresh)
    if proxy is not None and proxy.is_socks:
        _connect_through(proxy, api_client, tls)
    for name in set(access.headers):
        if len(values := access.headers.getall(name)) == 1:
            api_client.set_default_header(name, values[0])
        else:
            _log.warning("the ApiClient cannot send %s more than once, and leaves it out; the transport sends it", name)
    return api_client


def _refresh_before_calls(api_client: Any, refresh: Callable[[Configuration], Awaitable[None]]) -> None:
    """Renew the token before each call: before release 33, the hook cannot be a coroutine function."""
    call = api_client.call_api

    async def call_api(*arguments: Any, **options: Any) -> Any:
        await refresh(api_client.configuration)
        return await call(*arguments, **options)

    api_client.call_api = call_api


def _path(files: ExitStack, data: Secret, path: str | os.PathLike[str] | None) -> str | None:
    """Return the path of a file; for a text in memory, that of a new file, which exists until the client is closed."""
    if data:
        return files.enter_context(pem_file(data))
    return None if path is None else str(path)


def _connect_through(proxy: Proxy, api_client: ApiClient, tls: TLS) -> None:
    """Replace the session: it passes its proxy to aiohttp with each request, and aiohttp supports HTTP proxies only."""
    from aiohttp import ClientSession

    rest: Any = api_client.rest_client
    rest.pool_manager.detach()  # no connection has been opened
    limit = api_client.configuration.connection_pool_maxsize
    connector = connector_kind(proxy)(limit=limit, ssl=make_context(tls, Credential()))
    rest.proxy = None
    rest.pool_manager = ClientSession(connector=connector, read_bufsize=2**21)
