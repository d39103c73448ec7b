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
import logging
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

import anyio

from aioinformer.cache_controller import CacheController, CacheControllerConfig
from aioinformer.cache_updates import CacheUpdates
from aioinformer.compressor import Compressor
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.indices import Indexers, field_paths
from aioinformer.keys import meta_namespace_index_func
from aioinformer.latch import Latch
from aioinformer.listener import ProcessorListener
from aioinformer.lister import ClusterLister, Lister
from aioinformer.listwatch import ListWatch
from aioinformer.notifications import (
    AddNotification,
    ResourceEventHandlerFuncs,
    delivery_to,
    plain_function,
)
from aioinformer.object_type import BodyDecoder, ObjectType, Transform
from aioinformer.options import ReflectorOptions
from aioinformer.owner import Owner, collapsed
from aioinformer.processor import SharedProcessor, describe
from aioinformer.queue_choice import QueueKind, queue_of
from aioinformer.registration import HandlerRegistration
from aioinformer.resync import ResyncPeriods, ResyncSchedule
from aioinformer.slices import Slicer, discard
from aioinformer.state import InformerState, Phase
from aioinformer.storage import Storage
from aioinformer.store import NAMESPACE_INDEX, Indexer
from aioinformer.waiters import KeyWaiters, VersionWaiters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from aioinformer.fifo import Queue
    from aioinformer.indices import Indexers
    from aioinformer.listwatch import ListerWatcher
    from aioinformer.objects import Record
    from aioinformer.reflector import WatchErrorHandler
    from aioinformer.resources import Resource

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SharedIndexInformer(Generic[T]):
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
            "projection", "metadata" or "dict"; see `aioinformer.storage`.
        fields: paths that are decoded with the metadata, such as "spec.nodeName"; see `aioinformer.fields`. Those of
            `indexers` need not be repeated.

        queue: what is between reflector and cache: "delta" brings together what waits of an object, "in_order" keeps
            the order between objects and replaces the cache in one piece; see `aioinformer.queue_choice`.
        options: paging, time-outs, backoff.
        shutdown_grace: so many seconds a handler that is running at the stop has to finish, before it is cancelled.
        watch_error_handler: told of every failure of a list or watch.
        name: for tasks and logs.
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
        shutdown_grace: float = 1.0,
        watch_error_handler: WatchErrorHandler | None = None,
        name: str = "",
    ) -> None:
        if storage == Storage.METADATA and isinstance(lister_watcher, ListWatch):
            lister_watcher = lister_watcher.only_metadata()
        self._lister_watcher = lister_watcher
        self.resource: Resource[T] = lister_watcher.resource
        self.name = name or f"informer of {lister_watcher.resource.group_resource}"
        self._periods = ResyncPeriods(resync_period)
        self._compressor = Compressor() if storage == Storage.COMPRESSED else None
        self._objects: ObjectType[T] = ObjectType(
            self.resource,
            decoder,
            transform,
            storage=storage,
            fields=[*fields, *field_paths(indexers or {})],
            compression=self._compressor.tier if self._compressor is not None else None,
        )
        self._indexer: Indexer[T] = Indexer(present=self._objects.present)
        self._indexer.add_indexers({NAMESPACE_INDEX: meta_namespace_index_func, **(indexers or {})})
        self._options = options or ReflectorOptions()
        self._shutdown_grace = shutdown_grace
        self._watch_error_handler = plain_function(watch_error_handler, "watch_error_handler")
        self._processor: SharedProcessor[T] = SharedProcessor()
        self._keys: KeyWaiters[T] = KeyWaiters()
        self._updates: CacheUpdates[T] = CacheUpdates(self._indexer, self._objects, self._processor, self._keys)
        self._queue: Queue[Record] = queue_of(queue, self._indexer.cells, self._updates, self._options.slice_seconds)
        self._controller: CacheController | None = None
        self._state_handlers: list[Callable[[InformerState], Any]] = []
        self._synced = Latch()
        self._versions = VersionWaiters()
        self._started = False
        self._stopped = False
        self._crash: Exception | None = None
        self._owner = Owner()
        self._handler_numbers = count(1)

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
        deliver = delivery_to(handler)
        if self._stopped:
            raise InformerStopped(f"handler was not added to {self.name} because it has stopped already")
        name = f"{self.name}: handler {next(self._handler_numbers)} ({describe(handler)})"
        schedule = ResyncSchedule(self._periods.negotiate(resync_period, name, final=self._started))
        schedule.adopt(self._periods.check, self._now())
        listener: ProcessorListener[T] = ProcessorListener(name, deliver, schedule, self._options.slice_seconds)
        if self._started:
            # A predicate may do this in the middle of a batch: what the others are to be told of what is in the store
            # already must not come to this one on top of it.
            self._processor.flush()
            present = self._objects.present
            records = self._indexer.cells.items()
            listener.add((AddNotification(present(record), True) for record in records), len(records))
        self._processor.add_listener(listener)
        if self._synced:
            listener.upstream_synced()
        return HandlerRegistration(listener)

    def remove_event_handler(self, registration: HandlerRegistration[T]) -> None:
        """Ends a registration: what waits for its handler is dropped, a call that is under way may finish.

        Does nothing for a registration that is removed already, or is another informer's.

        Raises:
            UsageError: this is no registration.
        """
        if not isinstance(registration, HandlerRegistration):
            raise UsageError(f"expected what add_event_handler returned, not {type(registration).__name__}")
        listener = registration._listener
        if listener in self._processor.listeners:
            self._processor.remove_listener(listener)
            listener.synced.fail(InformerStopped(f"{listener.name} was removed before it had synced"))

    def add_state_handler(self, handler: Callable[[InformerState], Any]) -> None:
        """Calls a function with each new state, at once when it changes; it must be quick.

        Raises:
            UsageError: it is a coroutine function.
        """
        self._state_handlers.append(plain_function(handler, "state handler"))

    # Configuration.

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Calls a function with each failure of a list or watch; it must be quick. The last one set counts.

        Raises:
            UsageError: the informer was started, or this is a coroutine function.
        """
        self._before_start("the watch error handler")
        self._watch_error_handler = plain_function(handler, "watch error handler")

    def set_transform(self, transform: Transform[T]) -> None:
        """Lets a function see each object before anybody else does; what it returns is cached.

        Raises:
            UsageError: the informer was started.
        """
        self._before_start("the transform")
        self._objects.transform = plain_function(transform, "transform")

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Adds index functions by name, now or while the informer runs; what is cached is indexed before this returns.

        That holds the event loop for as long as the functions take for everything in the cache. Once there is much of
        it, await `add_indexers_in_slices` instead.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: a name is taken; nothing is changed then.
        """
        self._before_indexers(indexers)
        self._indexer.add_indexers(indexers)

    async def add_indexers_in_slices(self, indexers: Indexers[T]) -> None:
        """The same as `add_indexers`, while the event loop goes on: the indices can be asked once this returns.

        If it is cancelled, nothing is added.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: a name is taken; nothing is changed then.
        """
        self._before_indexers(indexers)
        slicer = Slicer(self._options.slice_seconds)
        with closing(self._indexer.cells.adding_indexers(indexers)) as steps:
            for _ in steps:
                await slicer.pause()

    # Reading.

    def get_indexer(self) -> Indexer[T]:
        """The cache with its indices, for reading. The same one at any time, also after the stop."""
        return self._indexer

    def get_store(self) -> Indexer[T]:
        """The cache, for reading."""
        return self._indexer

    def lister(self) -> Lister[T]:
        """Reads the cache with label selectors and by namespace; for cluster-scoped resources, a `ClusterLister`."""
        if not self.resource.namespaced:
            return cast("Lister[T]", ClusterLister(self._indexer, self.resource))
        return Lister(self._indexer, self.resource)

    def has_synced(self) -> bool:
        """Whether the cache has been filled from the first list; handlers may not have been told yet."""
        return bool(self._synced)

    def is_stopped(self) -> bool:
        """Whether the informer has stopped, for good."""
        return self._stopped

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which everything is in the cache; "" before the first list."""
        return self._indexer.last_store_sync_resource_version()

    @property
    def initial_resource_version(self) -> str:
        """The version of the first list, from which the cache was filled; "" before that."""
        return self._controller.reflector.initial_resource_version if self._controller is not None else ""

    @property
    def state(self) -> InformerState:
        """What the informer is doing, for probes and people."""
        state = self._controller.reflector.state if self._controller is not None else InformerState(Phase.NEW, "", 0.0)
        if self._crash is not None:
            return replace(state, phase=Phase.STOPPED, reason=f"crashed: {type(self._crash).__name__}")
        if self._stopped and state.phase is Phase.NEW:  # it ended before the reflector took its first step
            return replace(state, phase=Phase.STOPPED)
        return state

    @property
    def skipped(self) -> int:
        """How many objects could not be decoded, or were refused by transform or decoder, so far."""
        return self._controller.reflector.skipped if self._controller is not None else 0

    # Waiting.

    async def wait_for_sync(self) -> None:
        """Returns once `has_synced()`.

        Raises:
            InformerStopped: the informer stopped before that.
            Exception: what the informer crashed with.
        """
        await self._synced.wait()

    async def wait_for_resource_version(self, resource_version: str) -> None:
        """Returns once the cache contains everything up to a version: of an own write, for one.

        Args:
            resource_version: as in the metadata of what the server answered to a write of this resource.

        Raises:
            UsageError: this is no version.
            InformerStopped: the informer stopped before that.
        """
        if not resource_version or type(resource_version) is not str:
            raise UsageError(f"resource_version must be what the server called it, a string, not {resource_version!r}")
        await self._versions.wait(resource_version)

    @overload
    async def wait_for(
        self,
        key: str,
        predicate: None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T: ...

    @overload
    async def wait_for(
        self,
        key: str,
        predicate: Callable[[T | None], Any],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T | None: ...

    async def wait_for(
        self,
        key: str,
        predicate: Callable[[T | None], Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - what most callers would otherwise write around it
    ) -> T | None:
        """Returns an object once something is true of it; at once if it is already.

        Args:
            key: `namespace/name`, or `name`.
            predicate: object, or None while it is absent -> whether that is what is waited for. By default, that it
                exists.
            timeout: in seconds, None for no limit.

        Raises:
            TimeoutError: it did not come true in time.
            InformerStopped: the informer stopped before that.
            Exception: what the predicate raised.
        """
        wanted = plain_function(predicate, "predicate") or _exists
        obj = self._indexer.get_by_key(key)
        if wanted(obj):
            return obj
        async with asyncio.timeout(timeout):
            return await self._keys.wait(key, wanted)

    # Life.

    async def __aenter__(self) -> Self:
        if self._started or self._stopped:
            raise UsageError(f"{self.name} runs once; make a new informer")
        self._owner.start(self.run, self.name)
        try:
            await asyncio.sleep(0)  # by then it has begun
        except asyncio.CancelledError:
            await self._owner.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._owner.stop()

    async def run(self) -> None:
        """Runs until cancelled. A second call warns and returns (ARC-09).

        Raises:
            Exception: what a part of the informer crashed with; handlers that raise are no such thing.
        """
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
        self._stopped = True
        self._synced.fail(failure)
        self._versions.fail(failure)
        self._keys.fail(failure)
        for listener in self._processor.listeners:
            listener.synced.fail(failure)

    async def _run(self) -> None:
        self._indexer.cells.on_release = partial(discard, asyncio.get_running_loop())
        now = self._now()
        for listener in self._processor.listeners:
            listener.resync.adopt(self._periods.check, now)
        async with asyncio.TaskGroup() as tasks:
            listening = asyncio.Event()
            processor = tasks.create_task(self._processor.run(listening), name=f"{self.name}: processor")
            await listening.wait()
            if self._compressor is not None:
                compressing = tasks.create_task(
                    self._compressor.run(self._indexer.cells, self._synced.wait), name=f"{self.name}: compression"
                )
            try:
                await self._follow()
            finally:
                # The order of the stop (SI-04): nothing new comes in, nobody joins, then the handlers end.
                self._stopped = True
                with anyio.CancelScope(shield=True):
                    await self._processor.stop(self._shutdown_grace)
                processor.cancel()
                if self._compressor is not None:
                    compressing.cancel()

    async def _follow(self) -> None:
        """Fills the cache and keeps it fresh, until cancelled."""
        self._controller = CacheController(self._config())
        await self._controller.run()

    def _config(self) -> CacheControllerConfig:
        return CacheControllerConfig(
            queue=self._queue,
            lister_watcher=self._lister_watcher,
            process=self._updates.handle_deltas,
            flush=self._processor.flush,
            on_version=self._processed,
            name=self.name,
            options=self._options,
            decode=self._objects.decode,
            admit=self._objects.admit if self._objects.decodes_early else None,
            known=self._indexer.cells.item,
            resync_period=self._periods.check,
            should_resync=lambda: self._processor.should_resync(self._now()),
            watch_error_handler=self._watch_error_handler,
            on_state=self._state_changed,
            before_read=self._compressor.settle if self._compressor is not None else None,
        )

    # What the controller calls.

    def _processed(self, version: str) -> None:
        self._indexer.bookmark(version)
        self._versions.reached(version)
        if not self._synced and self._queue.has_synced():
            self._synced.set()
            for listener in self._processor.listeners:
                listener.upstream_synced()

    def _state_changed(self, state: InformerState) -> None:
        for handler in self._state_handlers:
            try:
                handler(state)
            except Exception:
                _log.exception("%s: a state handler raised", self.name)

    # Small things.

    def _before_indexers(self, indexers: Indexers[T]) -> None:
        if self._stopped:
            raise InformerStopped(f"indexers were not added to {self.name} because it has stopped already")
        if not self._started:
            self._objects.declare(field_paths(indexers))

    def _before_start(self, what: str) -> None:
        if self._started:
            raise UsageError(f"{self.name} was started already: set {what} before that")

    @staticmethod
    def _now() -> float:
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:  # before there is a loop; schedules are made anew at the start
            return 0.0

    def __repr__(self) -> str:
        return f"<{self.name}, {self.state}, {len(self._indexer)} objects>"


def _exists(obj: object) -> bool:
    return obj is not None
