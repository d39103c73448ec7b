"""What stands between the answers of the server and the handlers of one informer, and the tasks that it needs.

```
records ──> queue ──> cache updates ──> cache
                            └─────────> processor ──> listeners
```

The stop has an order (SI-04): first nothing new comes in, then nobody joins, then the handlers end.
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from functools import partial
from operator import attrgetter
from time import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import ref

import anyio

from aioinformer.cache.objects.refusals import refusal
from aioinformer.concurrency import Slicer, discard
from aioinformer.errors import EXHAUSTION, DecodeError, UsageError
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.handlers.registration import Registrations
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.informer.health import Undecodable
from aioinformer.logs import get_logger
from aioinformer.metrics import InformerCounters, InformerStatistics
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.real_fifo import RealFIFO

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aioinformer.cache.compressor import Compressor
    from aioinformer.cache.objects.codec import ObjectType
    from aioinformer.cache.objects.record import Record
    from aioinformer.cache.store import Indexer
    from aioinformer.cache.waiters import KeyWaiters
    from aioinformer.handlers.stalls import Stalls
    from aioinformer.metrics import InformerNameAndResource
    from aioinformer.queue.delta_fifo import KnownObjects, Queue
    from aioinformer.reflector.state import InformerState


_key_of_record: Callable[[Record], str] = attrgetter("key")


class QueueKind(StrEnum):
    """The names of the queues."""

    DELTA = "delta"
    IN_ORDER = "in_order"


def check_queue_kind(kind: str) -> None:
    """Do nothing for the name of a queue.

    Raises:
        UsageError: there is no such queue.
    """
    if kind not in set(QueueKind):
        raise UsageError(f"queue={kind!r} does not exist; choose one of {', '.join(QueueKind)}")


T = TypeVar("T")

_log = get_logger("aioinformer.informer")

#: Seconds until what there was no memory for is tried again.
_BREATHER: Final = 1.0


class Pipeline(Generic[T]):
    """The parts of one informer that records pass through.

    Args:
        name: of the informer, for tasks and logs.
        indexer: the cache.
        objects: makes of a record what handlers see.
        waiters: those who wait for single objects.
        compressor: serves the compressed tier, if that is how objects are kept.

        resync_period: how often handlers are told of everything again, in seconds; 0 for never.
        queue: the kind of queue, see `aioinformer.informer.pipeline`.
        slice_seconds: how long work may hold the event loop at a time.
        report: takes errors that are nobody's fault who is here.
        identity: whose numbers are counted; nothing is, without one that is reserved (MET-03).
        stalls: names handlers that block the loop.
        undecodable: counts objects that cannot be shown to handlers.

    Attributes:
        processor: tells the handlers.
        handlers: who is told.
        updates: brings the cache up to date.
        counters: what is counted, if anything is.
    """

    def __init__(
        self,
        name: str,
        indexer: Indexer[T],
        objects: ObjectType[T],
        waiters: KeyWaiters[T],
        compressor: Compressor | None,
        *,
        resync_period: float,
        queue: str,
        slice_seconds: float,
        report: Callable[[Exception], None],
        identity: InformerNameAndResource | None = None,
        stalls: Stalls | None = None,
        undecodable: Undecodable | None = None,
    ) -> None:
        check_queue_kind(queue)
        self._undecodable: Undecodable = Undecodable(indexer.store) if undecodable is None else undecodable
        self._report = report
        self.processor: SharedProcessor[T] = SharedProcessor()
        self._updates_of: Callable[[KnownObjects | None], CacheUpdates[T]] = partial(
            CacheUpdates,
            indexer,
            objects,
            self.processor,
            waiters,
            self._view_failed,
            undecodable=self._undecodable,
        )
        self.updates = self._updates_of(None)
        self.handlers: Registrations[T] = Registrations(
            name,
            self.processor,
            indexer.store,
            objects.to_view,
            self._view_failed,
            resync_period=resync_period,
            slice_seconds=slice_seconds,
            stalls=stalls,
        )
        self.counters = InformerCounters() if identity is not None and identity.reserved else None
        self._identity = identity
        self._name = name
        self._indexer = indexer
        self._store = indexer.store
        #: A tuple, which other threads may go through while another takes its place.
        self._queues: tuple[ref[Queue[Record]], ...] = ()
        self._kind = queue
        self._compressor = compressor
        self._slice_seconds = slice_seconds

    def queue(self, known: KnownObjects | None = None) -> Queue[Record]:
        """A new queue, empty.

        Args:
            known: what the cache has of the collection that the queue is for; by default, all of it.
        """
        updates = self._updates_of(known)
        queue: Queue[Record]
        if self._kind == QueueKind.DELTA:
            queue = DeltaFIFO(_key_of_record, known or self._store, slice_seconds=self._slice_seconds)
        else:
            queue = RealFIFO(updates, _key_of_record, slice_seconds=self._slice_seconds)
        self._queues = (*(each for each in self._queues if each() is not None), ref(queue))
        return queue

    @property
    def queued(self) -> int:
        """What waits between reflector and cache."""
        return sum(len(queue) for each in self._queues if (queue := each()) is not None)

    def statistics(self, state: InformerState) -> InformerStatistics:
        """The numbers of now.

        Args:
            state: of the informer.

        Raises:
            UsageError: nothing is counted.
        """
        counters, identity = self.counters, self._identity
        if counters is None or identity is None:
            raise UsageError(f"{self._name} counts nothing: give it an identifier that no other informer has")
        return InformerStatistics(
            identity=identity,
            objects=len(self._indexer),
            resource_version=self._indexer.last_store_sync_resource_version(),
            queued=self.queued,
            pending=max((listener.pending for listener in tuple(self.processor.listeners)), default=0),
            processing=counters.processing.snapshot(),
            lists=counters.lists.snapshot(),
            listed=counters.listed,
            watches=counters.watches.snapshot(),
            short_watches=counters.short_watches,
            watched=counters.watched,
            phase=str(state.phase),
            healthy=state.healthy,
            handler_errors=self.processor.errors,
            undecodable=len(self._undecodable),
            skipped=self._undecodable.skipped,
            last_event_age=None if state.last_event is None else max(0.0, time() - state.last_event),
            relists=counters.relists.copy(),
        )

    async def run(
        self,
        follow: Callable[[], Awaitable[None]],
        *,
        synced: Callable[[], Awaitable[None]],
        closing: Callable[[], None],
        shutdown_grace: float,
    ) -> None:
        """Serves whatever `follow` does, and ends when that does.

        Args:
            follow: fills the cache and keeps it fresh, until cancelled.
            synced: returns when the cache is filled.
            closing: called when `follow` has ended: nobody may join any more.
            shutdown_grace: seconds a handler that is running then has to finish.
        """
        self.handlers.begin()
        self._store.on_release = partial(discard, asyncio.get_running_loop())
        async with asyncio.TaskGroup() as tasks:
            listening = asyncio.Event()
            beside = [tasks.create_task(self.processor.run(listening), name=f"{self._name}: processor")]
            await listening.wait()
            if self._compressor is not None:
                compression = self._compressor.run(self._store, synced)
                beside.append(tasks.create_task(compression, name=f"{self._name}: compression"))
            try:
                await follow()
            finally:
                closing()
                with anyio.CancelScope(shield=True):
                    await self.processor.stop(shutdown_grace)
                for task in beside:
                    task.cancel()

    async def forget(self, keys: Iterable[str]) -> None:
        """Takes objects out of the cache that nobody follows any more, in slices, and tells them as gone.

        Args:
            keys: of objects in the cache.
        """
        slicer = Slicer(self._slice_seconds)
        forgotten = list(keys)
        while True:
            try:
                for _ in self.updates.forget(forgotten):
                    if slicer.due():
                        self.processor.flush()
                        await slicer.let_go()
                self.processor.flush()
                return
            except EXHAUSTION:  # what is gone already is passed over the next time
                _log.exception("%s: objects could not be taken out of the cache; trying again", self._name)
                await asyncio.sleep(_BREATHER)

    def _view_failed(self, key: str, error: BaseException) -> None:
        reason = str(error).removeprefix(f"{key}: ") if isinstance(error, DecodeError) else refusal(error)
        self._undecodable.unread.add(key, reason)
        _log.error("%s: %s cannot be shown, and is passed over", self._name, key, exc_info=error)
        failure = DecodeError(f"{key} cannot be shown: {type(error).__name__}", key=key)
        failure.__cause__ = error
        self._report(failure)
