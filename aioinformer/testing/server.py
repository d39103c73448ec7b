"""An API server in this process: real HTTP on loopback, behaving as kube-apiserver does where clients can see it."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from aioinformer.errors import UsageError
from aioinformer.testing import statuses
from aioinformer.testing.answers import json_answer, status_answer, text_answer
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.discovery import VERSION, discovery_document
from aioinformer.testing.encoding import decode, encode_plain
from aioinformer.testing.fault_effects import FaultEffects
from aioinformer.testing.faults import FAULTS, Fault, FaultSet
from aioinformer.testing.handlers import ResourceHandlers
from aioinformer.testing.housekeeping import Housekeeper
from aioinformer.testing.kubeconfigs import write_kubeconfig
from aioinformer.testing.listening import Listener
from aioinformer.testing.openapi_answers import openapi_answer
from aioinformer.testing.patching import patch_object
from aioinformer.testing.routes import Target, UnknownPath, find_target
from aioinformer.testing.served import Registry, Served
from aioinformer.testing.storage import Backup, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from aioinformer.resources import Resource

_log = logging.getLogger(__name__)

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_LARGEST_BODY = 3 * 1024 * 1024
_LONGEST_LOG = 100_000
_SHUTDOWN = 1.0


@dataclass(slots=True)
class RequestEntry:
    """One line of the server's request log.

    Attributes:
        method: HTTP method.
        path: as sent.
        query: first value of each parameter.
        verb: "list", "watch" and so on; "discovery" or "other" for what is about no resource.
        resource: `deployments.apps`, "" for none.
        at: by the server's clock.
        status: of the answer; 0 while there is none, and if the connection broke before.
    """

    method: str
    path: str
    query: Mapping[str, str]
    verb: str
    resource: str
    at: float
    status: int = 0


class ApiServer:
    """An API server of one's own, for tests, demonstrations and development.

    `async with ApiServer() as server:` listens on loopback. The whole of it runs on the loop that it was entered on.
    Its state can be changed by clients over HTTP and by the plain methods here, which obey the same rules; `load`
    stores objects as they are, status included.

    Args:
        host: address to listen on.
        port: 0 for a free one.
        tokens: bearer tokens that are accepted, with the user's name; None accepts everyone.
        faults_over_http: serve `/_faults`.
        bookmark_interval: seconds between bookmarks of a watch.
        version_wait: seconds that a read waits for a version that has not happened yet.
        watch_timeout: least seconds after which a watch that does not say how long is ended; at most twice that.
        history: changes that are kept for each resource.
        extra_resources: of the catalogue, to be served beside the stable ones.
        clock: seconds since 1970.
        seed: for uids and generated names; None for other ones each time.

    Attributes:
        requests: the latest requests, oldest first.

    Raises:
        OSError: on entering, the port is taken.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: Mapping[str, str] | None = None,
        faults_over_http: bool = False,
        bookmark_interval: float = 60.0,
        version_wait: float = 3.0,
        watch_timeout: float = 1800.0,
        history: int = 20_000,
        extra_resources: Iterable[Resource[Any]] = (),
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        rng = random.Random(seed)
        self.requests: deque[RequestEntry] = deque(maxlen=_LONGEST_LOG)
        self._tokens = None if tokens is None else dict(tokens)
        self._faults_over_http = faults_over_http
        self._clock = clock
        self._registry = Registry(tuple(extra_resources))
        self._storage = Storage(history=history)
        self._cluster = Cluster(self._registry, self._storage, clock, rng)
        self._faults = FaultSet()
        self._handlers = ResourceHandlers(
            self._cluster,
            self._faults,
            bookmark_interval=bookmark_interval,
            version_wait=version_wait,
            watch_timeout=watch_timeout,
            rng=rng,
        )
        self._web = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._listener = Listener(self._web, host, port)
        self._housekeeper = Housekeeper(self._cluster)
        self._effects = FaultEffects(
            self._faults, self._listener, self._storage, self._registry, self._handlers.streams
        )
        for name in _NAMESPACES:
            self.create("namespaces", {"metadata": {"name": name}})

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
        await self._web.shutdown(_SHUTDOWN)
        self._listener.abort_connections()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        host = f"[{self._listener.host}]" if ":" in self._listener.host else self._listener.host
        return f"http://{host}:{self._listener.port}"

    @property
    def resource_version(self) -> str:
        """The version of the last change."""
        return str(self._storage.version)

    @property
    def open_watches(self) -> int:
        """How many watches are being served now."""
        return len(self._handlers.streams)

    def kubeconfig(self, path: str | Path) -> Path:
        """Writes a kubeconfig for this server and returns its absolute path; kubectl and clients accept it."""
        token = next(iter(self._tokens), "") if self._tokens else ""
        return write_kubeconfig(Path(path), self.url, token)

    # State

    def create(
        self, resource: str | Resource[Any], obj: Mapping[str, Any], namespace: str | None = None
    ) -> dict[str, Any]:
        """Creates an object as a client would, and returns it as it is stored.

        Args:
            resource: "pods", "deployments.apps", "apps/v1/deployments" or a `Resource`.
            obj: is not changed; kind and apiVersion may be left out.
            namespace: that of the object, or "default", unless given.

        Raises:
            StatusError: what the API would answer.
        """
        served = self._registry.resolve(resource)
        copy = _copy(obj)
        return _decoded(self._cluster.create(served, _namespace(served, obj, namespace), copy))

    def load(self, resource: str | Resource[Any], objects: Iterable[Mapping[str, Any]]) -> None:
        """Stores objects as they are, status and timestamps included, as if they had always been there.

        Raises:
            StatusError: a name is missing or malformed.
        """
        served = self._registry.resolve(resource)
        for obj in objects:
            self._cluster.load(served, _copy(obj))

    def get(self, resource: str | Resource[Any], name: str, namespace: str | None = None) -> dict[str, Any]:
        """Returns a copy of an object.

        Raises:
            StatusError: 404.
        """
        served = self._registry.resolve(resource)
        return _decoded(served.body(self._cluster.get(served, _namespace(served, {}, namespace), name).body))

    def list(self, resource: str | Resource[Any], namespace: str = "") -> list[dict[str, Any]]:
        """Returns copies of all objects, of one namespace or of all, in the order of a list."""
        served = self._registry.resolve(resource)
        records = self._cluster.collection(served).records(namespace)
        return [_decoded(served.body(record.body)) for record in records]

    def update(
        self,
        resource: str | Resource[Any],
        obj: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> dict[str, Any]:
        """Replaces an object as a client would; with a resourceVersion only if it is the current one.

        Args:
            subresource: "" or "status".

        Raises:
            StatusError: what the API would answer.
        """
        served = self._registry.resolve(resource)
        name = str((obj.get("metadata") or {}).get("name") or "")
        where = _namespace(served, obj, namespace)
        return _decoded(self._cluster.update(served, where, name, _copy(obj), subresource=subresource))

    def patch(
        self,
        resource: str | Resource[Any],
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str = "",
    ) -> dict[str, Any]:
        """Patches an object as a client would.

        Args:
            patch: a mapping, or a list of operations for a JSON patch.

        Raises:
            StatusError: what the API would answer.
        """
        served = self._registry.resolve(resource)
        where = _namespace(served, {}, namespace)
        body, _ = patch_object(
            self._cluster,
            served,
            where,
            name,
            encode_plain(patch),
            content_type,
            {"fieldManager": "aioinformer"},
            subresource=subresource,
        )
        return _decoded(body)

    def delete(self, resource: str | Resource[Any], name: str, namespace: str | None = None) -> dict[str, Any]:
        """Deletes an object as a client would, or begins to if it has finalizers; returns its last state.

        Raises:
            StatusError: what the API would answer.
        """
        served = self._registry.resolve(resource)
        return _decoded(self._cluster.delete(served, _namespace(served, {}, namespace), name)[0])

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

    def fault(self, name: str, **params: Any) -> FaultScope:
        """Makes something go wrong: at once by `await`, or for the length of an `async with`.

        Args:
            name: one of `FAULTS`.
            params: `resources`, `verbs`, `times` (strikes), `duration` (seconds), and those of the fault itself.

        Raises:
            UsageError: no such fault, or no such parameter.
        """
        return FaultScope(self._effects, Fault(name, params))

    # HTTP

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.rel_url.raw_path
        query = {name: request.query[name] for name in request.query}
        entry = RequestEntry(request.method, path, query, "other", "", self._clock())
        self.requests.append(entry)
        try:
            response = await self._answer(request, path, query, entry)
        except statuses.StatusError as error:
            response = status_answer(request, error)
        except UnknownPath:
            response = text_answer("404 page not found\n", 404)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.exception("the server failed to answer %s %s", request.method, path)
            response = status_answer(request, statuses.internal_error(f"{type(error).__name__}: {error}"))
        entry.status = response.status
        return response

    async def _answer(
        self, request: web.BaseRequest, path: str, query: Mapping[str, str], entry: RequestEntry
    ) -> web.StreamResponse:
        if self._faults_over_http and path.startswith("/_faults"):
            return await self._fault_request(request, path)
        try:
            target = find_target(self._registry, request.method, path, query)
        except (statuses.StatusError, UnknownPath):
            await self._effects.intercept(request, Target(request.method, path, query))
            raise
        entry.verb = target.verb
        entry.resource = target.served.resource.group_resource if target.served else ""
        replaced = await self._effects.intercept(request, target)
        if replaced is not None:
            return replaced
        self._authenticate(request)
        if target.served is not None:
            if request.content_length and request.content_length > _LARGEST_BODY:
                message = f"Request entity too large: limit is {_LARGEST_BODY}"
                raise statuses.StatusError(413, "RequestEntityTooLarge", message, details={})
            return await self._handlers.answer(request, target)
        return self._about_itself(request, path)

    def _authenticate(self, request: web.BaseRequest) -> None:
        if self._tokens is None:
            return
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or token.strip() not in self._tokens:
            raise statuses.unauthorized()

    def _about_itself(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        plain = path.rstrip("/") or "/"
        if plain in ("/healthz", "/livez", "/readyz"):
            return text_answer("ok")
        if plain == "/version":
            return json_answer(request, encode_plain(VERSION))
        if plain.startswith("/openapi"):
            definitions = [decode(record.body) for record in self._storage.collection(_CRDS).records()]
            return openapi_answer(request, plain, definitions)
        if plain in ("/api", "/apis") or plain.startswith(("/api/", "/apis/")):
            address = f"{self._listener.host}:{self._listener.port}"
            found = discovery_document(self._registry, plain, request.headers.get("Accept", ""), address)
            if found is not None:
                return json_answer(request, encode_plain(found[0]), headers=found[1])
        if plain == "/":
            paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
            return json_answer(request, encode_plain({"paths": paths}))
        raise UnknownPath(path)

    async def _fault_request(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        name = path.removeprefix("/_faults").strip("/")
        if request.method == "GET" and not name:
            kinds = {
                name: {"about": kind.about, "params": dict(kind.defaults)} for name, kind in sorted(FAULTS.items())
            }
            active = [fault.describe() for fault in self._faults.active()]
            return json_answer(request, encode_plain({"faults": kinds, "active": active}))
        if name not in FAULTS:
            raise statuses.StatusError(404, "NotFound", f"there is no fault named {name!r}; GET /_faults lists them")
        if request.method == "DELETE":
            ended = self._faults.active(name)
            for fault in ended:
                await self._effects.end(fault)
            return json_answer(request, encode_plain({"ended": [fault.describe() for fault in ended]}))
        if request.method != "POST":
            raise statuses.method_not_allowed()
        try:
            params = json.loads(await request.read() or b"{}")
            if not isinstance(params, dict):
                raise UsageError("the parameters of a fault must be a JSON object")
            fault = Fault(name, params)
            if name == "outage" and not fault.params["duration"]:
                raise UsageError("an outage ends by itself only: give it a duration in seconds")
        except ValueError as error:
            raise statuses.bad_request(f"the parameters are not JSON: {error}") from None
        except UsageError as error:
            raise statuses.bad_request(str(error)) from None
        self._effects.start_soon(fault)
        return json_answer(request, encode_plain(fault.describe()), status=201)


class FaultScope:
    """A fault that is about to start: `await` it, or use it as an async context manager that ends it."""

    def __init__(self, effects: FaultEffects, fault: Fault) -> None:
        self._effects = effects
        self.fault = fault

    def __await__(self) -> Any:
        return self._start().__await__()

    async def _start(self) -> Fault:
        await self._effects.start(self.fault)
        return self.fault

    async def __aenter__(self) -> Fault:
        return await self._start()

    async def __aexit__(self, *_: object) -> None:
        await self._effects.end(self.fault)


_CRDS = "customresourcedefinitions.apiextensions.k8s.io"


def _namespace(served: Served, obj: Mapping[str, Any], namespace: str | None) -> str:
    if not served.resource.namespaced:
        return ""
    if namespace is None:
        namespace = (obj.get("metadata") or {}).get("namespace")
    return namespace or "default"


def _copy(obj: Mapping[str, Any]) -> dict[str, Any]:
    return _decoded(encode_plain(obj))


def _decoded(body: bytes) -> dict[str, Any]:
    obj: dict[str, Any] = decode(body)
    return obj
