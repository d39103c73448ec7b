"""What informers and factories are doing, as plain data: for `/debug` routes, log lines and bug reports.

Snapshots consist of dicts, lists, strings and numbers: `json.dumps` takes them. They hold names and counts, and never
the content of an object, the message of an exception in a handler, or a credential. Times are in seconds since the
epoch, durations in seconds. Nothing is collected for them: they are read off when they are asked for, in any thread.
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
        time: when.
    """

    error: str
    key: str
    time: float


class HandlerCallSnapshot(TypedDict):
    """A call of a handler that is under way.

    Attributes:
        function: that was called, with its file and line.
        key: of the object.
        since: when the call began.
        seconds: since then.
    """

    function: str
    key: str
    since: float
    seconds: float


class HandlerSnapshot(TypedDict):
    """A registered handler.

    Attributes:
        name: of the registration, with the function, its file and line.
        synced: whether it was called for all of the initial list.
        pending: notifications that wait, the one that it is at included.
        calls: how often it was called.
        errors: how often it raised.
        last_error: the last time that it did; None if it never did.
        longest_call: the longest call that has ended, in seconds, awaiting included.
        current: the call that is under way; None if there is none.
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
        since: when this phase began for this reason; None if the informer was never started.
        healthy: whether the cache follows the server.
        resource_version: up to which everything has been received.
        last_event: when the server last sent anything; None if it never did.
        last_event_age: seconds since then.
        attempts: how many attempts in a row have failed.
        next_retry: when the next attempt is due; None if none is waited for.
    """

    phase: str
    reason: str
    since: float | None
    healthy: bool
    resource_version: str
    last_event: float | None
    last_event_age: float | None
    attempts: int
    next_retry: float | None


class ScopeSnapshot(TypedDict):
    """What part of the collection is followed; "" for no restriction."""

    namespace: str
    label_selector: str
    field_selector: str


class InformerSnapshot(SourceSnapshot):
    """An informer. Of one with several namespaces, what is said of the server is that of the worst of them.

    Attributes:
        name: as in logs.
        resource: "v1/pods", "apps/v1/deployments".
        scope: what part of the collection it follows.
        synced: whether the cache was filled from the first list.
        objects: in the cache.
        skipped: the keys of objects whose last version cannot be decoded or shown.
        skipped_total: how often an object was skipped so far.
        indexes: their names.
        queued: what waits between reflector and cache.
        storage: in what form objects are kept.
        handlers: in the order of their registration.
        namespaces: of an informer of several namespaces, each of them.
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
        running: whether it was started, and has not ended.
        ready: as `is_ready()`.
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
    """What is asked of an informer."""

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
    """Return what is known of the server.

    Args:
        state: of what is listed and watched.
        reflectors: what lists and watches it.
        version: up to which everything has been received.
    """
    failing = [each for each in reflectors if each.attempts]
    retries = [each.next_retry for each in failing if each.next_retry is not None]
    return {
        "phase": str(state.phase),
        "reason": state.reason,
        "since": state.since or None,
        "healthy": state.phase in HEALTHY,
        "resource_version": version,
        "last_event": state.last_event,
        "last_event_age": None if state.last_event is None else max(0.0, time() - state.last_event),
        "attempts": max((each.attempts for each in failing), default=0),
        "next_retry": min(retries, default=None),
    }


def handler_snapshot(listener: ProcessorListener[Any]) -> HandlerSnapshot:
    """Return what is known of a handler."""
    error, call = listener.last_error, listener.call()
    return {
        "name": listener.name,
        "synced": bool(listener.synced),
        "pending": listener.pending,
        "calls": listener.calls,
        "errors": listener.errors,
        "last_error": None if error is None else {"error": error.error, "key": error.key, "time": error.time},
        "longest_call": listener.longest_call,
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
    """Return what is known of an informer.

    Args:
        informer: whose snapshot it is.
        reflectors: what lists and watches for it, by namespace; by "" if it is one for all.
        lister_watcher: what is listed and watched.
        skipped: keys of objects that cannot be decoded or shown.
        queued: what waits between reflector and cache.
        storage: in what form objects are kept.
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
    """Return what is known of a factory.

    Args:
        name: for metrics.
        snapshots: of its informers, by their keys.
        running: whether it was started, and has not ended.
        ready: as `is_ready()`.
    """
    return {
        "name": name,
        "time": time(),
        "running": running,
        "ready": ready,
        "healthy": all(each["healthy"] for each in snapshots.values()),
        "informers": snapshots,
    }
