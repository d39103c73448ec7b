"""In which order a work queue hands out what waits in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound=Hashable)


class QueueOrder(Protocol[T]):
    """Holds what waits in a work queue; an item is in it at most once (WQ-08)."""

    def push(self, item: T) -> None:
        """Takes in an item that is not in it."""
        ...

    def touch(self, item: T) -> None:
        """The item is in it already, and was added again: it may be moved now."""
        ...

    def pop(self) -> T:
        """Takes out the item that is next; called only if there is one."""
        ...

    def __len__(self) -> int: ...


class FIFOOrder(Generic[T]):
    """First in, first out; being added again changes nothing."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()

    def push(self, item: T) -> None:
        """Puts the item last."""
        self._items.append(item)

    def touch(self, item: T) -> None:
        """Does nothing: the item keeps its place."""

    def pop(self) -> T:
        """Takes the item that has waited longest."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)


class PriorityOrder(Generic[T]):
    """The most urgent first; among equals, first in, first out. What is not urgent may wait for ever.

    Args:
        priority: of an item; higher is more urgent. It is asked whenever the item is added. An item that becomes
            more urgent while it waits is moved; one that becomes less urgent is not.
    """

    def __init__(self, priority: Callable[[T], float]) -> None:
        self._priority = priority
        #: (-priority, number, item); an item that was moved is in it more than once, and only its last entry counts.
        self._heap: list[tuple[float, int, T]] = []
        self._entries: dict[T, tuple[float, int]] = {}
        self._numbers = count()

    def push(self, item: T) -> None:
        """Puts the item behind those that are as urgent."""
        self._enter(item, -self._priority(item))

    def touch(self, item: T) -> None:
        """Moves the item if it is more urgent than it was."""
        urgency = -self._priority(item)
        if urgency < self._entries[item][0]:
            self._enter(item, urgency)

    def pop(self) -> T:
        """Takes the most urgent item."""
        while True:
            urgency, number, item = heappop(self._heap)
            if self._entries.get(item) == (urgency, number):
                del self._entries[item]
                return item

    def __len__(self) -> int:
        return len(self._entries)

    def _enter(self, item: T, urgency: float) -> None:
        number = next(self._numbers)
        self._entries[item] = (urgency, number)
        heappush(self._heap, (urgency, number, item))
        if len(self._heap) > 2 * len(self._entries) + 16:
            self._heap = [(*entry, item) for item, entry in self._entries.items()]
            heapify(self._heap)
