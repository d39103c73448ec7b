"""Snapshots: the state of informers and factories as plain data, for `/debug` routes, log lines and bug reports.

Snapshots consist of dicts, lists, strings and numbers, so `json.dumps` accepts them. They contain names and counts, but
never the content of an object, the message of a handler's exception, or a credential. Times are in seconds since the
epoch, durations in seconds. Nothing is recorded for snapshots: they are computed on demand, in any thread.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from aioinformer.reflector.state import HEALTHY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.cache.store import Indexer
    from aioinformer.handlers.listener import ProcessorListener
    from aioinformer.reflector.reflector import Reflector
    from aioinformer.reflector.state import InformerState
    from aioinformer.resources.resource import Resource


class HandlerErrorSnapshot(TypedDict):
    """The last exception of a handler.

    Attributes:
        error: its type, and the file and line that raised it; never its message.
        key: of the object.
        time: when it was raised.
    """

    error: str
    key: str
    time: float


class HandlerCallSnapshot(TypedDict):
    """A running call of a handler.

    Attributes:
        function: the function that was called, with its file and line.
        key: of the object.
        since: when the call began.
        seconds: how long it has been running.
    """

    function: str
    key: str
    since: float
    seconds: float


class HandlerSnapshot(TypedDict):
    """A registered handler.

    Attributes:
        name: of the registration, with the function, its file and line.
        synced: whether the initial list was delivered to it.
        pending: how many notifications are pending, the running call included.
        calls: how often it was called.
        errors: how often it raised.
        last_error: its last exception; None if there was none.
        longest_call: the longest completed call, in seconds, awaiting included.
        current: the running call; None if there is none.
    """

    name: str
    synced: bool
    pending: int
    calls: int
    errors: int
    last_error: HandlerErrorSnapshot | None
    longest_call: float
    current: HandlerCallSnapshot | None


class SourceSnapshot(TypedDict):
    """A collection of the server that is listed and watched.

    Attributes:
        phase: as in `InformerState`.
        reason: why.
        since: when this phase with this reason began; None if the informer was never started.
        healthy: whether the cache follows the server.
        resource_version: the version up to which all changes were received.
        stale_since: when the cache ceased to follow the server; None while it follows.
        last_event: when the server last sent anything; None if it never did. In a quiet cluster, this may be long ago.
        last_event_age: seconds since then.
        attempts: how many consecutive attempts have failed.
        next_retry: when the next attempt is due; None if no retry is scheduled.
        listing: how far the list in progress is; "" without one.
    """

    phase: str
    reason: str
    since: float | None
    healthy: bool
    resource_version: str
    stale_since: float | None
    last_event: float | None
    last_event_age: float | None
    attempts: int
    next_retry: float | None
    listing: str


class ScopeSnapshot(TypedDict):
    """The part of the collection that is watched; "" for no restriction."""

    namespace: str
    label_selector: str
    field_selector: str


class InformerSnapshot(SourceSnapshot):
    """An informer. With several namespaces, the inherited fields describe the one in the worst state.

    Attributes:
        name: as in logs.
        resource: "v1/pods", "apps/v1/deployments".
        scope: the part of the collection that it watches.
        synced: whether the cache contains the initial list.
        objects: the number of objects in the cache.
        skipped: the keys of objects whose last version does not decode.
        skipped_total: how often an object was skipped so far.
        indexes: the names of the indices.
        queued: how many changes are pending between reflector and cache.
        storage: the storage tier.
        handlers: in the order of their registration.
        namespaces: each namespace of an informer of several namespaces.
    """

    name: str
    resource: str
    scope: ScopeSnapshot
    synced: bool
    objects: int
    skipped: list[str]
    skipped_total: int
    indexes: list[str]
    queued: int
    storage: str
    handlers: list[HandlerSnapshot]
    namespaces: dict[str, SourceSnapshot]


class FactorySnapshot(TypedDict):
    """A factory.

    Attributes:
        name: for metrics; "" if it has none.
        time: when this snapshot was taken.
        running: whether it was started and has not stopped.
        ready: the result of `is_ready()`.
        healthy: whether all caches follow the server.
        informers: by the keys of `informers()`.
    """

    name: str
    time: float
    running: bool
    ready: bool
    healthy: bool
    informers: dict[str, InformerSnapshot]


class Observable(Protocol):
    """The part of an informer from which snapshots are made."""

    @property
    def name(self) -> str: ...

    @property
    def resource(self) -> Resource[Any]: ...

    @property
    def state(self) -> InformerState: ...

    @property
    def skipped(self) -> int: ...

    def has_synced(self) -> bool: ...

    def get_indexer(self) -> Indexer[Any]: ...


def source_snapshot(state: InformerState, reflectors: Iterable[Reflector], version: str) -> SourceSnapshot:
    """Return the state of the connection to the server.

    Args:
        state: of the informer.
        reflectors: of the informer.
        version: the resourceVersion up to which all changes were received.
    """
    reflectors = list(reflectors)
    failing = [each for each in reflectors if each.attempts]
    retries = [each.next_retry for each in failing if each.next_retry is not None]
    return {
        "phase": str(state.phase),
        "reason": state.reason,
        "since": state.since or None,
        "healthy": state.phase in HEALTHY,
        "resource_version": version,
        "stale_since": state.stale_since,
        "last_event": state.last_event,
        "last_event_age": None if state.last_event is None else max(0.0, time() - state.last_event),
        "attempts": max((each.attempts for each in failing), default=0),
        "next_retry": min(retries, default=None),
        "listing": "; ".join(filter(None, (each.progress for each in reflectors))),
    }


def handler_snapshot(listener: ProcessorListener[Any]) -> HandlerSnapshot:
    """Return the state of a handler."""
    error = listener.calls.last_error
    call = listener.call()
    return {
        "name": listener.name,
        "synced": bool(listener.synced),
        "pending": listener.pending,
        "calls": listener.backlog.calls,
        "errors": listener.calls.errors,
        "last_error": None if error is None else {"error": error.error, "key": error.key, "time": error.time},
        "longest_call": listener.calls.longest,
        "current": None
        if call is None
        else {"function": call.function, "key": call.key, "since": call.since, "seconds": call.seconds},
    }


def informer_snapshot(
    informer: Observable,
    *,
    reflectors: Mapping[str, Reflector],
    lister_watcher: Any,
    skipped: Iterable[str],
    queued: int,
    storage: str,
    listeners: Iterable[ProcessorListener[Any]],
) -> InformerSnapshot:
    """Return the state of an informer.

    Args:
        informer: the informer.
        reflectors: its reflectors by namespace; a single one by "".
        lister_watcher: the collection that it watches.
        skipped: keys of objects that do not decode.
        queued: how many changes are pending between reflector and cache.
        storage: the storage tier.
        listeners: its handlers.
    """
    indexer = informer.get_indexer()
    source = source_snapshot(informer.state, reflectors.values(), str(indexer.last_store_sync_resource_version()))
    scope: ScopeSnapshot = {
        "namespace": getattr(lister_watcher, "namespace", ""),
        "label_selector": str(getattr(lister_watcher, "label_selector", "")),
        "field_selector": str(getattr(lister_watcher, "field_selector", "")),
    }
    return {
        **source,
        "name": informer.name,
        "resource": informer.resource.gvr,
        "scope": scope,
        "synced": informer.has_synced(),
        "objects": len(indexer),
        "skipped": sorted(skipped),
        "skipped_total": informer.skipped,
        "indexes": sorted(indexer.get_indexers()),
        "queued": queued,
        "storage": storage,
        "handlers": [handler_snapshot(listener) for listener in tuple(listeners)],
        "namespaces": {
            namespace: source_snapshot(reflector.state, [reflector], reflector.last_sync_resource_version)
            for namespace, reflector in reflectors.items()
            if namespace
        },
    }


def factory_snapshot(
    name: str, snapshots: dict[str, InformerSnapshot], *, running: bool, ready: bool
) -> FactorySnapshot:
    """Return the state of a factory.

    Args:
        name: for metrics.
        snapshots: of its informers, by their keys.
        running: whether it was started and has not stopped.
        ready: the result of `is_ready()`.
    """
    return {
        "name": name,
        "time": time(),
        "running": running,
        "ready": ready,
        "healthy": all(each["healthy"] for each in snapshots.values()),
        "informers": snapshots,
    }
