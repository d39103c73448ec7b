"""An API server in this process: real HTTP on loopback, behaving as kube-apiserver does where clients can see it."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from aioinformer.errors import UsageError
from aioinformer.testing.access.authz import Access
from aioinformer.testing.api.served import Registry
from aioinformer.testing.http.faults.effects import FaultEffects
from aioinformer.testing.http.faults.kinds import Fault, FaultSet
from aioinformer.testing.http.faults.scope import FaultScope
from aioinformer.testing.http.handlers import ResourceHandlers
from aioinformer.testing.http.listener import Listener
from aioinformer.testing.http.router import RequestEntry, Router
from aioinformer.testing.server.contents import Contents
from aioinformer.testing.state.admission import is_installed, load_admission
from aioinformer.testing.state.cluster import Cluster
from aioinformer.testing.state.housekeeping import Housekeeper
from aioinformer.testing.state.object_store import ObjectStore
from aioinformer.testing.state.storage import Backup, Storage

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from aiohttp import web

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.access.certificates import Authority
    from aioinformer.testing.http.origin_checks import OriginChecks
    from aioinformer.testing.state.persistence.durable import Database

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_ADMINISTRATOR = "admin,system:masters"
_SHUTDOWN = 1.0


class ApiServer(Contents):
    """An API server of one's own, for tests, demonstrations and development.

    `async with ApiServer() as server:` listens on loopback. The whole of it runs on the loop that it was entered on.
    Its state can be changed by clients over HTTP and by the plain methods here, which obey the same rules; `load`
    stores objects as they are, status included.

    Args:
        host: address to listen on.
        port: 0 for a free one.
        tokens: bearer tokens that are accepted, with the user's name and, after commas, his groups (members of
            "system:masters" may do everything); None takes everyone for the administrator.
        authorization_mode: "RBAC" to let roles and their bindings decide, "AlwaysAllow" to let everyone do everything.
        tls: speak HTTPS, with a certificate of an authority that the server makes for itself; kubectl sends tokens only
            so. Needs the extra "testing".
        faults_over_http: serve `/_faults`.
        guarded: refuse what comes from elsewhere, as `aioinformer serve` does: on loopback, requests whose `Host` or
            `Origin` is not of loopback; with `tokens`, everything but health checks and the version without a
            credential, `/_faults` included; and parameters of faults that are not sent as JSON.
        bookmark_interval: seconds between bookmarks of a watch.
        version_wait: seconds that a read waits for a version that has not happened yet.
        watch_timeout: least seconds after which a watch that does not say how long is ended; at most twice that.
        history: changes that are kept for each resource.
        extra_resources: of the catalogue, to be served beside the stable ones.
        clock: seconds since 1970.
        seed: for uids and generated names; None for other ones each time.
        database: a SQLite file that keeps the state; a server that is made with it later goes on from there.

    Raises:
        UsageError: the database is another server's, or none; there is TLS to speak and no trustme.
        OSError: on entering, the port is taken.
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
        database: str | Path | None = None,
    ) -> None:
        rng = random.Random(seed)
        faults = self._faults = FaultSet()

        def now() -> float:
            return clock() + faults.clock_skew()

        self._tokens = None if tokens is None else dict(tokens)
        registry = Registry(tuple(extra_resources), converted=is_installed())
        self._storage = Storage(history=history)
        super().__init__(Cluster(ObjectStore(registry, self._storage), now, rng))
        if authorization_mode not in ("AlwaysAllow", "RBAC"):
            raise UsageError(f'authorization_mode must be "AlwaysAllow" or "RBAC", not {authorization_mode!r}')
        access = self._access = Access(self._cluster, self._tokens, rbac=authorization_mode == "RBAC")
        self._cluster.load_admission = lambda: load_admission(self._cluster, access)
        self._handlers = ResourceHandlers(
            self._cluster,
            self._access,
            self._faults,
            bookmark_interval=bookmark_interval,
            version_wait=version_wait,
            watch_timeout=watch_timeout,
            rng=rng,
        )
        self._authority = _authority() if tls else None
        secured = None if self._authority is None else self._authority.context(host)
        self._listener = Listener(self._answer, host, port, secured)
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
        self._database = None if database is None else self._use(Path(database))
        known = {obj["metadata"]["name"] for obj in self.list("namespaces")}
        for name in _NAMESPACES:
            if name not in known:
                self.load("namespaces", [_namespace(name, self._cluster.now())])
        if authorization_mode == "RBAC":
            from aioinformer.testing.access.bootstrap_policy import create_bootstrap_policy

            create_bootstrap_policy(self._cluster, rng)
        # What can be watched begins with the start of a server; versions that clients make up, such as 1, are too old.
        self._storage.compact()

    # Life

    async def __aenter__(self) -> Self:
        await self._listener.open()
        self._housekeeper.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Ends watches cleanly, then everything else, within about a second; idempotent."""
        self._listener.close()
        await self._effects.stop()
        await self._housekeeper.stop()
        for stream in list(self._handlers.streams):
            stream.stop()
        await self._listener.shutdown(_SHUTDOWN)
        if self._database is not None:
            self._database.close()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        host = f"[{self._listener.host}]" if ":" in self._listener.host else self._listener.host
        return f"{'https' if self._authority else 'http'}://{host}:{self._listener.port}"

    @property
    def certificate_authority(self) -> bytes:
        """The certificate that clients are to trust, in PEM; b"" without TLS."""
        return b"" if self._authority is None else self._authority.certificate

    @property
    def requests(self) -> deque[RequestEntry]:
        """The latest requests, oldest first; may be cleared."""
        return self._router.requests

    @property
    def resource_version(self) -> str:
        """The version of the last change."""
        return str(self._storage.version)

    @property
    def open_watches(self) -> int:
        """How many watches are being served now."""
        return len(self._handlers.streams)

    def kubeconfig(self, path: str | Path, *, user: str = "", certificate: bool = False) -> Path:
        """Writes a kubeconfig for this server and returns its absolute path; kubectl and clients accept it.

        Args:
            path: is replaced if it exists.
            user: whose it is: his name and, after commas, his groups; he gets a token of his own. By default that of
                the first of `tokens`, or of the administrator. kubectl sends tokens by TLS only.
            certificate: give him a certificate instead of a token: his name in it is the common name, his groups are
                the organizations.

        Raises:
            UsageError: certificates need TLS.
        """
        from aioinformer.testing.access.kubeconfigs import write_kubeconfig

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

    # State as a whole

    def compact(self) -> str:
        """Forgets all history, as etcd does every five minutes; returns the oldest version that is left."""
        return str(self._storage.compact())

    def backup(self) -> Backup:
        """Keeps the state of now, for `restore`."""
        return self._storage.backup()

    def restore(self, backup: Backup) -> None:
        """Goes back to an earlier state, version counter included, as operators do after a disaster."""
        self._effects.restore(backup)

    # Faults

    def fault(self, name: str, /, **params: Any) -> FaultScope:
        """Makes something go wrong: at once by `await`, or for the length of an `async with`.

        Args:
            name: one of `FAULTS`.
            params: `resources`, `verbs`, `times` (strikes), `duration` (seconds), and those of the fault itself.

        Raises:
            UsageError: no such fault, or no such parameter.
        """
        return FaultScope(self._effects, Fault(name, params))

    def _use(self, path: Path) -> Database:
        from aioinformer.testing.state.persistence.durable import Database
        from aioinformer.testing.state.persistence.loading import load_database

        database = Database(path)
        load_database(self._cluster, database)
        self._cluster.store.changed = database.note
        self._storage.restored = database.replace
        return database

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._router.handle(request)


# What few servers need is imported by those alone: most tests start a server, and should not wait for it.


def _authority() -> Authority:
    from aioinformer.testing.access.certificates import Authority

    return Authority()


def _origin_checks(host: str, access: Access) -> OriginChecks:
    from aioinformer.testing.http.origin_checks import OriginChecks

    return OriginChecks(host, access)


def _namespace(name: str, now: str) -> dict[str, Any]:
    """A namespace of every cluster, as `ApiServer.create` would store it."""
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
