"""An API server in memory that stores writes, for controllers: watches lag behind, and answers are lost."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer import ListWatch, SharedIndexInformer
from aioinformer.client.requests import APPLY
from aioinformer.client.targets import target_of
from aioinformer.errors import TransportError
from aioinformer.resources import parse_label_selector
from tests.support.cluster import built_in
from tests.support.collection import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.targets import Target
    from aioinformer.transport import HttpRequest

CONFIG_MAPS = built_in("v1/configmaps")
DEPLOYMENTS = built_in("apps/v1/deployments")
PODS = built_in("v1/pods")

_MOMENT = 1e-9
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Watch(Response):
    """An open watch. Events arrive in order, each after the delay of the server.

    Args:
        matches: whether an object is in the collection of the watch.
    """

    def __init__(self, matches: Callable[[dict[str, Any]], bool]) -> None:
        super().__init__()
        self.matches = matches
        self.latest = 0.0

    def send(self, kind: str, raw: bytes, delay: float) -> None:
        loop = asyncio.get_running_loop()
        self.latest = max(self.latest + _MOMENT, loop.time() + delay)  # timers of the same time have no order
        loop.call_at(self.latest, self.feed, b'{"type":"%b","object":%b}\n' % (kind.encode(), raw))


class _Informers:
    """The transport of informers."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def request(self, request: HttpRequest) -> Response:
        await asyncio.sleep(0)
        return self._server.read(request)


class Server:
    """Implements `Transport`.

    Attributes:
        objects: by plural and key.
        writes: the requests that wrote, in the order of their arrival; also those that were refused.
        reads: the requests that read an object or a list, without those of informers.
        delay: returns how long the next event is under way.
        fault: is called with each write; returns "unsent", "before", "after" (the connection breaks before or after
            the server has processed it), "busy" (it asks to try again after a second), a status to answer, or "".
        answers: set, answers of writes arrive. The server has processed them before.
        deleted: the answer to complete deletions: the last state of the "object", a "status", or a "bare" one without
            a uid.
        reading: set, reads are answered, except those of informers.
        opaque: versions are no numbers.
        warning: the text of a warning in the answers to writes.
        refuse_reads: the status of reads, except of those of informers; 0 for none.
    """

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.writes: list[HttpRequest] = []
        self.reads: list[HttpRequest] = []
        self.delay: Callable[[], float] = lambda: 0.0
        self.fault: Callable[[HttpRequest], str] = lambda request: ""
        self.answers = asyncio.Event()
        self.answers.set()
        self.deleted = "status"
        self.reading = asyncio.Event()
        self.reading.set()
        self.opaque = False
        self.warning = ""
        self.refuse_reads = 0
        self._watches: dict[str, list[Watch]] = defaultdict(list)
        self._log: dict[str, list[tuple[int, Any, Any, bytes]]] = defaultdict(list)

    # What tests look at and do.

    def names(self, plural: str = "configmaps") -> list[str]:
        return sorted(self.objects[plural])

    def put(self, plural: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Store an object on behalf of another client."""
        metadata = obj["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        return self._store(plural, key, obj)

    def remove(self, plural: str, key: str) -> dict[str, Any]:
        """Delete an object on behalf of another client."""
        return self._remove(plural, key)

    def hold_answers(self) -> asyncio.Event:
        """Hold back the answers to further writes until the event that is returned is set."""
        self.answers = asyncio.Event()
        return self.answers

    def informer(self, resource: Any = CONFIG_MAPS, namespace: str = "", **options: Any) -> SharedIndexInformer[Any]:
        """Return an informer of this server."""
        own = {name: options.pop(name) for name in list(options) if name in ("label_selector", "field_selector")}
        return SharedIndexInformer(ListWatch(_Informers(self), resource, namespace, **own), **options)

    # Transport.

    async def request(self, request: HttpRequest) -> Response:
        """Implement `Transport`."""
        query = dict(request.query)
        if request.method == "GET":
            self.reads.append(request)
            await asyncio.sleep(0)
            await self.reading.wait()
            if self.refuse_reads:
                return response_of(self.refuse_reads, {"kind": "Status", "code": self.refuse_reads})
            return self.read(request)
        self.writes.append(request)
        await asyncio.sleep(0)
        fault = self.fault(request)
        if fault == "unsent":
            error = TransportError("cannot connect")
            error.unsent = True
            raise error
        if fault == "before":
            raise TransportError("the connection broke")
        if fault == "busy":
            return response_of(503, {"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 1}})
        if fault.isdigit():
            return response_of(int(fault), {"kind": "Status", "code": int(fault)})
        target = target_of(request)
        assert target is not None
        status, body = self._process(target, request, query)
        await self.answers.wait()
        if fault == "after":
            raise TransportError("the connection broke")
        return response_of(status, body, {"Warning": f'299 - "{self.warning}"'} if self.warning else {})

    def read(self, request: HttpRequest) -> Response:
        """Answer a read."""
        target, query = target_of(request), dict(request.query)
        assert target is not None
        if "watch" in query:
            return self._watch(target, query)
        if target.name:
            obj = self.objects[target.plural].get(target.key)
            return response_of(404, _failure(404, "NotFound", target)) if obj is None else response_of(200, obj)
        matches = _matcher(target.namespace, query)
        found = [obj for obj in self.objects[target.plural].values() if matches(obj)]
        begin, limit = int(query.get("continue", 0)), int(query.get("limit", 0)) or len(found)
        more = {"continue": str(begin + limit)} if len(found) > begin + limit else {}
        metadata = {"resourceVersion": self._stamp(), **more}
        return response_of(200, {"kind": "List", "metadata": metadata, "items": found[begin : begin + limit]})

    def _watch(self, target: Target, query: dict[str, str]) -> Response:
        watch = Watch(_matcher(target.namespace, query))
        if "sendInitialEvents" in query:
            return response_of(422, {"kind": "Status", "code": 422, "reason": "Invalid"})
        seen = int(query["resourceVersion"].lstrip("x"))
        for version, old, new, raw in self._log[target.plural]:
            if version > seen:
                self._send(watch, old, new, raw)
        self._watches[target.plural].append(watch)
        return watch

    def _open(self, plural: str) -> list[Watch]:
        return [watch for watch in self._watches[plural] if not watch.closed]

    # Writes.

    def _process(self, target: Target, request: HttpRequest, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        body = _decode(request.body) if request.body else {}
        known = self.objects[target.plural]
        if target.verb == "deletecollection":
            matches = _matcher(target.namespace, query)
            found = {key: obj for key, obj in known.items() if matches(obj)}
            for key in found:
                self._delete(target.plural, key)
            return 200, {"kind": "List", "metadata": {}, "items": list(found.values())}
        if target.verb == "create" and not target.subresource:
            return self._create(target, body)
        obj = known.get(target.key)
        if obj is None and request.headers.get("Content-Type") != APPLY:
            return 404, _failure(404, "NotFound", target)
        if target.verb == "delete":
            return self._delete(target.plural, target.key)
        if target.subresource == "eviction":
            self._delete(target.plural, target.key)
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        if obj is None:
            return self._create(target, _merge({"metadata": {"name": target.name}}, body))
        if target.subresource == "resize":
            return 404, {"kind": "Status", "code": 404, "reason": "NotFound"}
        if target.subresource == "scale":
            obj = self._store(target.plural, target.key, _merge(obj, body))
            identity = {name: value for name, value in obj["metadata"].items() if name != "labels"}
            return 200, {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": identity, "spec": obj["spec"]}
        changed = (
            _merge(obj, body)
            if target.verb == "patch"
            else {**body, "metadata": {**obj["metadata"], **body["metadata"]}}
        )
        if changed == obj:
            return 200, self._shown(target.plural, obj)
        if changed["metadata"].get("deletionTimestamp") and not changed["metadata"].get("finalizers"):
            self._remove(target.plural, target.key)
            return 200, self._shown(target.plural, changed)  # with the version that it had before
        return 200, self._shown(target.plural, self._store(target.plural, target.key, changed))

    def _create(self, target: Target, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        metadata = body["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{self.version + 1}"
        key = f"{target.namespace}/{name}"
        if key in self.objects[target.plural]:
            return 409, _failure(409, "AlreadyExists", target)
        obj = {**body, "metadata": {**metadata, "name": name, "namespace": target.namespace}}
        return 201, self._shown(target.plural, self._store(target.plural, key, obj))

    def _delete(self, plural: str, key: str) -> tuple[int, dict[str, Any]]:
        obj = self.objects[plural][key]
        if obj["metadata"].get("finalizers"):
            return 200, self._shown(plural, self._store(plural, key, _merge(obj, _MARK)))
        self._remove(plural, key)
        if self.deleted == "object":
            return 200, self._shown(plural, obj)  # with the version that it had before
        details = {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}
        more = {"details": details} if self.deleted == "status" else {}
        return 200, {"kind": "Status", "apiVersion": "v1", "status": "Success", **more}

    def _shown(self, plural: str, obj: dict[str, Any]) -> dict[str, Any]:
        return {"kind": _KINDS[plural], "apiVersion": "v1", **obj}

    def _store(self, plural: str, key: str, obj: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        known = self.objects[plural].get(key)
        uid = known["metadata"]["uid"] if known else f"uid-{self.version}"
        stored = {**obj, "metadata": {**obj["metadata"], "uid": uid, "resourceVersion": self._stamp()}}
        self.objects[plural][key] = stored
        self._tell(plural, known, stored)
        return stored

    def _remove(self, plural: str, key: str) -> dict[str, Any]:
        self.version += 1
        known = self.objects[plural].pop(key)
        last = {**known, "metadata": {**known["metadata"], "resourceVersion": self._stamp()}}
        self._tell(plural, last, None)
        return last

    def _tell(self, plural: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        obj = new or old or {}
        raw = _encode({**obj, "metadata": {**obj["metadata"], "resourceVersion": self._stamp()}})
        self._log[plural].append((self.version, old, new, raw))
        for watch in self._open(plural):
            self._send(watch, old, new, raw)

    def _send(self, watch: Watch, old: dict[str, Any] | None, new: dict[str, Any] | None, raw: bytes) -> None:
        was, now = old is not None and watch.matches(old), new is not None and watch.matches(new)
        if was or now:
            watch.send("MODIFIED" if was and now else "ADDED" if now else "DELETED", raw, self.delay())

    def _stamp(self) -> str:
        return f"x{self.version}" if self.opaque else str(self.version)


_KINDS = {
    "configmaps": "ConfigMap",
    "leases": "Lease",
    "leasecandidates": "LeaseCandidate",
    "pods": "Pod",
    "deployments": "Deployment",
}
_MARK = {"metadata": {"deletionTimestamp": "2025-01-01T00:00:00Z"}}


def _matcher(namespace: str, query: dict[str, str]) -> Callable[[dict[str, Any]], bool]:
    labels = parse_label_selector(query["labelSelector"]) if query.get("labelSelector") else None
    _, _, name = query.get("fieldSelector", "").partition("metadata.name=")

    def matches(obj: dict[str, Any]) -> bool:
        metadata = obj["metadata"]
        return (
            (not namespace or metadata["namespace"] == namespace)
            and (labels is None or labels.matches(metadata.get("labels") or {}))
            and (not name or metadata["name"] == name)
        )

    return matches


def _merge(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name) or {}, value) if isinstance(value, dict) else value
    return merged


def _failure(status: int, reason: str, target: Target) -> dict[str, Any]:
    return {"kind": "Status", "code": status, "reason": reason, "details": {"name": target.name}}


def response_of(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """Return an answer with a body."""
    response = Response(status, headers)
    response.feed(_encode(body))
    response.end()
    return response
