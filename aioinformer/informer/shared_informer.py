"""SharedIndexInformer: one cache of one collection, any number of handlers.

What can be relied on (ARC-02 to ARC-07):

- The cache follows the server, a little behind. For each object, the states it shows are states the object had, in
  their order; some may be skipped. Nothing is promised between different objects.
- A handler is told after the cache and its indices have changed; by then they may have changed again.
- A handler is told one thing at a time, in order. Handlers do not wait for each other.
- Told objects cannot be changed by anybody.
- A deletion that was missed is told as `DeletedFinalStateUnknown`, with the last state that was known. An object that
  was deleted and made again, unseen, is an update from one uid to another.
- An object whose version is the cached one is told to nobody, except by resyncs, to those who asked for them.
- A handler that joins late is told of everything in the cache first, without gap or doubling.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar

from aioinformer.cache.objects.storage import Storage
from aioinformer.concurrency import Owner, collapsed, running_loop
from aioinformer.errors import USER_ERRORS, InformerStopped, UsageError
from aioinformer.functions import plain_function
from aioinformer.handlers.notifications import ResourceEventHandlerFuncs
from aioinformer.informer.controller import CacheController, CacheControllerConfig, Source
from aioinformer.informer.observed import ObservedInformer, default_identity
from aioinformer.informer.pipeline import Pipeline, QueueKind
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch, check_lister_watcher
from aioinformer.reflector.options import (
    ReflectorOptions,
    check_indexers,
    check_metrics,
    check_options,
    check_seconds,
    check_share,
    checked_fields,
)
from aioinformer.reflector.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from aioinformer.cache.indices import Indexers
    from aioinformer.cache.objects.codec import BodyDecoder, Transform
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.metrics import InformerNameAndResource, MetricsProvider
    from aioinformer.queue.delta_fifo import KnownObjects
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.reflector import WatchErrorHandler

T = TypeVar("T")

_log = get_logger("aioinformer.informer")


class SharedIndexInformer(ObservedInformer[T]):
    """Keeps an indexed copy of a collection fresh, and tells handlers what changes.

    Use it as `async with informer:`, or await `run()`, or leave both to a factory. It runs once; what has stopped stays
    stopped, and its cache can still be read.

    Args:
        lister_watcher: what to list and watch.
        resync_period: tells handlers of everything in the cache again so often, in seconds; 0 for never. It is both
            the default of handlers, and how often the informer looks who is due.

        indexers: index functions, or field paths, by name; in addition to the one by namespace.
        decoder: a model of the user's own for the objects: a msgspec, dataclass or pydantic class, or a function of
            JSON bytes.
        transform: sees each object before anybody else does; what it returns is cached.
        storage: in what form objects are kept, memory against the cost of reading: "bytes", "stripped", "compressed",
            "projection", "metadata" or "dict"; see `Storage`.
        fields: paths that are decoded with the metadata, such as "spec.nodeName"; see `parse_path`. Those of
            `indexers` need not be repeated.

        queue: what is between reflector and cache: "delta" brings together what waits of an object, "in_order" keeps
            the order between objects and replaces the cache in one piece; see `aioinformer.informer.pipeline`.
        options: paging, time-outs, backoff.
        max_undecodable: the informer is not ready while a larger share of the objects, from 0 to 1, cannot be decoded;
            None for no limit.
        shutdown_grace: so many seconds a handler that is running at the stop has to finish, before it is cancelled. Ten
            seconds after that, one that does not end is named in the log and left behind.
        watch_error_handler: told of every failure of a list or watch, and of objects that cannot be shown.
        name: for tasks and logs.
        identifier: who it is among all informers of the process; by `InformerName.with_resource`. Without one, an
            informer with metrics is called `default`, or `default-2` and so on.
        metrics: asks for the statistics from time to time. Without it, and without an identifier, nothing is counted.
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        resync_period: float = 0.0,
        *,
        # What the cache holds
        indexers: Indexers[T] | None = None,
        decoder: BodyDecoder[T] | None = None,
        transform: Transform[T] | None = None,
        storage: str = Storage.BYTES,
        fields: Iterable[str] = (),
        # How it is kept
        queue: str = QueueKind.DELTA,
        options: ReflectorOptions | None = None,
        max_undecodable: float | None = None,
        shutdown_grace: float = 1.0,
        watch_error_handler: WatchErrorHandler | None = None,
        name: str = "",
        identifier: InformerNameAndResource | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        check_lister_watcher(lister_watcher)
        check_options(options)
        check_share(max_undecodable)
        check_seconds(shutdown_grace, "shutdown_grace")
        check_indexers(indexers)
        self._lister_watcher = lister_watcher
        self._options = options or ReflectorOptions()
        super().__init__(
            lister_watcher.resource,
            name,
            self._options.slice_seconds,
            indexers=indexers,
            decoder=decoder,
            transform=transform,
            storage=storage,
            fields=checked_fields(fields),
            max_undecodable=max_undecodable,
        )
        check_metrics(metrics)
        if identifier is None and metrics is not None:
            identifier = self._default_identity = default_identity(lister_watcher)
        self._shutdown_grace = shutdown_grace
        self._watch_error_handler = plain_function(watch_error_handler, "watch_error_handler")
        self._pipeline: Pipeline[T] = Pipeline(
            self.name,
            self._indexer,
            self._objects,
            self._keys,
            self._compressor,
            resync_period=resync_period,
            queue=queue,
            slice_seconds=self._options.slice_seconds,
            report=self._report,
            identity=identifier,
            stalls=self._stalls,
            undecodable=self._undecodable,
        )
        self._quarantine = self._undecodable.quarantine()
        #: Read after every batch: as attributes, since calls would cost as much as the rest of it.
        self._store, self._awaits_sync = self._indexer.store, True
        self._owner = Owner()
        if metrics is not None:
            self._announce(metrics)

    # Handlers.

    def add_event_handler(
        self,
        handler: Any = None,
        resync_period: float | None = None,
        *,
        on_add: Callable[..., Any] | None = None,
        on_update: Callable[[T, T], Any] | None = None,
        on_delete: Callable[[Any], Any] | None = None,
    ) -> HandlerRegistration[T]:
        """Registers a handler, now or while the informer runs. A plain call, never slow.

        The same handler may be registered more than once; each registration is on its own.

        Args:
            handler: an object with some of the methods `on_add(obj)`, `on_update(old, new)` and `on_delete(obj)`, sync
                or async; or leave it out and give functions by these names. An `on_add` with a parameter
                `is_in_initial_list` is told that, too. `on_delete` may get a `DeletedFinalStateUnknown`.
            resync_period: in seconds, 0 for never, None for the informer's.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: this is no handler, or no period.
        """
        functions = (on_add, on_update, on_delete)
        if handler is None:
            handler = ResourceEventHandlerFuncs(*functions)
        elif any(functions):
            raise UsageError("give either a handler or on_add, on_update and on_delete, not both")
        if self._stopped:
            raise InformerStopped(f"handler was not added to {self.name} because it has stopped already")
        return self._pipeline.handlers.add(handler, resync_period)

    def remove_event_handler(self, registration: HandlerRegistration[T]) -> None:
        """Ends a registration: what waits for its handler is dropped, a call that is under way may finish.

        Does nothing for a registration that is removed already, or is another informer's.

        Raises:
            UsageError: this is no registration.
        """
        self._pipeline.handlers.remove(registration)

    # Configuration.

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Calls a function with each failure of a list or watch; it must be quick. The last one set counts.

        Raises:
            UsageError: the informer was started, or this is a coroutine function.
        """
        self._before_start("the watch error handler")
        self._watch_error_handler = plain_function(handler, "watch error handler")

    # Life.

    async def __aenter__(self) -> Self:
        if self._started or self._stopped or self._owner.running:
            raise UsageError(f"{self.name} runs once; make a new informer")
        self.start_requested = True
        try:
            await self._owner.enter(self.run, self.name)
        except asyncio.CancelledError:
            self.retire()  # a task that is cancelled before its first step never takes it
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._owner.stop()

    async def run(self) -> None:
        """Run until cancelled. A second call logs a warning and returns.

        Raises:
            Exception: what a part of the informer crashed with; handlers that raise are no such thing.
        """
        running_loop(f"{self.name} runs")
        if self._started:
            _log.warning("%s was started already: nothing is done", self.name)
            return
        self._started = True
        failure: BaseException = InformerStopped(f"{self.name} has stopped")
        try:
            await self._run()
        except BaseException as error:
            cause = collapsed(error)
            if isinstance(cause, Exception):
                failure = self._crash = cause
            if cause is error:
                raise
            raise cause from cause.__cause__
        finally:
            self._end(failure)

    def retire(self) -> None:
        """Stops an informer that has not begun, for good; who waits for it is told. Does nothing to one that has."""
        if not self._started:
            self._started = True
            self._end(InformerStopped(f"{self.name} was stopped before it began"))

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        self._pipeline.handlers.fail(failure)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._pipeline.run(
            self._follow,
            synced=self.wait_for_sync,
            closing=self._close,
            shutdown_grace=self._shutdown_grace,
        )

    def _close(self) -> None:
        self._stopped = True

    async def _follow(self) -> None:
        """Fill the cache and keep it fresh until cancelled, from one source after the other."""
        while True:
            await self._before_source()
            source = self._source = self._new_source(self._lister_watcher, self._processed)
            await source.controller.run()  # returns when another source is to be followed

    async def _before_source(self) -> None:
        """Wait until there is a source to follow."""

    def _replace_source(self, lister_watcher: ListerWatcher[T]) -> None:
        """Follow another lister-watcher from now on. What is queued of the one before is dropped."""
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
            lister_watcher: what to list and watch.
            on_version: is called after each batch.
            name: for tasks and logs; by default, the informer's.
            known: the part of the cache that belongs to the source; by default, all of it.
            resync_period: by default, the shortest of the handlers.
            quarantine: remembers the objects that do not decode; by default, the informer's.
        """
        pipeline, objects = self._pipeline, self._objects
        queue = pipeline.queue(known)
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
            on_state=lambda state: self._state_changed(),
            before_read=self._compressor.settle if self._compressor is not None else None,
            counters=pipeline.counters,
            quarantine=self._quarantine if quarantine is None else quarantine,
        )
        config = CacheControllerConfig(
            reflector,
            queue,
            process=pipeline.updates.handle_deltas,
            flush=pipeline.processor.flush,
            on_version=on_version,
            slice_seconds=self._options.slice_seconds,
            counters=pipeline.counters,
        )
        return Source(lister_watcher, queue, CacheController(config))

    # What the process loop calls.

    def _processed(self, version: str) -> None:
        self._check_indices()
        self._reached(version)
        if self._awaits_sync and self._source is not None and self._source.queue.has_synced():
            self._filled()
        if not self._undecodable.accepted and self._synced:
            self._undecodable.accept()

    def _check_indices(self) -> None:
        failing: Any = self._failing.said
        for index in self._store.every_index:
            failing = failing or index.failing
        if failing:
            super()._check_indices()

    def _reached(self, version: str) -> None:
        """Note that everything up to this version is in the cache."""
        if version:
            self._store.resource_version = version
            self._versions.reached(version)

    def _filled(self) -> None:
        """Note that the cache has been filled from the first list."""
        self._undecodable.accept()
        self._synced.set()
        self._pipeline.handlers.upstream_synced()
        self._awaits_sync = False  # not before: what ran out of memory is repeated after the next batch

    def _report(self, error: Exception) -> None:
        if self._watch_error_handler is None:
            return
        try:
            self._watch_error_handler(error)
        except USER_ERRORS:
            _log.exception("%s: the watch error handler raised", self.name)
