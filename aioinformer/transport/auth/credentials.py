"""Connect as kubectl does: by a kubeconfig, or by the service account of the pod.

Tokens and certificates come from sources that renew them before they expire and when the server refuses them.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote, urlsplit

from aioinformer.concurrency import running_loop
from aioinformer.errors import UsageError
from aioinformer.exports import lazy_type
from aioinformer.logs import get_logger
from aioinformer.transport.auth.api_client import Access, LazyApiClient
from aioinformer.transport.auth.kubeconfig import Context, kubeconfig_paths, load_context, tls_of
from aioinformer.transport.auth.refusals import Owner
from aioinformer.transport.auth.secret import PrivateHeaders, Secret
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.auth.tokens import Credential, Credentials, FixedCredentials, bearer_flaw, obtain
from aioinformer.transport.clients import ApiClient
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.proxies import proxy_of, stays_here
from aioinformer.transport.session import TLS
from aioinformer.transport.slots import DEFAULT_REQUESTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.client.client import Client
else:
    Client = lazy_type("aioinformer.client.client", "Client")


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which kubelet puts token, certificate authority and namespace of a pod."""

_log = get_logger("aioinformer.transport")

#: The fields of a user that prove who it is.
_CREDENTIALS: Final = (
    "token",
    "tokenFile",
    "exec",
    "auth-provider",
    "username",
    "client-certificate",
    "client-certificate-data",
)


class ConnectionTransport(HttpTransport):
    """The transport of a connection. It also has the connection's `ApiClient`."""

    def __init__(self, access: Access, api_client: LazyApiClient, max_requests: int | None) -> None:
        proxy = access.proxy
        super().__init__(
            access.server,
            credentials=access.credentials,
            headers=access.headers,
            ssl=access.tls,
            proxy=None if proxy is None else str(proxy.url),
            max_requests=max_requests,
            owner=access.owner,
        )
        self._api_client = api_client

    @property
    def api_client(self) -> ApiClient:
        """The client; see `Connection.api_client`."""
        return self._api_client.get()


class Connection:
    """A connection to one API server. Use it as an async context manager, or call `aclose()` at the end.

    `connect` makes connections.

    Attributes:
        transport: for informers and clients.
        namespace: the default namespace of the context or pod.
        context: name of the context, "" in a pod.
    """

    __slots__ = ("_api_client", "_client", "context", "namespace", "transport")

    def __init__(
        self, access: Access, namespace: str, context: str, max_requests: int | None = DEFAULT_REQUESTS
    ) -> None:
        self._api_client = LazyApiClient(access)
        self._client: Client | None = None
        self.transport = ConnectionTransport(access, self._api_client, max_requests)
        self.namespace = namespace
        self.context = context

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.context or 'in a pod'}: {self.transport.base_url}>"

    @property
    def client(self) -> Client:
        """Reads and writes objects over `transport`; always the same client, with the default options."""
        if self._client is None:
            from aioinformer.client.client import Client

            self._client = Client(self.transport)
        return self._client

    @property
    def api_client(self) -> ApiClient:
        """An `ApiClient` of kubernetes_asyncio with the same server and credentials; always the same one.

        It does not use client certificates of a plugin: it loads its certificate once, from files. The first access
        imports kubernetes_asyncio, which blocks the event loop for half a second. `load_api_client` does not.
        `aclose()` closes the client.
        """
        return self._api_client.get()

    async def load_api_client(self) -> ApiClient:
        """Return `api_client`, after importing kubernetes_asyncio in a thread.

        Raises:
            UsageError: kubernetes_asyncio cannot be imported, or the connection is closed.
        """
        return await self._api_client.load()

    async def aclose(self) -> None:
        """Close transport and client. May be repeated."""
        try:
            await self.transport.aclose()
        finally:
            await self._api_client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def connect(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    in_cluster: bool | None = None,
    max_requests: int | None = DEFAULT_REQUESTS,
) -> Connection:
    """Find the cluster as kubectl does, and return a connection to it. No request is sent yet.

    The first of these that exists is used: `kubeconfig`, the files of KUBECONFIG (merged), ~/.kube/config, and the
    service account of the pod. Plugins and OIDC providers are used at the first request, not here.

    Args:
        kubeconfig: a file, which must exist.
        context: name of a context, None for the current one.
        in_cluster: True to use only the service account, False never to use it, None to try it last.
        max_requests: how many requests are under way at once; see `HttpTransport`.

    Raises:
        UsageError: there is no configuration, or it is wrong: the message names file, field and remedy. Or no event
            loop of asyncio runs in this thread.
    """
    running_loop("connect() looks for a cluster")
    if in_cluster and (kubeconfig is not None or context is not None):
        raise UsageError("in_cluster=True uses the pod's service account; leave out kubeconfig and context")
    found = None
    if not in_cluster:
        found = await asyncio.to_thread(_find_context, kubeconfig, context, in_cluster is None)
    return await (_connect_in_cluster(max_requests) if found is None else _connect_to_context(found, max_requests))


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


async def _connect_in_cluster(max_requests: int | None) -> Connection:
    token = TokenFile(SERVICE_ACCOUNT / "token")
    authority = SERVICE_ACCOUNT / "ca.crt"
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    try:
        if not host or not port:
            raise UsageError("the environment does not name the server")
        await asyncio.to_thread(token.check)
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        owner = Owner(f"service account {SERVICE_ACCOUNT}", "see whether the ServiceAccount still exists")
        access = Access(server, TLS(authority), token, True, PrivateHeaders(), owner=owner)
        connection = Connection(access, await asyncio.to_thread(_own_namespace), "", max_requests)
        await connection.transport.prepare()
    except UsageError as error:
        raise UsageError(
            f"the pod's service account cannot be used: {error}; it needs KUBERNETES_SERVICE_HOST, "
            f"KUBERNETES_SERVICE_PORT and the files below {SERVICE_ACCOUNT}"
        ) from error
    return connection


def _own_namespace() -> str:
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


async def _connect_to_context(found: Context, max_requests: int | None) -> Connection:
    access = await asyncio.to_thread(_access_of, found)
    if isinstance(access.credentials, FixedCredentials):
        authenticates = bool((await obtain(access.credentials)).authorization)
        access = replace(access, authenticates=authenticates)
    try:
        connection = Connection(access, found.namespace, found.name, max_requests)
    except UsageError as error:
        reason = str(error).removeprefix("base_url ")
        raise UsageError(f"{found.cluster_where}.server {reason}") from error
    try:
        await connection.transport.prepare()
    except UsageError as error:
        raise UsageError(f"kubeconfig {found.user_file}, context {found.name}: {error}") from error
    return connection


def _access_of(found: Context) -> Access:
    server = found.cluster["server"].rstrip("/")
    credentials: Credentials = FixedCredentials()
    if found.user_name:
        owner = Owner(found.where, "log in again, or correct the user")
    else:
        owner = _nobody(found)
    parts = urlsplit(server)
    if parts.scheme != "http" or stays_here(parts.hostname):
        credentials = _credentials_of(found)
    elif given := [name for name in _CREDENTIALS if found.user.get(name)]:
        # As client-go: everybody on the way could read them. To the machine itself, there is no way.
        unused = f"{found.where}.{given[0]} is not sent, because {found.cluster_where}.server begins with http://"
        _log.warning("%s; use https", unused)
        owner = Owner(unused)
    return Access(
        server=server,
        tls=tls_of(found),
        credentials=credentials,
        authenticates=True,
        headers=_impersonation(found),
        proxy=proxy_of(Secret(found.cluster.get("proxy-url", "")), f"{found.cluster_where}.proxy-url"),
        owner=owner,
    )


def _nobody(found: Context) -> Owner:
    return Owner(f"kubeconfig {found.user_file}: contexts[{found.name}] names no user", "add one")


def _credentials_of(found: Context) -> Credentials:
    """Return the source of the user's credentials. A token precedes a plugin, as in client-go."""
    user = found.user
    where = found.where
    if user.get("token") and (flaw := bearer_flaw(user["token"])) is not None:
        raise UsageError(f"{where}.token {flaw}; log in again")
    if user.get("tokenFile"):
        file = TokenFile(user["tokenFile"], fallback=_bearer(user))
        try:
            file.check()
        except UsageError as error:
            raise UsageError(f"{where}.tokenFile: {error}") from error
        return file
    if user.get("token"):
        return FixedCredentials(_bearer(user))
    if "exec" in user:
        from aioinformer.transport.auth.exec_plugin import ExecCredentials, exec_plugin

        return ExecCredentials(exec_plugin(user["exec"], found.cluster, where))
    provider = user.get("auth-provider")
    if provider is not None:
        if provider.get("name") != "oidc":
            raise UsageError(
                f"{where}.auth-provider {provider.get('name')!r} is not supported; kubectl no longer supports it "
                "either: use the exec plugin that replaces it"
            )
        from aioinformer.transport.auth.oidc import OIDCCredentials, TokenStore, oidc_provider

        store = TokenStore(found.user_file, found.user_name)
        return OIDCCredentials(oidc_provider(provider.get("config", {}), where), store)
    if user.get("username"):
        return FixedCredentials(Credential(authorization=_basic(user)))
    return FixedCredentials()


def _bearer(user: Mapping[str, Any]) -> Credential:
    """Return the credential of the field `token`, an empty one if there is none."""
    return Credential(f"Bearer {user['token'].strip()}" if user.get("token") else "")


def _basic(user: Mapping[str, Any]) -> str:
    return "Basic " + b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()


def _impersonation(found: Context) -> PrivateHeaders:
    """Return the headers for impersonation."""
    user = found.user
    headers = PrivateHeaders()
    if user.get("as"):
        headers["Impersonate-User"] = user["as"]
    if user.get("as-uid"):
        headers["Impersonate-Uid"] = user["as-uid"]
    for group in user.get("as-groups", ()):
        headers.add("Impersonate-Group", group)
    for name, values in user.get("as-user-extra", {}).items():
        for value in values:
            headers.add(f"Impersonate-Extra-{quote(name, safe='')}", value)
    return headers
