"""An informer as others see it: its state, its numbers, its snapshot. What it does is in `SharedIndexInformer`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.errors import USER_ERRORS
from aioinformer.functions import plain_function
from aioinformer.informer.health import FailingIndices
from aioinformer.informer.outages import Outages
from aioinformer.informer.reader import InformerCache
from aioinformer.informer.snapshots import InformerSnapshot, informer_snapshot
from aioinformer.logs import get_logger
from aioinformer.metrics import InformerName, InformerNameAndResource
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.scopes import InformerKey, Scope

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from aioinformer.informer.controller import Source
    from aioinformer.informer.pipeline import Pipeline
    from aioinformer.metrics import InformerStatistics, MetricsProvider
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.reflector import Reflector

T = TypeVar("T")

_log = get_logger("aioinformer.informer")


def default_identity(lister_watcher: ListerWatcher[Any]) -> InformerNameAndResource:
    """Return an identity for an informer that has metrics, and was given no name."""
    parts = ("namespace", "label_selector", "field_selector")
    scope = Scope(*(str(getattr(lister_watcher, part, "")) for part in parts))
    key = InformerKey(lister_watcher.resource, scope, Scope())
    return InformerName.unused().with_resource(lister_watcher.resource, key.query)


class ObservedInformer(InformerCache[T]):
    """What can be asked of an informer.

    Args:
        arguments: as for `InformerCache`.

    Attributes:
        outages: repeats failures that last in the log; the owner's, if this is one of many informers.
    """

    _pipeline: Pipeline[T]
    _lister_watcher: ListerWatcher[T]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.outages = Outages(self.name)
        self._source: Source | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state_handlers: list[Callable[[InformerState], Any]] = []
        self._crash: Exception | None = None
        self._failing = FailingIndices(self._indexer.store, self.name)
        self._default_identity: InformerNameAndResource | None = None

    def add_state_handler(self, handler: Callable[[InformerState], Any]) -> None:
        """Calls a function with each new state, at once when it changes; it must be quick.

        Raises:
            UsageError: it is a coroutine function.
        """
        self._state_handlers.append(plain_function(handler, "state handler"))

    @property
    def initial_resource_version(self) -> str:
        """The version of the first list, from which the cache was filled; "" before that."""
        return self._source.controller.reflector.initial_resource_version if self._source is not None else ""

    @property
    def state(self) -> InformerState:
        """What the informer is doing, for probes and people."""
        state = self._reflector_state()
        if state.healthy and self._undecodable:  # the reflector does not know of failed reads
            state = replace(state, phase=Phase.DEGRADED, reason=str(self._undecodable))
        if self._crash is not None:
            return replace(state, phase=Phase.STOPPED, reason=f"crashed: {type(self._crash).__name__}")
        if self._stopped and state.phase is Phase.NEW:  # it ended before the reflector took its first step
            return replace(state, phase=Phase.STOPPED)
        return self._failing.judge(state)

    def _reflector_state(self) -> InformerState:
        """What the reflector is doing."""
        return (
            self._source.controller.reflector.state if self._source is not None else InformerState(Phase.NEW, "", 0.0)
        )

    @property
    def skipped(self) -> int:
        """How many objects could not be decoded or shown, or were refused by transform or decoder, so far."""
        return self._undecodable.skipped

    def statistics(self) -> InformerStatistics:
        """Numbers for metrics, as they are now; any thread may ask.

        Raises:
            UsageError: nothing is counted: the informer has neither metrics nor an identifier of its own.
        """
        return self._pipeline.statistics(self.state)

    def snapshot(self) -> InformerSnapshot:
        """Return what the informer and its handlers are doing, as plain data for `json.dumps`; any thread may ask.

        It has names and counts, and never the content of an object or a credential.
        """
        return informer_snapshot(
            self,
            reflectors=self.reflectors(),
            lister_watcher=self._lister_watcher,
            skipped=self.undecodable(),
            queued=self._pipeline.queued,
            storage=self._objects.storage.value,
            listeners=self._pipeline.processor.listeners,
        )

    def reflectors(self) -> dict[str, Reflector]:
        """Return what lists and watches, by namespace; by "" if it is one for all. Empty before the start."""
        return {"": self._source.controller.reflector} if self._source is not None else {}

    def _announce(self, metrics: MetricsProvider) -> None:
        """Register with a provider of metrics, which must not keep the informer from its work."""
        if self._pipeline.counters is None:
            return
        try:
            metrics.register(self)
        except Exception:
            _log.exception("%s: the metrics refuse it, and will not show it", self.name)

    def _check_indices(self) -> None:
        if self._failing.check():
            self._state_changed()

    def _state_changed(self) -> None:
        state = self.state
        self.outages.changed(self, state)
        for handler in self._state_handlers:
            try:
                handler(state)
            except USER_ERRORS:
                _log.exception("%s: a state handler raised", self.name)

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        if self._default_identity is not None:
            self._default_identity.release_name()

    def _readability_changed(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: None if self._stopped else self._state_changed())

    def __repr__(self) -> str:
        synced = "" if self.has_synced() else ", not synced"
        return f"<{self.name}, {self.state}, {len(self._indexer)} objects{synced}>"
