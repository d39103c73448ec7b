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
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack, overload

from aioinformer.cache.indices import Indexers
from aioinformer.cache.objects.codec import BodyDecoder, Transform
from aioinformer.cache.objects.storage import Storage, StorageTier
from aioinformer.cache.store import NAMESPACE_INDEX
from aioinformer.concurrency import ENDING, Owner, running_loop
from aioinformer.errors import USER_ERRORS, InformerStopped, UsageError, collapsed
from aioinformer.functions import plain_function
from aioinformer.handlers.notifications import FilteringResourceEventHandler, ResourceEventHandlerFuncs
from aioinformer.handlers.registration import HandlerRegistration
from aioinformer.handlers.signatures import DeleteFunction
from aioinformer.informer.options import RunOptions
from aioinformer.informer.pipeline import Pipeline
from aioinformer.informer.process_loop import CacheController, CacheControllerConfig, Source
from aioinformer.informer.sources import Feed, OneCollection, PartOfStore, Sources
from aioinformer.informer.streamed import StreamedInformer
from aioinformer.logs import get_logger
from aioinformer.metrics.names import InformerNameAndResource
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.reflector.listwatch import ListerWatcher, ListWatch, check_lister_watcher
from aioinformer.reflector.options import check_indexers, check_metrics, check_options, checked_fields
from aioinformer.reflector.reflector import Reflector, WatchErrorHandler

if TYPE_CHECKING:
    from aioinformer.cache.objects.frozen import FrozenDict
    from aioinformer.cache.objects.storage import DecodedTier, DictTier
    from aioinformer.handlers.signatures import Handler
    from aioinformer.informer.options import OwnOptions

T = TypeVar("T")
M = TypeVar("M")

_log = get_logger("aioinformer.informer")

_DEFAULT_OPTIONS: Final = RunOptions()


class SharedIndexInformer(StreamedInformer[T]):
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
        lister_watcher: ListerWatcher[T] | Sources[T],
        resync_period: float = 0.0,
        *,
        decoder: None = None,
        storage: DecodedTier = ...,
        **options: Unpack[OwnOptions[T]],
    ) -> None: ...
    @overload
    def __init__(
        self: SharedIndexInformer[M],
        lister_watcher: ListerWatcher[Any] | Sources[Any],
        resync_period: float = 0.0,
        *,
        decoder: BodyDecoder[M],
        storage: DecodedTier = ...,
        **options: Unpack[OwnOptions[M]],
    ) -> None: ...
    @overload
    def __init__(
        self: SharedIndexInformer[FrozenDict[str, Any]],
        lister_watcher: ListerWatcher[Any] | Sources[Any],
        resync_period: float = 0.0,
        *,
        storage: DictTier,
        decoder: None = None,
        **options: Unpack[OwnOptions[FrozenDict[str, Any]]],
    ) -> None: ...

    def __init__(
        self,
        lister_watcher: ListerWatcher[Any] | Sources[Any],
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
        if isinstance(lister_watcher, Sources):
            sources = lister_watcher
        else:
            sources = OneCollection(lister_watcher)
        check_lister_watcher(sources.lister_watcher)
        check_options(options, RunOptions)
        check_indexers(indexers)
        self._sources: Sources[Any] = sources
        super().__init__(
            sources.lister_watcher.resource,
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
        #: An attribute, because it is read after every batch, and a call would cost as much as the rest of it.
        self._store = self._indexer.store
        self._owner = Owner()
        sources.syncing = self._synced
        sources.feed = Feed(
            self.name, self._versions, self._undecodable, self._pipeline, self._new_source, self._processed
        )
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

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._owner.leave(kind, self._owner.stop)

    def _cancel_block(self) -> str:
        block = self._owner.cancel_block()
        if block:
            return "the block of `async with` is cancelled"
        return "the end of `async with` raises the error"

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
            if self._crash is not None and isinstance(cause, asyncio.CancelledError):
                cause = self._crash  # the end of the block cancels the cleanup, and must still get the error
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
        if self._default_identity is not None:
            self._default_identity.release_name()
        self._pipeline.handlers.fail(failure)
        self._sources.end(failure)

    def _close(self) -> None:
        self._stopped = True

    async def _follow_until_crash(self) -> None:
        try:
            while True:
                await self._sources.follow()
        except BaseException as error:
            self._crashed(collapsed(error))
            raise

    def _crashed(self, error: BaseException) -> None:
        """Show and log a crash when it happens: the handlers may take a while to end."""
        if self._crash is None and not isinstance(error, ENDING):
            self._crash = error
            self._stopped = True
            self.outages.crashed(self, error)

    def _new_source(
        self,
        lister_watcher: ListerWatcher[T],
        on_version: Callable[[str], None],
        namespace: str,
    ) -> Source:
        """Return a queue, and the reflector and process loop around it; see `Feed.new_source`."""
        pipeline = self._pipeline
        objects = self._objects
        keys = partial(self._store.indexed_keys, NAMESPACE_INDEX, namespace)
        known = PartOfStore(keys, self._store.item) if namespace else None
        queue = pipeline.new_queue(known)
        requested = lister_watcher
        if objects.storage is Storage.METADATA and isinstance(lister_watcher, ListWatch):
            requested = lister_watcher.only_metadata()
        reflector = Reflector(
            requested,
            queue,
            name=f"{self.name} in {namespace}" if namespace else self.name,
            options=self._options,
            decode=objects.decode,
            on_arrival=objects.on_arrival if objects.decodes_early else None,
            known=self._store.item,
            resync_period=0.0 if namespace else pipeline.handlers.periods.check,
            should_resync=pipeline.handlers.should_resync,
            watch_error_handler=self._watch_error_handler,
            on_state=lambda state: self._state_changed(),
            before_read=self._compressor.settle if self._compressor is not None else None,
            log_error=self._stalls.errors.report,
            counters=self._counters,
            quarantine=self._undecodable.add_quarantine() if namespace else self._quarantine,
        )
        config = CacheControllerConfig(
            reflector,
            queue,
            process=pipeline.updates.handle_deltas,
            flush=pipeline.updates.flush,
            on_version=on_version,
            on_listed=pipeline.updates.check_waits,
            counters=self._counters,
        )
        return Source(lister_watcher, queue, CacheController(config), known or self._store)

    # Callbacks of the process loop.

    def _processed(self, version: str) -> None:
        """Act on a batch that has made the cache complete up to a version; "" if it is unknown."""
        self._check_indices()
        if version:
            self._store.resource_version = version
            self._versions.reached(version)
        syncing = self._sources.syncing
        if syncing is not None and self._sources.has_synced():
            syncing.set()
            self._pipeline.handlers.mark_upstream_synced()
            self._wake_readers()
            self._sources.syncing = None  # only now: if memory runs out above, this is repeated after the next batch
        if not self._undecodable.accepted and self._synced:
            self._undecodable.accept()

    def _check_indices(self) -> None:
        failing: Any = self._failing_indices.reported
        for index in self._store.every_index:
            failing = failing or index.failing
        if failing and self._failing_indices.check():
            self._state_changed()

    def _report(self, error: Exception) -> None:
        if self._watch_error_handler is None:
            return
        try:
            self._watch_error_handler(error)
        except USER_ERRORS:
            _log.exception("%s: the watch error handler raised", self.name)
