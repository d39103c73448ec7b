"""The parts of an informer between the reflector and the handlers, and their tasks.

```
records ──> queue ──> cache updates ──> cache
                            └─────────> processor ──> listeners
```

A stop has an order: first, no new data is read, then no handler can be added, then the handlers end.

There are two kinds of queues. "delta" (`DeltaFIFO`) combines the queued changes of an object. "in_order" (`RealFIFO`)
keeps the order between objects, and replaces the cache in one step after a list.
"""

from __future__ import annotations

import asyncio
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import ref

from aioinformer.cache.objects.refusals import refusal
from aioinformer.concurrency import Slicer, TaskGroup, discard, shielded
from aioinformer.errors import DecodeError
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.handlers.registration import Registrations
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.informer.options import QueueKind
from aioinformer.logs import get_logger
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
    from aioinformer.informer.health import Undecodable
    from aioinformer.informer.options import RunOptions
    from aioinformer.queue.delta_fifo import KnownObjects, Queue

T = TypeVar("T")

_log = get_logger("aioinformer.informer")

#: Seconds until a step that failed is retried.
_PAUSE: Final = 1.0

_key_of_record: Callable[[Record], str] = attrgetter("key")


class Pipeline(Generic[T]):
    """The parts of one informer that records pass through.

    Args:
        name: of the informer, for tasks and logs.
        indexer: the cache.
        objects: makes views of records.
        waiters: the waits for single objects.
        compressor: of the compressed tier; None for other tiers.

        resync_period: the default resync period of handlers, in seconds; 0 for no resyncs.
        options: how the informer runs.
        report: is called with the error of each object that cannot be delivered.
        stalls: reports handlers that block the event loop, and objects that cannot be decoded.
        undecodable: the objects that cannot be decoded.

    Attributes:
        processor: delivers notifications to the listeners.
        handlers: the registrations.
        updates: applies changes to the cache.
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
        options: RunOptions,
        report: Callable[[Exception], None],
        stalls: Stalls,
        undecodable: Undecodable,
    ) -> None:
        self._undecodable = undecodable
        self._report = report
        self._errors = stalls.errors
        self.processor: SharedProcessor[T] = SharedProcessor()
        self._indexer = indexer
        self._objects = objects
        self._waiters = waiters
        self._options = options
        self.updates = self._new_updates(None)
        self.handlers: Registrations[T] = Registrations(
            name,
            self.processor,
            indexer.store,
            objects.to_view,
            self._view_failed,
            resync_period=resync_period,
            stalls=stalls,
        )
        self._name = name
        self._store = indexer.store
        #: A tuple that is replaced, so that other threads may iterate over it.
        self._queues: tuple[ref[Queue[Record]], ...] = ()
        self._compressor = compressor

    def new_queue(self, known: KnownObjects | None = None) -> Queue[Record]:
        """Return a new, empty queue.

        Args:
            known: the part of the cache that belongs to the collection of the queue; by default, all of it.
        """
        queue: Queue[Record]
        if self._options.queue == QueueKind.DELTA:
            queue = DeltaFIFO(_key_of_record, known or self._store)
        else:
            queue = RealFIFO(self._new_updates(known), _key_of_record)
        self._queues = (*(each for each in self._queues if each() is not None), ref(queue))
        return queue

    def _new_updates(self, known: KnownObjects | None) -> CacheUpdates[T]:
        return CacheUpdates(
            self._indexer,
            self._objects,
            self.processor,
            self._waiters,
            self._view_failed,
            known,
            undecodable=self._undecodable,
        )

    @property
    def queued(self) -> int:
        """The number of queued items between reflector and cache."""
        return sum(len(queue) for each in self._queues if (queue := each()) is not None)

    async def run(
        self,
        follow: Callable[[], Awaitable[None]],
        *,
        synced: Callable[[], Awaitable[None]],
        closing: Callable[[], None],
    ) -> None:
        """Run the listeners and the compressor beside `follow`, and end when it ends.

        Args:
            follow: fills the cache and keeps it fresh, until it is cancelled.
            synced: returns when the cache has synced.
            closing: is called when `follow` has ended. No handler may be added after it.
        """
        self.handlers.begin()
        self._store.on_release = partial(discard, asyncio.get_running_loop())
        async with TaskGroup() as tasks:
            self.processor.start(tasks)
            compression = self._start_compression(tasks, synced)
            try:
                await follow()
            finally:
                closing()
                with shielded():
                    await self.processor.stop(self._options.shutdown_grace)
                if compression is not None:
                    compression.cancel()

    def _start_compression(
        self, tasks: asyncio.TaskGroup, synced: Callable[[], Awaitable[None]]
    ) -> asyncio.Task[None] | None:
        if self._compressor is None:
            return None
        return tasks.create_task(self._compressor.run(self._store, synced), name=f"{self._name}: compression")

    async def forget(self, keys: Iterable[str]) -> None:
        """Delete objects that the informer no longer follows from the cache, in slices, and deliver tombstones.

        Args:
            keys: of objects in the cache.
        """
        slicer = Slicer()
        forgotten = list(keys)
        while True:
            try:
                for _ in self.updates.forget(forgotten):
                    if slicer.count_step():
                        self.updates.flush()
                        await slicer.yield_to_loop()
                self.updates.flush()
                return
            except Exception as error:  # the retry passes over objects that have been deleted
                message = "%s: deleting objects from the cache failed; retrying in %g s"
                self._errors.report(f"{self._name}: deleting objects", error, message, self._name, _PAUSE)
                await asyncio.sleep(_PAUSE)

    def _view_failed(self, key: str, error: BaseException) -> None:
        if isinstance(error, DecodeError):
            reason = str(error).removeprefix(f"{key}: ")
        else:
            reason = refusal(error)
        self._undecodable.unread.add(key, reason)
        subject = f"{self._name}: the decoder"
        message = "%s: %s cannot be decoded, and is not delivered"
        self._errors.report(subject, error, message, self._name, key)
        failure = DecodeError(f"{key} cannot be decoded: {type(error).__name__}", key=key)
        failure.__cause__ = error
        self._report(failure)
