"""An API server in your own process: real HTTP on loopback that behaves like kube-apiserver to clients."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from aioinformer.errors import UsageError
from aioinformer.resources.resource import Resource
from aioinformer.testing.access.authz import Access
from aioinformer.testing.api.served import Registry
from aioinformer.testing.http.fault_effects import FaultEffects
from aioinformer.testing.http.faults import Fault, FaultScope, FaultSet
from aioinformer.testing.http.handlers import ResourceHandlers
from aioinformer.testing.http.listener import Listener
from aioinformer.testing.http.router import RequestEntry, Router
from aioinformer.testing.server.contents import Contents
from aioinformer.testing.state.cluster import Cluster
from aioinformer.testing.state.housekeeping import Housekeeper
from aioinformer.testing.state.object_store import ObjectStore
from aioinformer.testing.state.storage import Backup, Storage

if TYPE_CHECKING:
    from types import TracebackType

    from aioinformer.testing.access.certificates import Authority
    from aioinformer.testing.http.listener import OriginChecks
    from aioinformer.testing.state.admission import Admission

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_ADMINISTRATOR = "admin,system:masters"
_SHUTDOWN = 1.0


class ApiServer(Contents):
    """An API server for tests, demonstrations and development.

    `async with ApiServer() as server:` listens on loopback. The server runs on the event loop on which you enter it.
    Clients change its state over HTTP, and you change it by the plain methods here; both obey the same rules. `load`
    stores objects as they are, status included.

    Args:
        host: address to listen on.
        port: 0 for a free one.
        tokens: accepted bearer tokens, each with the user's name and, after commas, the groups (members of
            "system:masters" may do everything); None takes every client for the administrator.
        authorization_mode: "RBAC" to let roles and their bindings decide, "AlwaysAllow" to allow everything.
        tls: speak HTTPS, with a certificate of an authority that the server creates. kubectl sends tokens only over
            TLS. Needs the extra "testing".
        faults_over_http: serve `/_faults`.
        guarded: refuse requests from elsewhere, as `aioinformer serve` does: on loopback, requests whose `Host` or
            `Origin` is not on loopback; with `tokens`, all requests without a credential except health checks and the
            version, `/_faults` included; and fault parameters that are not sent as JSON.
        bookmark_interval: seconds between bookmarks of a watch.
        version_wait: seconds that a read waits for a resourceVersion in the future.
        watch_timeout: least seconds after which a watch without `timeoutSeconds` ends; it lasts at most twice as long.
        history: changes that are kept for each resource.
        extra_resources: resources of the catalogue to serve besides the stable ones.
        clock: seconds since 1970.
        seed: for uids and generated names; None for different ones each time.
        webhook_services: the services of admission webhooks: "namespace/name" -> URL such as "https://127.0.0.1:9443".
            Requests call webhooks, and the methods here do not. You may change the mapping later.

    Raises:
        UsageError: TLS needs trustme, which is missing.
        OSError: on entering: the port is taken.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: Mapping[str, str] | None = None,
        authorization_mode: Literal["AlwaysAllow", "RBAC"] = "AlwaysAllow",
        tls: bool = False,
        faults_over_http: bool = False,
        guarded: bool = False,
        bookmark_interval: float = 60.0,
        version_wait: float = 3.0,
        watch_timeout: float = 1800.0,
        history: int = 20_000,
        extra_resources: Iterable[Resource[Any]] = (),
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        webhook_services: Mapping[str, str] | None = None,
    ) -> None:
        rng = random.Random(seed)
        faults = FaultSet()
        self._faults = faults

        def now() -> float:
            return clock() + faults.clock_skew()

        self._tokens = None if tokens is None else dict(tokens)
        registry = Registry(tuple(extra_resources))
        self._storage = Storage(history=history)
        super().__init__(Cluster(ObjectStore(registry, self._storage), now, rng))
        if authorization_mode not in ("AlwaysAllow", "RBAC"):
            raise UsageError(f'authorization_mode must be "AlwaysAllow" or "RBAC", not {authorization_mode!r}')
        access = Access(self._cluster, self._tokens, rbac=authorization_mode == "RBAC")
        self._access = access
        self._cluster.load_admission = lambda: _admission(self._cluster, access)
        self._handlers = ResourceHandlers(
            self._cluster,
            self._access,
            self._faults,
            bookmark_interval=bookmark_interval,
            version_wait=version_wait,
            watch_timeout=watch_timeout,
            rng=rng,
            webhook_services={} if webhook_services is None else webhook_services,
        )
        self._authority = _authority() if tls else None
        secured = None if self._authority is None else self._authority.context(host)
        self._listener = Listener(lambda request: self._router.handle(request), host, port, secured)
        self._housekeeper = Housekeeper(self._cluster)
        self._effects = FaultEffects(self._faults, self._listener, self._storage, registry, self._handlers.streams)
        self._router = Router(
            registry,
            self._storage,
            self._handlers,
            self._faults,
            self._effects,
            access=self._access,
            faults_over_http=faults_over_http,
            origin_checks=_origin_checks(host, self._access) if guarded else None,
            clock=now,
        )
        for name in _NAMESPACES:
            self.load("namespaces", [_namespace(name, self._cluster.now())])
        if authorization_mode == "RBAC":
            from aioinformer.testing.access.rbac import create_bootstrap_policy

            create_bootstrap_policy(self._cluster, rng)
        # Watches can start from here at the earliest; a version that a client invents, such as 1, has expired.
        self._storage.compact()

    async def __aenter__(self) -> Self:
        await self._listener.open()
        self._housekeeper.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End watches cleanly, then close the server, within about a second. Idempotent."""
        self._listener.close()
        await self._effects.stop()
        await self._housekeeper.stop()
        for stream in list(self._handlers.streams):
            stream.stop()
        await self._listener.shutdown(_SHUTDOWN)

    @property
    def url(self) -> str:
        """The address that the server listens on, without a slash at the end."""
        if ":" in self._listener.host:
            host = f"[{self._listener.host}]"
        else:
            host = self._listener.host
        return f"{'https' if self._authority else 'http'}://{host}:{self._listener.port}"

    @property
    def certificate_authority(self) -> bytes:
        """The certificate that clients must trust, in PEM; b"" without TLS."""
        return b"" if self._authority is None else self._authority.certificate

    @property
    def requests(self) -> deque[RequestEntry]:
        """The latest requests, oldest first. You may clear it."""
        return self._router.requests

    @property
    def resource_version(self) -> str:
        """The resourceVersion of the last change."""
        return str(self._storage.version)

    @property
    def open_watches(self) -> int:
        """The number of open watches."""
        return len(self._handlers.streams)

    def kubeconfig(self, path: str | Path, *, user: str = "", certificate: bool = False) -> Path:
        """Write a kubeconfig for this server, for kubectl and other clients, and return its absolute path.

        Args:
            path: is replaced if it exists.
            user: the user's name and, after commas, the groups; a new token is issued. The default is the user of the
                first of `tokens`, or the administrator. kubectl sends tokens only over TLS.
            certificate: issue a certificate instead of a token: its common name is the user's name, its organizations
                are the groups.

        Raises:
            UsageError: certificates need TLS.
        """
        from aioinformer.testing.access.certificates import write_kubeconfig

        if certificate:
            if self._authority is None:
                raise UsageError("users have certificates by TLS only: make the server with tls=True")
            name, *groups = (user or _ADMINISTRATOR).split(",")
            issued = self._authority.issue(name, groups)
            return write_kubeconfig(Path(path), self.url, authority=self.certificate_authority, certificate=issued)
        token = next(iter(self._tokens or ()), "")
        if self._authority is not None and not token:
            # Without any credentials kubectl asks for a user and a password.
            user = user or _ADMINISTRATOR
        if user:
            token = self._access.authn.token_of(user)
        return write_kubeconfig(Path(path), self.url, token, self.certificate_authority)

    def compact(self) -> str:
        """Forget all history, as etcd does every five minutes. Return the oldest resourceVersion that is left."""
        return str(self._storage.compact())

    def backup(self) -> Backup:
        """Return a copy of the current state for `restore`."""
        return self._storage.backup()

    def restore(self, backup: Backup) -> None:
        """Go back to an earlier state, version counter included, as after a restore of etcd."""
        self._effects.restore(backup)

    def fault(self, name: str, /, **params: Any) -> FaultScope:
        """Start a fault: immediately by `await`, or for an `async with` block.

        Args:
            name: one of `FAULTS`.
            params: `resources`, `verbs`, `times` (strikes), `duration` (seconds), and the parameters of the fault
                itself.

        Raises:
            UsageError: unknown fault or parameter.
        """
        return FaultScope(self._effects, Fault(name, params))


# Few servers need the modules below. They are imported where needed, so that most tests start faster.


def _admission(cluster: Cluster, access: Access) -> Admission:
    from aioinformer.testing.kinds.builtin import BuiltinAdmission

    return BuiltinAdmission(cluster, access)


def _authority() -> Authority:
    from aioinformer.testing.access.certificates import Authority

    return Authority()


def _origin_checks(host: str, access: Access) -> OriginChecks:
    from aioinformer.testing.http.listener import OriginChecks

    return OriginChecks(host, access)


def _namespace(name: str, now: str) -> dict[str, Any]:
    """Return an initial namespace as `ApiServer.create` would store it."""
    labels: dict[str, Any] = {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}
    owned = {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": labels}}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/metadata.name": name},
            "managedFields": [
                {"manager": "aioinformer", "operation": "Update", "apiVersion": "v1", "time": now, **owned}
            ],
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


class FaultController:
    """Start faults, and end the remaining ones on exit. An async context manager.

    `async with faults("outage"):` starts a fault for the block. `await faults.start("throttle")` starts one until it is
    ended. Names and parameters are those of `ApiServer.fault`.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._scopes: list[FaultScope] = []

    def __call__(self, name: str, /, **params: Any) -> FaultScope:
        """Return a fault for an `async with` block.

        Raises:
            UsageError: unknown fault or parameter.
        """
        scope = self._server.fault(name, **params)
        self._scopes.append(scope)
        return scope

    async def start(self, name: str, /, **params: Any) -> Fault:
        """Start a fault; it lasts until it is ended, or as long as its parameters say.

        Raises:
            UsageError: unknown fault or parameter.
        """
        return await self(name, **params)

    async def end(self, name: str | None = None) -> list[Fault]:
        """End the active faults of that name, or all of them, and return those that ended."""
        ended = [scope for scope in self._scopes if scope.fault.active and name in (None, scope.fault.name)]
        for scope in ended:
            await scope.end()
        self._scopes = [scope for scope in self._scopes if scope.fault.active]
        return [scope.fault for scope in ended]

    @property
    def active(self) -> list[Fault]:
        """The active faults, oldest first."""
        return [scope.fault for scope in self._scopes if scope.fault.active]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()
