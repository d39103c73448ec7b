"""A heap of objects with keys, whose least one can be waited for: client-go's cache.Heap (HEAP-01)."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.errors import FIFOClosed
from aioinformer.keys import deletion_handling_meta_namespace_key_func

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class _Entry(Generic[T]):
    """An object in the heap; no longer `valid` once another one has its key, or it was taken out."""

    __slots__ = ("key", "less", "number", "obj", "valid")

    def __init__(self, key: str, obj: T, less: Callable[[T, T], bool], number: int) -> None:
        self.key = key
        self.obj = obj
        self.less = less
        self.number = number
        self.valid = True

    def __lt__(self, other: _Entry[T]) -> bool:
        if self.less(self.obj, other.obj):
            return True
        return not self.less(other.obj, self.obj) and self.number < other.number


class KeyedHeap(Generic[T]):
    """Objects by key; the least is popped first, among equals the one that came first.

    Everything but `pop` is a plain call on the thread of the event loop.

    Args:
        less: whether the first object comes before the second.
        key_func: object -> key.
    """

    def __init__(
        self,
        less: Callable[[T, T], bool],
        key_func: Callable[[Any], str] = deletion_handling_meta_namespace_key_func,
    ) -> None:
        self._less = less
        self._key_func = key_func
        self._entries: dict[str, _Entry[T]] = {}
        self._heap: builtins.list[_Entry[T]] = []
        self._numbers = count()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    # Writing.

    def add(self, obj: T) -> None:
        """Puts an object in; one with the same key is replaced, and finds its new place.

        Raises:
            FIFOClosed: the heap is closed.
        """
        self.bulk_add([obj])

    def update(self, obj: T) -> None:
        """The same as `add`."""
        self.add(obj)

    def bulk_add(self, objects: Iterable[T]) -> None:
        """Puts objects in, before anybody pops any.

        Raises:
            FIFOClosed: the heap is closed.
        """
        for obj in objects:
            self._put(self._key_func(obj), obj)

    def add_if_not_present(self, obj: T) -> None:
        """Puts an object in, unless there is one with its key.

        Raises:
            FIFOClosed: the heap is closed.
        """
        key = self._key_func(obj)
        if key not in self._entries:
            self._put(key, obj)

    def delete(self, obj: Any) -> None:
        """Takes an object out, by its key.

        Raises:
            KeyError: there is none.
        """
        key = self._key_func(obj)
        if key not in self._entries:
            raise KeyError(f"{key} is not in the heap")
        self._take_out(key)

    def close(self) -> None:
        """Nothing more will come: what is left can be popped, and who waits for more is told."""
        self._closed = True
        while self._waiters:
            self._wake()

    # Reading.

    async def pop(self) -> T:
        """Waits for an object, and takes out the least.

        Raises:
            FIFOClosed: the heap is closed, and empty.
        """
        while not self._entries:
            if self._closed:
                raise FIFOClosed("the heap is closed, and empty")
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except BaseException:
                if not waiter.cancelled():
                    self._wake()  # it was this one's turn: another may take it
                elif waiter in self._waiters:
                    self._waiters.remove(waiter)
                raise
        while not self._heap[0].valid:
            heapq.heappop(self._heap)
        entry = heapq.heappop(self._heap)
        entry.valid = False
        del self._entries[entry.key]
        return entry.obj

    def list(self) -> builtins.list[T]:
        """All objects, in no order."""
        return [entry.obj for entry in self._entries.values()]

    def list_keys(self) -> builtins.list[str]:
        """All keys, in no order."""
        return list(self._entries)

    def get(self, obj: Any) -> T | None:
        """The object with the key of this one, None if there is none."""
        return self.get_by_key(self._key_func(obj))

    def get_by_key(self, key: str) -> T | None:
        """The object under a key, None if there is none."""
        entry = self._entries.get(key)
        return entry.obj if entry is not None else None

    @property
    def closed(self) -> bool:
        """Whether the heap is closed."""
        return self._closed

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, key: str, obj: T) -> None:
        if self._closed:
            raise FIFOClosed("the heap is closed: nothing can be added")
        if key in self._entries:
            self._take_out(key)
        entry = self._entries[key] = _Entry(key, obj, self._less, next(self._numbers))
        heapq.heappush(self._heap, entry)
        self._wake()

    def _take_out(self, key: str) -> None:
        self._entries.pop(key).valid = False
        if len(self._heap) > 2 * len(self._entries) + 16:  # what is no longer valid must not pile up
            self._heap = [entry for entry in self._heap if entry.valid]
            heapq.heapify(self._heap)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
