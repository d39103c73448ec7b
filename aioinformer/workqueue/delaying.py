"""A work queue that can add an item after a delay."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Literal, TypeVar

from aioinformer.errors import UsageError
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.workqueue.orders import QueueOrder
from aioinformer.workqueue.queue import WorkQueue
from aioinformer.workqueue.waiting import DueTimer

T = TypeVar("T", bound=Hashable)

#: What `shut_down_with_drain` does with delayed items.
Delayed = Literal["drop", "now", "wait"]


class DelayingQueue(WorkQueue[T]):
    """A work queue with `add_after`.

    A delayed item can also be added at once in the meantime. It is then added again when its delay ends.

    Args:
        name: for statistics and error messages.
        order: decides which queued item comes next; first in, first out by default.
        metrics: as for `WorkQueue`.
    """

    def __init__(
        self, name: str = "", *, order: QueueOrder[T] | None = None, metrics: MetricsProvider | None = None
    ) -> None:
        self._ready_at: dict[T, float] = {}
        #: (time, number, item). An entry is valid only if its time equals the one in `_ready_at`.
        self._heap: list[tuple[float, int, T]] = []
        self._numbers = count()
        self._timer = DueTimer(self._add_ready)
        self._retries = 0
        super().__init__(name, order=order, metrics=metrics)

    def add_after(self, item: T, delay: float) -> None:
        """Add an item after a delay.

        If an item is delayed more than once, the earliest time applies. Once the queue is shutting down, the call has
        no effect. It never waits. Call it on the thread of the event loop.

        Args:
            item: the item to add.
            delay: in seconds; with 0 or less, the item is added at once.

        Raises:
            UsageError: the delay is NaN.
            RuntimeError: no event loop is running.
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
                self._drop_invalid_entries()
            self._set_timer()

    def shut_down(self) -> None:
        """Shut down as every work queue does, and drop delayed items."""
        super().shut_down()
        self._drop_delayed()

    async def shut_down_with_drain(self, delayed: Delayed = "drop") -> bool:
        """Accept no more items, and wait until workers have finished all items: queued, processing and dirty.

        Args:
            delayed: "drop" drops delayed items, as client-go does; "now" adds them at once; "wait" waits for
                their delays to end.

        Returns:
            True if all items were finished; False if `shut_down` was called in the meantime.

        Raises:
            UsageError: `delayed` is none of the three.
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
        self._timer.set(self._heap[0][0] if self._heap else None)

    def _add_ready(self, until: float) -> None:
        """Add the items whose delay ends by `until`, earliest first."""
        try:
            while self._heap and self._heap[0][0] <= until:
                ready_at, _, item = heappop(self._heap)
                if self._ready_at.get(item) == ready_at:
                    del self._ready_at[item]
                    self._add(item)
        finally:  # the priority function of a user may raise for one item, and must not keep the others
            self._set_timer()

    def _drop_invalid_entries(self) -> None:
        """Rebuild the heap from its valid entries, so that its size stays proportional to the delayed items."""
        self._heap = [entry for entry in self._heap if self._ready_at.get(entry[2]) == entry[0]]
        heapify(self._heap)

    def _drop_delayed(self) -> None:
        self._ready_at.clear()
        self._heap.clear()
        self._timer.set(None)

    def _count_delayed(self) -> int:
        return len(self._ready_at)

    def _count_retries(self) -> int:
        return self._retries
