"""The order in which a work queue hands out its items: first in, first out, or by priority."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, Protocol, TypeVar

T = TypeVar("T", bound=Hashable)


class QueueOrder(Protocol[T]):
    """The queued items of a work queue, in order. Each item is in it at most once."""

    def push(self, item: T) -> None:
        """Insert an item that is not queued yet."""

    def touch(self, item: T) -> None:
        """Handle another add of a queued item: it may be moved."""

    def pop(self) -> T:
        """Remove and return the next item. The queue calls this only if there is one."""

    def __len__(self) -> int: ...


class FIFOOrder(Generic[T]):
    """First in, first out. Adding a queued item again does not move it."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()

    def push(self, item: T) -> None:
        """Append the item."""
        self._items.append(item)

    def touch(self, item: T) -> None:
        """Keep the item's place."""

    def pop(self) -> T:
        """Remove and return the item that was queued first."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)


class PriorityOrder(Generic[T]):
    """Highest priority first; first in, first out among equal priorities. Items of low priority can starve.

    Args:
        priority: returns the priority of an item; higher comes first. It is called on each add. If the priority of a
            queued item has risen, the item is moved; if it has fallen, the item keeps its place.
    """

    def __init__(self, priority: Callable[[T], float]) -> None:
        self._priority = priority
        #: (-priority, number, item). Moving an item adds another entry; `_entries` names the valid one.
        self._heap: list[tuple[float, int, T]] = []
        self._entries: dict[T, tuple[float, int]] = {}
        self._numbers = count()

    def push(self, item: T) -> None:
        """Insert the item behind those of the same priority."""
        self._insert(item, -self._priority(item))

    def touch(self, item: T) -> None:
        """Move the item if its priority has risen."""
        rank = -self._priority(item)
        if rank < self._entries[item][0]:
            self._insert(item, rank)

    def pop(self) -> T:
        """Remove and return the item with the highest priority."""
        while True:
            rank, number, item = heappop(self._heap)
            if self._entries.get(item) == (rank, number):
                del self._entries[item]
                return item

    def __len__(self) -> int:
        return len(self._entries)

    def _insert(self, item: T, rank: float) -> None:
        number = next(self._numbers)
        self._entries[item] = (rank, number)
        heappush(self._heap, (rank, number, item))
        if len(self._heap) > 2 * len(self._entries) + 16:
            self._heap = [(*entry, item) for item, entry in self._entries.items()]
            heapify(self._heap)
