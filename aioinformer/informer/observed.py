"""The parts of an informer that observe it: state, statistics and snapshot. `SharedIndexInformer` has the others."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from aioinformer.errors import USER_ERRORS, Stale, UsageError
from aioinformer.functions import plain_function
from aioinformer.handlers.backlog import Batch
from aioinformer.informer.health import FailingIndices
from aioinformer.informer.outages import Outages
from aioinformer.informer.pipeline import Pipeline
from aioinformer.informer.reader import InformerCache
from aioinformer.informer.snapshots import InformerSnapshot, informer_snapshot
from aioinformer.logs import get_logger
from aioinformer.metrics.counters import InformerCounters
from aioinformer.metrics.names import InformerName, InformerNameAndResource
from aioinformer.metrics.statistics import InformerStatistics
from aioinformer.reflector.listwatch import ListerWatcher
from aioinformer.reflector.reflector import Reflector
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.scopes import InformerKey, Scope

if TYPE_CHECKING:
    import asyncio

    from aioinformer.metrics.provider import MetricsProvider

T = TypeVar("T")

_log = get_logger("aioinformer.informer")


def default_identity(lister_watcher: ListerWatcher[Any]) -> InformerNameAndResource:
    """Return an identity for an informer with metrics that was given no name."""
    parts = ("namespace", "label_selector", "field_selector")
    scope = Scope(*(str(getattr(lister_watcher, part, "")) for part in parts))
    key = InformerKey(lister_watcher.resource, scope, Scope())
    return InformerName.unused().with_resource(lister_watcher.resource, key.query)


class ObservedInformer(InformerCache[T]):
    """An informer that can be observed.

    Args:
        arguments, options: as for `InformerCache`.

    Attributes:
        outages: repeats failures that last in the log. The informers of a factory share one.
    """

    _pipeline: Pipeline[T]
    # Not of each instance: the attributes of an instance with more than 30 of them take 1.3 KiB more.
    _crash: BaseException | None = None
    _identity: InformerNameAndResource | None = None
    _default_identity: InformerNameAndResource | None = None
    _counters: InformerCounters | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.outages = Outages(self.name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state_handlers: list[Callable[[InformerState], Any]] = []
        self._failing_indices = FailingIndices(self._indexer.store, self.name)

    def add_state_handler(self, handler: Callable[[InformerState], Any]) -> None:
        """Call a function with each new state, immediately when it changes. It must return quickly.

        Raises:
            UsageError: the function is a coroutine function.
        """
        self._state_handlers.append(plain_function(handler, "state handler"))

    @property
    def observers(self) -> list[Callable[[Batch[T]], object]]:
        """Functions that get each batch of notifications before the handlers do, without resyncs. They must not raise.

        They cost less than handlers: they have no queue and no task. The list may be changed.
        """
        return self._pipeline.processor.observers

    @property
    def initial_resource_version(self) -> str:
        """The version of the first list; "" before that, and if the namespaces were listed at different versions."""
        reflector = self.reflectors().get("")
        return "" if reflector is None else reflector.initial_resource_version

    @property
    def state(self) -> InformerState:
        """The state of the informer, for probes and humans."""
        state = self._sources.state
        if state.healthy and self._undecodable:  # the reflector does not count failed reads
            state = replace(state, phase=Phase.DEGRADED, reason=str(self._undecodable))
        if self._crash is not None:
            return replace(state, phase=Phase.STOPPED, reason=f"crashed: {type(self._crash).__name__}")
        if self._stopped and state.phase is Phase.NEW:  # the informer ended before the first step of the reflector
            return replace(state, phase=Phase.STOPPED)
        return self._failing_indices.degrade(state)

    def staleness(self) -> float:
        """Return for how many seconds the cache has not followed the server; 0 while it follows.

        A connection that has silently died is noticed after `idle_timeout` at the latest, and counts from then on; if
        the server has sent bookmarks regularly, from the last event or bookmark.
        """
        state = self.state
        since = state.since if state.stale_since is None and state.phase is Phase.STOPPED else state.stale_since
        return 0.0 if since is None else max(0.0, time() - since)

    def check_fresh(self, within: float) -> None:
        """Check that the cache has synced, and has followed the server within the last `within` seconds.

        Raises:
            Stale: it has not.
        """
        age = self.staleness()
        if age > within or not self.has_synced():
            raise Stale(self.name, age, str(self.state))

    @property
    def skipped(self) -> int:
        """The number of objects so far that could not be decoded, were refused, or are of another kind or namespace."""
        return self._undecodable.skipped

    def statistics(self) -> InformerStatistics:
        """Return the current statistics, for metrics. Any thread may call this.

        Raises:
            UsageError: nothing is counted: the informer has neither metrics nor an identifier of its own.
        """
        counters = self._counters
        identity = self._identity
        state = self.state
        if counters is None or identity is None:
            raise UsageError(f"{self.name} counts nothing: pass metrics, or an identifier that no other informer has")
        processor = self._pipeline.processor
        listeners = tuple(processor.listeners)
        return InformerStatistics(
            identity=identity,
            objects=len(self._indexer),
            resource_version=self._indexer.last_store_sync_resource_version(),
            queued=self._pipeline.queued,
            pending=max((listener.pending for listener in listeners), default=0),
            processing=counters.processing.snapshot(),
            lists=counters.lists.snapshot(),
            listed=counters.listed,
            watches=counters.watches.snapshot(),
            short_watches=counters.short_watches,
            watched=counters.watched,
            phase=str(state.phase),
            healthy=state.healthy,
            handler_errors=processor.errors,
            undecodable=len(self._undecodable),
            skipped=self._undecodable.skipped,
            last_event_age=None if state.last_event is None else max(0.0, time() - state.last_event),
            relists=counters.relists.copy(),
            stale=self.staleness(),
            longest_call=max((call.seconds for each in listeners if (call := each.call()) is not None), default=0.0),
        )

    def snapshot(self) -> InformerSnapshot:
        """Return the state of the informer and its handlers, as plain data for `json.dumps`. Any thread may call this.

        It contains names and counts, but no object contents or credentials.
        """
        return informer_snapshot(
            self,
            reflectors=self.reflectors(),
            lister_watcher=self._sources.lister_watcher,
            skipped=self.undecodable(),
            queued=self._pipeline.queued,
            storage=self._objects.storage.value,
            listeners=self._pipeline.processor.listeners,
        )

    def reflectors(self) -> dict[str, Reflector]:
        """Return the reflectors by namespace; by "" if there is one for all. Empty before the start."""
        return self._sources.reflectors()

    def lister_watchers(self) -> list[ListerWatcher[T]]:
        """Return what the informer lists and watches: one collection, or one for each namespace, from its start on."""
        return self._sources.lister_watchers()

    def release_identity(self) -> None:
        """Let another informer have the identity, and export no metrics of this one any more."""
        if self._identity is not None:
            self._identity.release()

    def _set_identity(self, identifier: InformerNameAndResource | None, metrics: MetricsProvider | None) -> None:
        """Set the identity, and count the informer if the identity is reserved. With metrics, there is a default."""
        if identifier is None and metrics is not None:
            identifier = default_identity(self._sources.lister_watcher)
            self._default_identity = identifier
        if identifier is not None:
            self._identity = identifier
            self._counters = InformerCounters() if identifier.reserved else None

    def _register_with(self, metrics: MetricsProvider) -> None:
        """Register with a provider of metrics. If the provider raises, log the error."""
        if self._counters is None:
            return
        try:
            metrics.register(self)
        except Exception:
            _log.exception("%s: the metrics provider raised, so metrics do not show this informer", self.name)

    def _state_changed(self) -> None:
        state = self.state
        self.outages.changed(self, state)
        for handler in self._state_handlers:
            try:
                handler(state)
            except USER_ERRORS:
                _log.exception("%s: a state handler raised", self.name)

    def _readability_changed(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: None if self._stopped else self._state_changed())

    def __repr__(self) -> str:
        synced = "" if self.has_synced() else ", not synced"
        return f"<{self.name}, {self.state}, {len(self._indexer)} objects{synced}>"
