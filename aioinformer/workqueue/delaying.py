"""A work queue that takes items in advance: they are added when their time has come (WQ-09, WQ-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeVar

from aioinformer.errors import UsageError
from aioinformer.workqueue.queue import WorkQueue

if TYPE_CHECKING:
    from aioinformer.metrics import MetricsProvider
    from aioinformer.workqueue.orders import QueueOrder

T = TypeVar("T", bound=Hashable)

#: What becomes of delayed items when the queue is drained.
Delayed = Literal["drop", "now", "wait"]


class DelayingQueue(WorkQueue[T]):
    """A work queue with `add_after`.

    A delay is no reservation: an item that waits for its time can be added in between, and is added again when its
    time comes.

    Args:
        name: for statistics and error messages.
        order: what comes next of what is queued; by default, what was added first.
        metrics: as for `WorkQueue`.
    """

    def __init__(
        self, name: str = "", *, order: QueueOrder[T] | None = None, metrics: MetricsProvider | None = None
    ) -> None:
        self._ready_at: dict[T, float] = {}
        #: (time, number, item); only the entry counts whose time is that in `_ready_at`.
        self._heap: list[tuple[float, int, T]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._retries = 0
        super().__init__(name, order=order, metrics=metrics)

    def add_after(self, item: T, delay: float) -> None:
        """Adds an item after a time. Of several times for one item the earliest counts. Ignored when shutting down.

        A plain call of the loop's thread that never waits, however much is delayed.

        Args:
            item: what to add.
            delay: in seconds; 0 or less is now.

        Raises:
            UsageError: the delay is no number.
            RuntimeError: there is no event loop yet.
        """
        if delay != delay:
            raise UsageError(f"add_after({item!r}): delay must be a number of seconds, not {delay!r}")
        if self._shutting_down:
            return
        self._retries += 1
        if delay <= 0:
            self._add(item)
            return
        ready_at = asyncio.get_running_loop().time() + delay
        known = self._ready_at.get(item)
        if known is None or ready_at < known:
            self._ready_at[item] = ready_at
            heappush(self._heap, (ready_at, next(self._numbers), item))
            if len(self._heap) > 2 * len(self._ready_at) + 16:
                self._sweep()
            self._set_timer()

    def shut_down(self) -> None:
        """As for every work queue; items that wait for their time are dropped."""
        super().shut_down()
        self._drop_delayed()

    async def shut_down_with_drain(self, delayed: Delayed = "drop") -> bool:
        """Takes nothing in any more, and waits until workers have done everything: queued, processing and dirty.

        Args:
            delayed: what becomes of items that wait for their time: they are dropped (as in client-go), or their time
                is "now", or it is waited for.

        Returns:
            Whether everything was done; False if `shut_down` was called meanwhile.
        """
        if delayed not in ("drop", "now", "wait"):
            raise UsageError(f'delayed must be "drop", "now" or "wait", not {delayed!r}')
        if delayed == "drop":
            self._drop_delayed()
        elif delayed == "now":
            self._add_ready(float("inf"))
        return await super().shut_down_with_drain()

    def _set_timer(self) -> None:
        while self._heap and self._ready_at.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        due = self._heap[0][0] if self._heap else None
        if self._timer is not None:
            if self._timer.when() == due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._on_time, due)

    def _on_time(self, due: float) -> None:
        self._timer = None
        # Loops may call a little early.
        self._add_ready(max(due, asyncio.get_running_loop().time()))

    def _add_ready(self, until: float) -> None:
        """Adds what is ready, in the order of the times."""
        while self._heap and self._heap[0][0] <= until:
            ready_at, _, item = heappop(self._heap)
            if self._ready_at.get(item) == ready_at:
                del self._ready_at[item]
                self._add(item)
        self._set_timer()

    def _sweep(self) -> None:
        """Throws away entries that do not count, before most of the heap is made of them."""
        self._heap = [entry for entry in self._heap if self._ready_at.get(entry[2]) == entry[0]]
        heapify(self._heap)

    def _drop_delayed(self) -> None:
        self._ready_at.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._check_drained()

    def _count_delayed(self) -> int:
        return len(self._ready_at)

    def _count_retries(self) -> int:
        return self._retries
