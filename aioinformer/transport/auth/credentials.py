"""Connect as kubectl does: by a kubeconfig, or by the service account of the pod.

kubernetes_asyncio's loaders turn the section of the cluster into a `Configuration` with host, authorities, client
certificates and proxy. They load credentials only once, so this module reads the section of the user itself: tokens and
certificates come from sources that renew them before they expire and when the server refuses them. The `ApiClient` of
the connection gets its tokens from the same sources.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from aiohttp import ClientSession
from yarl import URL

from aioinformer.errors import TransportError, UsageError
from aioinformer.logs import get_logger
from aioinformer.transport.auth.exec_plugin import ExecCredentials, exec_plugin
from aioinformer.transport.auth.kubeconfig import Context, kubeconfig_paths, load_context
from aioinformer.transport.auth.oidc import OIDCCredentials, TokenStore, oidc_provider
from aioinformer.transport.auth.secret import PrivateHeaders, Secret, private
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.auth.tokens import Credential, Credentials, FixedCredentials, bearer_flaw, obtain
from aioinformer.transport.kubernetes import KubernetesTransport, tls_settings
from aioinformer.transport.proxies import Proxy, environment_proxy, proxy_of
from aioinformer.transport.session import TLSContexts, connector_kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType, TracebackType

    from kubernetes_asyncio.client import ApiClient, Configuration

    from aioinformer.client.client import Client

_log = get_logger("aioinformer.transport")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which kubelet puts token, certificate authority and namespace of a pod."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to one API server. Use it as an async context manager, or call `aclose()` at the end.

    Attributes:
        transport: for informers.
        api_client: for all other requests, with the same server and credentials, except client certificates of a
            plugin: the client loads its certificate once, from files. `aclose()` closes it.
        namespace: the default namespace of the context or pod.
        context: name of the context, "" in a pod.
    """

    transport: KubernetesTransport
    api_client: ApiClient
    namespace: str
    context: str
    _clients: list[Client] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def client(self) -> Client:
        """Reads and writes objects over `transport`; always the same client, with the default options."""
        if not self._clients:
            from aioinformer.client.client import Client

            self._clients.append(Client(self.transport))
        return self._clients[0]

    async def aclose(self) -> None:
        """Close transport and client. May be repeated."""
        try:
            await self.transport.aclose()
        finally:
            await self.api_client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def connect(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    in_cluster: bool | None = None,
) -> Connection:
    """Find the cluster as kubectl does, and return a connection to it. No request is sent yet.

    The first of these that exists is used: `kubeconfig`, the files of KUBECONFIG (merged), ~/.kube/config, and the
    service account of the pod. Plugins and OIDC providers are used at the first request, not here.

    Args:
        kubeconfig: a file, which must exist.
        context: name of a context, None for the current one.
        in_cluster: True to use only the service account, False never to use it, None to try it last.

    Raises:
        UsageError: there is no configuration, or it is wrong. The message names file, field and remedy.
    """
    if in_cluster and (kubeconfig is not None or context is not None):
        raise UsageError("in_cluster=True uses the pod's service account; leave out kubeconfig and context")
    # In a thread, because importing the client takes 0.3 s.
    modules = await asyncio.to_thread(_client_modules)
    if not in_cluster:
        found = await asyncio.to_thread(_find_context, kubeconfig, context, in_cluster is None)
        if found is not None:
            return await _connect_to_context(found, *modules)
    return await _connect_in_cluster(*modules)


def _find_context(
    kubeconfig: str | os.PathLike[str] | None, context: str | None, service_account_allowed: bool
) -> Context | None:
    """Return the context to use, None for the service account of the pod."""
    paths = kubeconfig_paths(os.environ if kubeconfig is None else {"KUBECONFIG": os.fspath(kubeconfig)})
    if any(path.exists() for path in paths):
        return load_context(paths, context)
    names = ", ".join(map(str, paths))
    if kubeconfig is not None or context is not None or not service_account_allowed:
        raise UsageError(f"kubeconfig {names} does not exist; name a file that exists, or set KUBECONFIG")
    if not _is_in_pod():
        raise UsageError(
            f"no cluster found: kubeconfig {names} does not exist, and this is not a pod with a service account; "
            "set KUBECONFIG, or pass kubeconfig"
        )
    return None


def _is_in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


def _client_modules() -> tuple[ModuleType, ModuleType]:
    try:
        from kubernetes_asyncio import client, config
    except ImportError as error:
        raise UsageError("kubernetes_asyncio cannot be imported; install it, or use HttpTransport instead") from error
    return client, config


async def _connect_in_cluster(client: Any, config: Any) -> Connection:
    token = TokenFile(SERVICE_ACCOUNT / "token")
    configuration = client.Configuration()
    try:
        await asyncio.to_thread(token.check)
        config.load_incluster_config(
            client_configuration=configuration,
            try_refresh_token=False,
            token_filename=str(SERVICE_ACCOUNT / "token"),
            cert_filename=str(SERVICE_ACCOUNT / "ca.crt"),
        )
    except (config.ConfigException, UsageError) as error:
        raise UsageError(
            f"the pod's service account cannot be used: {error}; it needs KUBERNETES_SERVICE_HOST, "
            f"KUBERNETES_SERVICE_PORT and the files below {SERVICE_ACCOUNT}"
        ) from error
    try:
        namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    return await _connection(client, configuration, token, PrivateHeaders(), namespace or "default", "")


async def _connect_to_context(found: Context, client: Any, config: Any) -> Connection:
    credentials = await asyncio.to_thread(_credentials_of, found)
    names = ("client-certificate", "client-certificate-data", "client-key", "client-key-data")
    proxy = proxy_of(Secret(str(found.cluster.get("proxy-url") or "")), f"{found.cluster_where}.proxy-url")
    reduced = private(
        {
            "current-context": found.name,
            "contexts": [{"name": found.name, "context": {"cluster": "cluster", "user": "user"}}],
            "clusters": [{"name": "cluster", "cluster": found.cluster}],
            "users": [{"name": "user", "user": {name: found.user[name] for name in names if name in found.user}}],
        }
    )
    configuration = client.Configuration()
    reason = ""
    try:
        await config.load_kube_config_from_dict(reduced, client_configuration=configuration)
    except (config.ConfigException, OSError, ValueError) as error:
        # Only the loader's own messages are safe: decoding errors quote the data.
        reason = str(error) if isinstance(error, config.ConfigException) else type(error).__name__
    if reason:
        raise UsageError(
            f"kubeconfig {found.user_file}, context {found.name}: the certificates of cluster or user cannot be used: "
            f"{reason}; correct certificate-authority, client-certificate or client-key"
        )
    headers = _impersonation(found)
    return await _connection(client, configuration, credentials, headers, found.namespace, found.name, proxy)


async def _connection(
    client: Any,
    configuration: Configuration,
    credentials: Credentials,
    headers: PrivateHeaders,
    namespace: str,
    context: str,
    proxy: Proxy | None = None,
) -> Connection:
    if not isinstance(credentials, FixedCredentials) or (await obtain(credentials)).authorization:

        async def refresh(configuration: Configuration) -> None:
            credential = await obtain(credentials)
            if not credential.authorization:
                raise TransportError(
                    "the exec plugin returns client certificates, which the ApiClient cannot use; use the transport"
                )
            configuration.api_key["BearerToken"] = credential.authorization

        # A function, not a method: copies of a Configuration share functions, but copy the object of a method.
        configuration.refresh_api_key_hook = refresh
        # Without this entry the client neither authenticates nor calls the hook.
        configuration.api_key["BearerToken"] = ""
    # As kubectl does; see `TLS.strict`.
    configuration.disable_strict_ssl_verification = True
    # Loaded here, because the client's own error does not name the file that cannot be used.
    tls = await TLSContexts(tls_settings(configuration)).context(Credential())
    api_client = client.ApiClient(configuration)
    proxy = proxy or environment_proxy(URL(str(configuration.host)))
    if proxy is not None and proxy.is_socks:
        # The client passes its proxy to aiohttp with each request, and aiohttp supports HTTP proxies only.
        rest = api_client.rest_client
        await rest.pool_manager.close()
        connector = connector_kind(proxy)(limit=configuration.connection_pool_maxsize, ssl=tls)
        rest.proxy, rest.pool_manager = None, ClientSession(connector=connector, read_bufsize=2**21)
    for name in set(headers):
        if len(values := headers.getall(name)) == 1:
            api_client.set_default_header(name, values[0])
        else:
            _log.warning("the ApiClient cannot send %s more than once, and leaves it out; the transport sends it", name)
    transport = KubernetesTransport(api_client, credentials=credentials, headers=headers)
    return Connection(transport, api_client, namespace, context)


def _credentials_of(found: Context) -> Credentials:
    """Return the source of the user's credentials. A token precedes a plugin, as in client-go."""
    user, where = found.user, found.where
    if user.get("tokenFile"):
        file = TokenFile(str(user["tokenFile"]))
        try:
            file.check()
        except UsageError as error:
            raise UsageError(f"{where}.tokenFile: {error}") from error
        return file
    if user.get("token"):
        if (flaw := bearer_flaw(str(user["token"]))) is not None:
            raise UsageError(f"{where}.token {flaw}; log in again")
        return FixedCredentials(Credential(authorization=f"Bearer {str(user['token']).strip()}"))
    if isinstance(user.get("exec"), dict):
        return ExecCredentials(exec_plugin(user["exec"], found.cluster, where))
    provider = user.get("auth-provider")
    if isinstance(provider, dict):
        if provider.get("name") != "oidc":
            raise UsageError(
                f"{where}.auth-provider {provider.get('name')!r} is not supported; kubectl no longer supports it "
                "either: use the exec plugin that replaces it"
            )
        settings = provider.get("config")
        store = TokenStore(found.user_file, found.user_name)
        return OIDCCredentials(oidc_provider(settings if isinstance(settings, dict) else {}, where), store)
    if user.get("username"):
        return FixedCredentials(Credential(authorization=_basic(user)))
    return FixedCredentials()


def _basic(user: Mapping[str, Any]) -> str:
    return "Basic " + b64encode(f"{user['username']}:{user.get('password') or ''}".encode()).decode()


def _impersonation(found: Context) -> PrivateHeaders:
    """Return the headers for impersonation."""
    user = found.user
    headers = PrivateHeaders()
    if user.get("as"):
        headers["Impersonate-User"] = str(user["as"])
    if user.get("as-uid"):
        headers["Impersonate-Uid"] = str(user["as-uid"])
    for group in user.get("as-groups") or ():
        headers.add("Impersonate-Group", str(group))
    for name, values in (user.get("as-user-extra") or {}).items():
        for value in values:
            headers.add(f"Impersonate-Extra-{quote(str(name), safe='')}", str(value))
    return headers
