"""SharedIndexInformer: one cache of one collection, and any number of handlers.

Guarantees:

- The cache follows the server with a short delay. For each object, it shows states of the object in their order. Some
  states may be skipped. There is no guarantee of order between objects.
- A notification is delivered after the cache and its indices have changed. By then, they may have changed again.
- A handler receives one notification at a time, in order. Handlers do not wait for each other.
- Delivered objects are immutable.
- A missed deletion is delivered as `DeletedFinalStateUnknown`, with the last known state. If an object was deleted and
  created again in between, an update from one uid to another is delivered.
- Unchanged objects are not delivered, except during a resync, to the handlers that requested it.
- A handler that is added late first receives all objects in the cache, without gaps or duplicates.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack, overload

from aioinformer.cache.objects.storage import Storage
from aioinformer.concurrency import ENDING, Owner, collapsed, running_loop
from aioinformer.errors import USER_ERRORS, InformerStopped, UsageError
from aioinformer.functions import plain_function
from aioinformer.handlers.notifications import FilteringResourceEventHandler, ResourceEventHandlerFuncs
from aioinformer.informer.observed import ObservedInformer
from aioinformer.informer.options import RunOptions
from aioinformer.informer.pipeline import Pipeline
from aioinformer.informer.process_loop import CacheController, CacheControllerConfig, Source
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch, check_lister_watcher
from aioinformer.reflector.options import check_indexers, check_metrics, check_options, checked_fields
from aioinformer.reflector.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from aioinformer.cache.indices import Indexers
    from aioinformer.cache.objects.codec import BodyDecoder, Transform
    from aioinformer.cache.objects.frozen import FrozenDict
    from aioinformer.cache.objects.storage import DecodedTier, DictTier, StorageTier
    from aioinformer.cache.waiters import Write
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.handlers.signatures import DeleteFunction, Handler
    from aioinformer.informer.options import OwnOptions
    from aioinformer.metrics import InformerNameAndResource, MetricsProvider
    from aioinformer.queue.delta_fifo import KnownObjects
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.reflector import WatchErrorHandler
    from aioinformer.reflector.state import InformerState

T = TypeVar("T")
M = TypeVar("M")

_log = get_logger("aioinformer.informer")

_DEFAULT_OPTIONS: Final = RunOptions()


class SharedIndexInformer(ObservedInformer[T]):
    """Keeps an indexed copy of a collection fresh, and delivers its changes to handlers.

    Use it as `async with informer:`, or await `run()`, or get it from a factory. It runs once. After the stop, its
    cache can still be read.

    Args:
        lister_watcher: lists and watches the collection.
        resync_period: seconds between resyncs, which deliver all objects in the cache again; 0 for none. It is the
            default of handlers, and the interval at which the informer checks which handlers are due.

        indexers: index functions, or field paths, by name; in addition to the index by namespace.
        decoder: your own model of the objects: a msgspec, dataclass or pydantic class, or a function of JSON bytes.
        transform: is called with each object before it is cached; its result is cached.
        storage: the form of cached objects, a choice between memory and the cost of reading: "bytes", "stripped",
            "compressed", "projection", "metadata" or "dict"; see `Storage`.
        fields: paths that are decoded with the metadata, such as "spec.nodeName"; see `parse_path`. The paths of
            `indexers` are included.

        options: how the informer runs: paging, timeouts, backoff, its queue, readiness, the grace of handlers.
        name: for tasks and logs.
        identifier: identifies the informer among all informers of the process; from `InformerName.with_resource`. By
            default, an informer with metrics is called `default`, `default-2` and so on.
        metrics: reads the statistics from time to time. Without it, and without an identifier, nothing is counted.
    """

    @overload
    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        resync_period: float = 0.0,
        *,
        decoder: None = None,
        storage: DecodedTier = ...,
        **options: Unpack[OwnOptions[T]],
    ) -> None: ...
    @overload
    def __init__(
        self: SharedIndexInformer[M],
        lister_watcher: ListerWatcher[Any],
        resync_period: float = 0.0,
        *,
        decoder: BodyDecoder[M],
        storage: DecodedTier = ...,
        **options: Unpack[OwnOptions[M]],
    ) -> None: ...
    @overload
    def __init__(
        self: SharedIndexInformer[FrozenDict[str, Any]],
        lister_watcher: ListerWatcher[Any],
        resync_period: float = 0.0,
        *,
        storage: DictTier,
        decoder: None = None,
        **options: Unpack[OwnOptions[FrozenDict[str, Any]]],
    ) -> None: ...

    def __init__(
        self,
        lister_watcher: ListerWatcher[Any],
        resync_period: float = 0.0,
        *,
        # The contents of the cache
        indexers: Indexers[Any] | None = None,
        decoder: BodyDecoder[Any] | None = None,
        transform: Transform[Any] | None = None,
        storage: StorageTier = "bytes",
        fields: Iterable[str] = (),
        # The operation of the informer
        options: RunOptions | None = None,
        name: str = "",
        identifier: InformerNameAndResource | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        check_lister_watcher(lister_watcher)
        check_options(options, RunOptions)
        check_indexers(indexers)
        self._lister_watcher = lister_watcher
        super().__init__(
            lister_watcher.resource,
            name,
            options or _DEFAULT_OPTIONS,
            indexers=indexers,
            decoder=decoder,
            transform=transform,
            storage=storage,
            fields=checked_fields(fields),
        )
        check_metrics(metrics)
        self._watch_error_handler: WatchErrorHandler | None = None
        self._pipeline: Pipeline[T] = Pipeline(
            self.name,
            self._indexer,
            self._objects,
            self._keys,
            self._compressor,
            resync_period=resync_period,
            options=self._options,
            report=self._report,
            stalls=self._stalls,
            undecodable=self._undecodable,
        )
        self._quarantine = self._undecodable.add_quarantine()
        #: Attributes, because they are read after every batch, and calls would cost as much as the rest of it.
        self._store, self._awaits_sync = self._indexer.store, True
        self._owner = Owner()
        self._set_identity(identifier, metrics)
        if metrics is not None:
            self._register_with(metrics)

    # Handlers.

    @overload
    def add_event_handler(
        self, handler: FilteringResourceEventHandler[T], resync_period: float | None = None
    ) -> HandlerRegistration[T]: ...
    @overload
    def add_event_handler(self, handler: Handler[T], resync_period: float | None = None) -> HandlerRegistration[T]: ...
    @overload
    def add_event_handler(
        self,
        handler: None = None,
        resync_period: float | None = None,
        *,
        on_add: Callable[[T], Any] | None = None,
        on_update: Callable[[T, T], Any] | None = None,
        on_delete: DeleteFunction[T] | None = None,
    ) -> HandlerRegistration[T]: ...
    @overload
    def add_event_handler(
        self,
        handler: None = None,
        resync_period: float | None = None,
        *,
        on_add: Callable[[T, bool], Any],
        on_update: Callable[[T, T], Any] | None = None,
        on_delete: DeleteFunction[T] | None = None,
    ) -> HandlerRegistration[T]: ...

    def add_event_handler(
        self,
        handler: Any = None,
        resync_period: float | None = None,
        *,
        on_add: Callable[..., Any] | None = None,
        on_update: Callable[[T, T], Any] | None = None,
        on_delete: DeleteFunction[T] | None = None,
    ) -> HandlerRegistration[T]:
        """Register a handler, before or while the informer runs. The call returns immediately.

        The same handler may be registered more than once. The registrations are independent.

        Args:
            handler: an object with some of the methods `on_add(obj)`, `on_update(old, new)` and `on_delete(obj)`, sync
                or async. Alternatively, pass functions by these names. An `on_add` with a parameter
                `is_in_initial_list` receives it. `on_delete` may receive a `DeletedFinalStateUnknown`.
            resync_period: in seconds, 0 for no resyncs, None for the informer's period.
            on_add: a function for added objects, if there is no handler.
            on_update: a function for changed objects, if there is no handler.
            on_delete: a function for deleted objects, if there is no handler.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: the handler or the period is invalid.
        """
        functions = (on_add, on_update, on_delete)
        if handler is None:
            handler = ResourceEventHandlerFuncs(*functions)
        elif any(functions):
            raise UsageError("pass either a handler or on_add, on_update and on_delete, not both")
        if self._stopped:
            raise InformerStopped(f"handler was not added to {self.name} because it has stopped already")
        return self._pipeline.handlers.add(handler, resync_period)

    def remove_event_handler(self, registration: HandlerRegistration[T]) -> None:
        """End a registration. Its pending notifications are dropped; a running call may finish.

        Nothing happens if the registration was removed already, or belongs to another informer.

        Raises:
            UsageError: the argument is not a registration.
        """
        self._pipeline.handlers.remove(registration)

    # Configuration.

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Set the function that is called with each failure of a list or watch, and for objects that cannot be decoded.

        It must return quickly.

        Raises:
            UsageError: the informer was started, or the function is a coroutine function.
        """
        self._before_start("the watch error handler")
        self._watch_error_handler = plain_function(handler, "watch error handler")

    # Life.

    async def __aenter__(self) -> Self:
        if self._started or self._stopped or self._owner.running:
            raise UsageError(f"{self.name} runs once; make a new informer")
        self.start_requested = True
        self.outages.on_crash = self._cancel_block
        try:
            await self._owner.enter(self.run, self.name)
        except asyncio.CancelledError:
            self.retire()  # if the task is cancelled before its first step, `run` never starts
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._owner.leave(kind, self._owner.stop)

    def _cancel_block(self) -> str:
        block = self._owner.cancel_block()
        return "the block of `async with` is cancelled" if block else "the end of `async with` raises the error"

    async def run(self) -> None:
        """Run until cancelled. A second call logs a warning and returns.

        Raises:
            Exception: a part of the informer crashed with this. Errors of handlers do not end the informer.
        """
        running_loop(f"{self.name} runs")
        if self._started:
            _log.warning("%s was started already; this call has no effect", self.name)
            return
        self._started = True
        self._loop = asyncio.get_running_loop()
        self._pipeline.processor.on_crash = self._crashed
        try:
            await self._pipeline.run(self._follow_until_crash, synced=self.wait_for_sync, closing=self._close)
        except BaseException as error:
            cause = collapsed(error)
            self._crashed(cause)
            if cause is error:
                raise
            raise cause from cause.__cause__
        finally:
            self._end(self._crash or InformerStopped(f"{self.name} has stopped"))
            self._stalls.errors.close()

    def retire(self) -> None:
        """Stop an informer that was not started, so that it cannot be started. Waits for it raise `InformerStopped`."""
        if not self._started:
            self._started = True
            self._end(InformerStopped(f"{self.name} was stopped before it was started"))

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        self._pipeline.handlers.fail(failure)

    def _close(self) -> None:
        self._stopped = True

    async def _follow_until_crash(self) -> None:
        try:
            await self._follow()
        except BaseException as error:
            self._crashed(collapsed(error))
            raise

    def _crashed(self, error: BaseException) -> None:
        """Show and log a crash when it happens: the handlers may take a while to end."""
        if self._crash is None and not isinstance(error, ENDING):
            self._crash, self._stopped = error, True
            self.outages.crashed(self, error)

    async def _follow(self) -> None:
        """Fill the cache and keep it fresh until cancelled, from one source at a time."""
        while True:
            await self._before_source()
            source = self._source = self._new_source(self._lister_watcher, self._processed)
            await source.controller.run()  # returns when the source is replaced

    async def _before_source(self) -> None:
        """Wait until there is a source to follow."""

    def _replace_source(self, lister_watcher: ListerWatcher[T]) -> None:
        """Follow another lister-watcher. Queued changes of the previous one are dropped."""
        self._lister_watcher = lister_watcher
        if self._source is not None:
            self._source.controller.stop()

    def _new_source(
        self,
        lister_watcher: ListerWatcher[T],
        on_version: Callable[[str], None],
        *,
        name: str = "",
        known: KnownObjects | None = None,
        resync_period: float | None = None,
        quarantine: Quarantine | None = None,
    ) -> Source:
        """Return a queue, and the reflector and process loop around it.

        Args:
            lister_watcher: lists and watches the collection.
            on_version: is called after each batch.
            name: for tasks and logs; by default, the informer's.
            known: the part of the cache that belongs to the source; by default, all of it.
            resync_period: by default, the shortest period of the handlers.
            quarantine: the objects that cannot be decoded; by default, the informer's.
        """
        pipeline, objects = self._pipeline, self._objects
        queue = pipeline.new_queue(known)
        requested = lister_watcher
        if objects.storage is Storage.METADATA and isinstance(lister_watcher, ListWatch):
            requested = lister_watcher.only_metadata()
        reflector = Reflector(
            requested,
            queue,
            name=name or self.name,
            options=self._options,
            decode=objects.decode,
            on_arrival=objects.on_arrival if objects.decodes_early else None,
            known=self._store.item,
            resync_period=pipeline.handlers.periods.check if resync_period is None else resync_period,
            should_resync=pipeline.handlers.should_resync,
            watch_error_handler=self._watch_error_handler,
            on_state=self._reflector_changed,
            before_read=self._compressor.settle if self._compressor is not None else None,
            counters=self._counters,
            quarantine=self._quarantine if quarantine is None else quarantine,
        )
        config = CacheControllerConfig(
            reflector,
            queue,
            process=pipeline.updates.handle_deltas,
            flush=pipeline.processor.flush,
            on_version=on_version,
            counters=self._counters,
        )
        return Source(lister_watcher, queue, CacheController(config))

    # For waits.

    def _outside(self, written: Any) -> str:
        return self._excluded_by(self._lister_watcher, written)

    def _excluded_by(self, lister_watcher: ListerWatcher[T], written: Any) -> str:
        excludes = getattr(lister_watcher, "excludes", None)
        if excludes is None:
            return ""
        from aioinformer.cache.objects.changes import as_whole

        item = as_whole(written)
        reason: str = excludes(written, whole=False) if item is None else excludes(item)
        return reason

    def _has_reached(self, write: Write) -> bool:
        return super()._has_reached(write) and (self._source is None or self._source.has_order(write.version))

    def _reflector_changed(self, state: InformerState) -> None:
        self._state_changed()

    # Callbacks of the process loop.

    def _processed(self, version: str) -> None:
        self._check_indices()
        self._reached(version)
        if self._awaits_sync and self._source is not None and self._source.queue.has_synced():
            self._set_synced()
        if not self._undecodable.accepted and self._synced:
            self._undecodable.accept()

    def _check_indices(self) -> None:
        failing: Any = self._failing_indices.reported
        for index in self._store.every_index:
            failing = failing or index.failing
        if failing:
            super()._check_indices()

    def _reached(self, version: str) -> None:
        """Set the version up to which the cache is complete, unless it is unknown (""), and end waits for it."""
        if version:
            self._store.resource_version = version
            self._versions.reached(version)

    def _set_synced(self) -> None:
        """Mark the cache and the initial list of handlers as synced."""
        self._undecodable.accept()
        self._synced.set()
        self._pipeline.handlers.mark_upstream_synced()
        self._awaits_sync = False  # only now: if memory runs out above, this is repeated after the next batch

    def _report(self, error: Exception) -> None:
        if self._watch_error_handler is None:
            return
        try:
            self._watch_error_handler(error)
        except USER_ERRORS:
            _log.exception("%s: the watch error handler raised", self.name)
