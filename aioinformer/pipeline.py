"""What stands between the answers of the server and the handlers of one informer, and the tasks that it needs.

```
records ──> queue ──> cache updates ──> cache
                            └─────────> processor ──> listeners
```

The stop has an order (SI-04): first nothing new comes in, then nobody joins, then the handlers end.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from aioinformer.cache_updates import CacheUpdates
from aioinformer.processor import SharedProcessor
from aioinformer.queue_choice import queue_of
from aioinformer.registrations import Registrations
from aioinformer.slices import Slicer, discard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aioinformer.compressor import Compressor
    from aioinformer.fifo import KnownObjects, Queue
    from aioinformer.object_type import ObjectType
    from aioinformer.objects import Record
    from aioinformer.store import Indexer
    from aioinformer.waiters import KeyWaiters

T = TypeVar("T")


class Pipeline(Generic[T]):
    """The parts of one informer that records pass through.

    Args:
        name: of the informer, for tasks and logs.
        indexer: the cache.
        objects: makes of a record what handlers see.
        waiters: those who wait for single objects.
        compressor: serves the compressed tier, if that is how objects are kept.

        resync_period: how often handlers are told of everything again, in seconds; 0 for never.
        queue: the kind of queue, see `aioinformer.queue_choice`.
        slice_seconds: how long work may hold the event loop at a time.

    Attributes:
        processor: tells the handlers.
        handlers: who is told.
        updates: brings the cache up to date.
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
    ) -> None:
        self.processor: SharedProcessor[T] = SharedProcessor()
        self.updates: CacheUpdates[T] = CacheUpdates(indexer, objects, self.processor, waiters)
        self.handlers: Registrations[T] = Registrations(
            name,
            self.processor,
            indexer.cells,
            objects.present,
            resync_period=resync_period,
            slice_seconds=slice_seconds,
        )
        self._name = name
        self._cells = indexer.cells
        self._kind = queue
        self._compressor = compressor
        self._slice_seconds = slice_seconds

    def queue(self, known: KnownObjects | None = None) -> Queue[Record]:
        """A new queue, empty.

        Args:
            known: what the cache has of the collection that the queue is for; by default, all of it.

        Raises:
            UsageError: there is no such kind.
        """
        return queue_of(self._kind, known or self._cells, self.updates, self._slice_seconds)

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
        self._cells.on_release = partial(discard, asyncio.get_running_loop())
        async with asyncio.TaskGroup() as tasks:
            listening = asyncio.Event()
            beside = [tasks.create_task(self.processor.run(listening), name=f"{self._name}: processor")]
            await listening.wait()
            if self._compressor is not None:
                compression = self._compressor.run(self._cells, synced)
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
        for _ in self.updates.forget(keys):
            if slicer.due():
                self.processor.flush()
                await slicer.let_go()
        self.processor.flush()
