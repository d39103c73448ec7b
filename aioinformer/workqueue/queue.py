"""The work queue of controllers: each item is worked on by one worker at a time, and no change is forgotten.

The rules are client-go's (WQ-01 to WQ-06). An item is in up to two of three places:

- *queued*: it waits for a worker, in the order that `QueueOrder` says;
- *processing*: a worker has it;
- *dirty*: it was added, and no worker has begun with it since. What is queued is dirty. What is processing and dirty
  was added while it was worked on; it is queued as soon as the worker is done.

From this follows all that can be relied on:

- Adds before the work begins are one piece of work; adds during the work are exactly one more, after it.
- No item is ever with two workers.
- Each add is followed by work that begins after it, unless the queue is shutting down.
- A worker that is cancelled while it waits takes nothing with it.

Everything but waiting is a plain call, made on the thread of the event loop: handlers of informers just call `add`.
Other threads call `loop.call_soon_threadsafe(queue.add, item)`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from aioinformer.concurrency import Slicer
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.metrics import DURATION_BOUNDS, DurationCounter, QueueStatistics
from aioinformer.workqueue.orders import FIFOOrder, QueueOrder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.metrics import MetricsProvider

T = TypeVar("T", bound=Hashable)


class QueueShutDown(AioinformerError):
    """The work queue was shut down, and nothing is left in it."""


class Work:
    """One piece of work that a worker has."""

    __slots__ = ("since",)

    def __init__(self, since: float) -> None:
        self.since = since


class WorkQueue(Generic[T]):
    """A queue of things to look at, usually keys, for any number of workers.

    A worker is a loop that ends with the queue:

        async for key in queue:
            await reconcile(key)

    The key is done when the loop asks for the next one, or is left in whatever way. Where work begins and ends
    elsewhere, `async with queue.processing() as key:` does the same for one key, and `get()` and `done()` are the
    parts of it.

    `async with WorkQueue() as queue:` shuts down on leaving, and waits for nobody.

    Args:
        name: for statistics and error messages.
        order: what comes next; by default, what was added first. It must be empty, and nobody else's.
        metrics: asks for the statistics from time to time; only of a queue with a name.

    Raises:
        UsageError: the metrics have a queue of this name already.
    """

    def __init__(
        self, name: str = "", *, order: QueueOrder[T] | None = None, metrics: MetricsProvider | None = None
    ) -> None:
        self.name = name
        self._order: QueueOrder[T] = FIFOOrder() if order is None else order
        #: When what is dirty was added first.
        self._dirty: dict[T, float] = {}
        self._processing: dict[T, Work] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drains: set[asyncio.Future[bool]] = set()
        self._shutting_down = False
        #: Getting what is there does not suspend; a worker that never does would keep the loop to itself.
        self._slicer = Slicer()
        self._adds = 0
        self._waited = DurationCounter(DURATION_BOUNDS)
        self._worked = DurationCounter(DURATION_BOUNDS)
        if metrics is not None and name:
            metrics.register(self)

    # Putting in.

    def add(self, item: T) -> None:
        """Marks an item as in need of work. Ignored once the queue is shutting down."""
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
        self._dirty[item] = self._now()
        self._adds += 1

    # Taking out.

    async def get(self) -> T:
        """Takes the next item; whoever gets one must call `done(item)`. Cancelled, it takes nothing.

        Raises:
            QueueShutDown: the queue was shut down and is empty, so the worker's life is over.
        """
        return (await self._get())[0]

    async def _get(self) -> tuple[T, Work]:
        await self._slicer.pause()
        while not len(self._order):
            if self._shutting_down and not self._count_delayed():
                raise QueueShutDown(f"{self._title} was shut down")
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except BaseException:
                if getter.done() and not getter.cancelled() and len(self._order):
                    self._wake_getter()  # what it was woken for is for somebody else now
                elif getter in self._getters:
                    self._getters.remove(getter)
                raise
        item = self._order.pop()
        at = self._now()
        self._waited.observe(at - self._dirty.pop(item))
        work = self._processing[item] = Work(at)
        return item, work

    def done(self, item: T) -> None:
        """The work on an item is over. If the item was added meanwhile it is queued again, as the last.

        Raises:
            UsageError: nobody has this item.
        """
        work = self._processing.get(item)
        if work is None:
            raise UsageError(f"done({item!r}): nobody got it from {self._title}; call done once for each get")
        self._finish(item, work)

    def _finish(self, item: T, work: Work) -> None:
        """Ends this piece of work, unless it was ended already."""
        if self._processing.get(item) is not work:
            return
        del self._processing[item]
        self._worked.observe(self._now() - work.since)
        if item in self._dirty:
            self._order.push(item)
            self._wake_getter()
        self._check_drained()

    @asynccontextmanager
    async def processing(self) -> AsyncIterator[T]:
        """The next item, which is done at the end of the block.

        Raises:
            QueueShutDown: on entering, the queue was shut down and is empty.
        """
        item, work = await self._get()
        try:
            yield item
        finally:
            self._finish(item, work)

    def __aiter__(self) -> AsyncIterator[T]:
        return _Worker(self)

    # The end.

    def shut_down(self) -> None:
        """Takes nothing in any more. Workers are given what is queued, then their loops end. Idempotent.

        Ends `shut_down_with_drain`, if somebody waits there.
        """
        self._shut_down()
        self._end_drains(False)

    async def shut_down_with_drain(self) -> bool:
        """Takes nothing in any more, and waits until workers have done everything: queued, processing and dirty.

        It waits for ever if there are no workers; `asyncio.timeout` around it sets a limit.

        Returns:
            Whether everything was done; False if `shut_down` was called meanwhile.
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
        """Whether the queue was shut down, or drains."""
        return self._shutting_down

    def _shut_down(self) -> None:
        self._shutting_down = True
        self._wake_getters()

    def _idle(self) -> bool:
        return not self._processing and not len(self._order) and not self._count_delayed()

    def _check_drained(self) -> None:
        if self._shutting_down and self._idle():
            self._wake_getters()
            self._end_drains(True)

    def _end_drains(self, drained: bool) -> None:
        for drain in self._drains:
            if not drain.done():
                drain.set_result(drained)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.shut_down()

    # Looking at it.

    def __len__(self) -> int:
        """How many items wait for a worker."""
        return len(self._order)

    def statistics(self) -> QueueStatistics:
        """Numbers for metrics. They cost nothing while nobody asks, and any thread may ask."""
        at = self._now()
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
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_getters(self) -> None:
        while self._getters:
            self._wake_getter()

    @staticmethod
    def _now() -> float:
        """Seconds on the clock of the loop; before there is one, on the clock that loops have."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return time.monotonic()


class _Worker(Generic[T]):
    """One `async for`. What it took is done when it asks again, or when the loop has let go of it.

    Python tells an iterator nothing of a `break` or an error in the body but that it is no longer needed. It says so
    at once, and finishing is a plain call; an async generator would need a task of nobody's for the same.
    """

    __slots__ = ("_queue", "_taken")

    def __init__(self, queue: WorkQueue[T]) -> None:
        self._queue = queue
        self._taken: tuple[T, Work] | None = None

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        self._finish()
        try:
            self._taken = await self._queue._get()
        except QueueShutDown:
            raise StopAsyncIteration from None
        return self._taken[0]

    def _finish(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None:
            self._queue._finish(*taken)

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the loop was closed, so nobody waits for it
            self._finish()
