"""The work queue of controllers: at most one worker processes an item at a time, and no add is lost.

It follows client-go's rules. An item has up to two of three states:

- *queued*: it waits for a worker, in the order that its `QueueOrder` defines;
- *processing*: a worker has dequeued it and not finished it;
- *dirty*: it was added, and no worker has dequeued it since. Queued items are dirty. An item that is added while it
  is processing is dirty too; it is queued again when the worker finishes it.

Guarantees:

- Adds of a queued item are merged. Adds of an item that is processing cause exactly one more run, after this one.
- No two workers process the same item at the same time.
- Each add is followed by a run that starts after it, unless the queue is shutting down.
- Cancelling a worker that waits in `get()` loses no item.

Only `get`, `processing`, iteration and draining wait. The other methods are plain calls on the thread of the event
loop: an informer's handler calls `add`. On other threads, call `loop.call_soon_threadsafe(queue.add, item)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from typing import Generic, Self, TypeVar

from aioinformer.concurrency import Slicer
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.metrics.counters import DURATION_BOUNDS, DurationCounter
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.metrics.statistics import QueueStatistics
from aioinformer.workqueue.orders import FIFOOrder, QueueOrder
from aioinformer.workqueue.waiting import Getters, loop_time

T = TypeVar("T", bound=Hashable)


class QueueShutDown(AioinformerError):
    """The work queue was shut down and is empty."""


class Work:
    """One run of an item, from dequeueing it to `done`."""

    __slots__ = ("since",)

    def __init__(self, since: float) -> None:
        self.since = since


class WorkQueue(Generic[T]):
    """A queue of items to process, usually keys, for any number of workers.

    A worker is a loop that ends once the queue is shut down and empty:

        async for key in queue:
            await reconcile(key)

    A key is done when the loop asks for the next one, and when the loop is left. `async with queue.processing() as
    key:` processes one key in the same way; `get()` and `done()` are its two halves.

    `async with WorkQueue() as queue:` shuts down on leaving, without waiting for workers.

    Args:
        name: for statistics and error messages.
        order: decides which queued item comes next; first in, first out by default. It must be empty, and belongs
            to this queue alone.
        metrics: reads the statistics of the queue. Queues without a name are not registered.

    Raises:
        UsageError: the metrics already have a queue of this name.
    """

    def __init__(
        self, name: str = "", *, order: QueueOrder[T] | None = None, metrics: MetricsProvider | None = None
    ) -> None:
        self.name = name
        self._order: QueueOrder[T] = FIFOOrder() if order is None else order
        #: The dirty items, and the time of the first add of each.
        self._dirty: dict[T, float] = {}
        self._processing: dict[T, Work] = {}
        self._getters = Getters(self._wake_getter)
        self._drains: set[asyncio.Future[bool]] = set()
        self._shutting_down = False
        #: Dequeueing a queued item does not suspend: without pauses, one worker could block the event loop.
        self._slicer = Slicer()
        self._adds = 0
        self._waited = DurationCounter(DURATION_BOUNDS)
        self._worked = DurationCounter(DURATION_BOUNDS)
        if metrics is not None and name:
            metrics.register(self)

    # Adding.

    def add(self, item: T) -> None:
        """Add an item. Once the queue is shutting down, the call has no effect."""
        if not self._shutting_down:
            self._add(item)

    def _add(self, item: T) -> None:
        if item in self._dirty:
            if item not in self._processing:
                self._order.touch(item)
            return
        if item not in self._processing:
            self._order.push(item)
            self._wake_getter()
        self._dirty[item] = loop_time()
        self._adds += 1

    # Processing.

    async def get(self) -> T:
        """Wait for the next item and dequeue it. Call `done(item)` when you have processed it.

        If the call is cancelled, no item is dequeued.

        Raises:
            QueueShutDown: the queue was shut down and is empty; the worker can end.
        """
        return (await self._get())[0]

    async def _get(self) -> tuple[T, Work]:
        if len(self._order):  # a wait gives other tasks a turn anyway
            await self._slicer.pause()
        while not len(self._order):
            if self._shutting_down and not self._count_delayed():
                raise QueueShutDown(f"{self._title} was shut down")
            await self._getters.wait()
        item = self._order.pop()
        at = loop_time()
        self._waited.observe(at - self._dirty.pop(item))
        work = Work(at)
        self._processing[item] = work
        return item, work

    def done(self, item: T) -> None:
        """Finish an item. If it was added since it was dequeued, it is queued again.

        Raises:
            UsageError: the item is not processing.
        """
        work = self._processing.get(item)
        if work is None:
            raise UsageError(f"done({item!r}): {self._title} is not processing it; call done once for each get")
        self._finish(item, work)

    def _finish(self, item: T, work: Work) -> None:
        """Finish this run of the item, unless it is finished already."""
        if self._processing.get(item) is not work:
            return
        del self._processing[item]
        self._worked.observe(loop_time() - work.since)
        if item in self._dirty:
            try:
                self._order.push(item)
            except BaseException:  # the priority function of a user
                del self._dirty[item]  # otherwise, later adds would be merged with one that no worker gets
                self._check_drained()
                raise
            self._wake_getter()
        self._check_drained()

    @asynccontextmanager
    async def processing(self) -> AsyncIterator[T]:
        """Wait for the next item; it is done at the end of the block.

        Raises:
            QueueShutDown: on entry, the queue was shut down and is empty.
        """
        item, work = await self._get()
        try:
            yield item
        finally:
            self._finish(item, work)

    def __aiter__(self) -> AsyncIterator[T]:
        return _Worker(self._get, self._finish)

    # Shutting down.

    def shut_down(self) -> None:
        """Accept no more items. Workers process the queued items, then their loops end. Idempotent.

        A waiting `shut_down_with_drain` returns False.
        """
        self._shut_down()
        self._end_drains(False)

    async def shut_down_with_drain(self) -> bool:
        """Accept no more items, and wait until workers have finished all items: queued, processing and dirty.

        Without workers this waits for ever; use `asyncio.timeout` to set a limit.

        Returns:
            True if all items were finished; False if `shut_down` was called in the meantime.
        """
        self._shut_down()
        drain: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._drains.add(drain)
        self._check_drained()
        try:
            return await drain
        finally:
            self._drains.discard(drain)

    @property
    def shutting_down(self) -> bool:
        """Whether the queue was shut down or is draining."""
        return self._shutting_down

    def _shut_down(self) -> None:
        self._shutting_down = True
        self._getters.wake_all()

    def _idle(self) -> bool:
        return not self._processing and not len(self._order) and not self._count_delayed()

    def _check_drained(self) -> None:
        if self._shutting_down and self._idle():
            self._getters.wake_all()
            self._end_drains(True)

    def _end_drains(self, drained: bool) -> None:
        for drain in self._drains:
            if not drain.done():
                drain.set_result(drained)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.shut_down()

    # Inspecting.

    def __len__(self) -> int:
        """Return the number of queued items."""
        return len(self._order)

    def statistics(self) -> QueueStatistics:
        """Return figures for metrics, computed on each call. Thread-safe."""
        at = loop_time()
        running = [at - work.since for work in tuple(self._processing.values())]
        return QueueStatistics(
            name=self.name,
            depth=len(self._order),
            processing=len(running),
            delayed=self._count_delayed(),
            adds=self._adds,
            retries=self._count_retries(),
            waited=self._waited.snapshot(),
            worked=self._worked.snapshot(),
            unfinished_work=sum(running),
            longest_running=max(running, default=0.0),
            shutting_down=self._shutting_down,
        )

    def _count_delayed(self) -> int:
        return 0

    def _count_retries(self) -> int:
        return 0

    def __repr__(self) -> str:
        state = ", shutting down" if self._shutting_down else ""
        return f"<{self._title}: {len(self)} queued, {len(self._processing)} processing{state}>"

    @property
    def _title(self) -> str:
        return f"work queue {self.name!r}" if self.name else "the work queue"

    def _wake_getter(self) -> None:
        if len(self._order):
            self._getters.wake()


class _Worker(Generic[T]):
    """The iterator of one `async for`: finishes its item when the next one is requested, or when the loop is left.

    Python does not notify an iterator of a `break` or an error in the body; it only drops the last reference. That
    happens at once, so `__del__` finishes the item. An async generator would be closed by a task of the event loop,
    later.
    """

    __slots__ = ("_current", "_finish_item", "_get")

    def __init__(self, get: Callable[[], Awaitable[tuple[T, Work]]], finish_item: Callable[[T, Work], None]) -> None:
        self._get = get
        self._finish_item = finish_item
        self._current: tuple[T, Work] | None = None

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        self._finish()
        try:
            self._current = await self._get()
        except QueueShutDown:
            raise StopAsyncIteration from None
        return self._current[0]

    def _finish(self) -> None:
        current = self._current
        self._current = None
        if current is not None:
            self._finish_item(*current)

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed: no future can be resolved any more
            self._finish()
