"""DeltaFIFO: what became known of objects, by key, until the one consumer takes it.

The rules (client-go's, DF-01 to DF-10):

- A key has one place in the line, that of its first delta. Everything that becomes known of it until it is popped is
  popped with it, in order.
- Two deletions in a row are one; the one that knows the last state is kept.
- A deletion of what is neither queued nor known is nobody's news, and dropped.
- `replace` says what there is: deletions follow for everything that is known or queued, and is not among it.
- `resync` repeats what is known, but for keys that wait anyway: they would go back in time.

One `asyncio.Condition` guards it all. Batches take it once: `apply` for everything that arrived in one read,
`pop_batch` for everything that waits. It is held while the consumer processes, so that whoever computes deletions
from what is known sees either all or nothing of a batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from aioinformer.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType
from aioinformer.errors import FIFOClosed
from aioinformer.keys import delta_key, meta_namespace_key_func
from aioinformer.slices import Slicer

T = TypeVar("T")

#: Takes the deltas of one key, and whether they belong to the initial list.
PopProcessFunc: TypeAlias = Callable[[Deltas[T], bool], Any]


class KnownObjects(Protocol):
    """What the consumer has: the queue looks there for what is deleted, or to be repeated."""

    def all_keys(self) -> list[str]: ...

    def item(self, key: str) -> Any: ...


class Queue(Protocol[T]):
    """What a reflector fills and a consumer empties."""

    async def apply(self, deltas: Iterable[Delta[T]], version: str = ...) -> None:
        """Queues what became known, in order; then the collection is at this version."""
        ...

    async def replace(self, objects: Iterable[T], version: str = ...) -> None:
        """This is all there is, as of this version."""
        ...

    async def resync(self) -> None:
        """Repeats what the consumer has."""
        ...

    async def pop_batch(self, process: PopProcessFunc[T], flush: Callable[[], None] = ...) -> str:
        """Waits, hands everything that waits to `process`, and returns the version that is reached by that."""
        ...

    def has_synced(self) -> bool:
        """Whether everything of the first population has been popped."""
        ...

    async def close(self) -> None:
        """Nothing more will come."""
        ...


class DeltaFIFO(Generic[T]):
    """The keyed queue.

    Args:
        key_func: object -> key.
        known_objects: what the consumer has; without it, only what is queued is known.
        transformer: applied to every object on its way in, but for tombstones and repetitions (DF-07).
        slice_seconds: how long work may hold the event loop at a time.
    """

    def __init__(
        self,
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        known_objects: KnownObjects | None = None,
        *,
        transformer: Callable[[T], T] | None = None,
        slice_seconds: float = 0.001,
    ) -> None:
        self._key_func = key_func
        self._known = known_objects
        self._transformer = transformer
        self._slicer = Slicer(slice_seconds)
        self._condition = asyncio.Condition()
        #: One delta stands for itself: a relist makes one for every object, and lists would be walked by the collector.
        self._items: dict[str, Delta[T] | Deltas[T]] = {}
        self._queue: deque[str] = deque()
        self._version = ""
        #: The consumer has something to learn, even if it is only a version.
        self._news = False
        self._populated = False
        self._initial = 0
        self._closed = False

    # What the reflector does.

    async def add(self, obj: T) -> None:
        """The object was added."""
        await self.apply([Delta(DeltaType.ADDED, obj)])

    async def update(self, obj: T) -> None:
        """The object was changed."""
        await self.apply([Delta(DeltaType.UPDATED, obj)])

    async def delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """The object was deleted; dropped if neither the queue nor the consumer knows it (DF-03)."""
        await self.apply([Delta(DeltaType.DELETED, obj)])

    async def apply(self, deltas: Iterable[Delta[T]], version: str = "") -> None:
        """Queues what became known, in order, in one go.

        Args:
            deltas: of any keys.
            version: of the collection after them; told to the consumer once it has taken them all.
        """
        async with self._condition:
            try:
                for delta in deltas:
                    self._populated = True
                    if delta.type is DeltaType.DELETED and not self._is_known(self.key_of(delta.object)):
                        continue
                    self._append(delta)
                if version:
                    self._version = version
                    self._news = True
            finally:  # an object without a key must not hold up those before it
                self._condition.notify_all()

    async def replace(self, objects: Iterable[T], version: str = "") -> None:
        """This is all there is: queues it as Replaced, then deletions of what it lacks (DF-04)."""
        async with self._condition:
            self._slicer.start()
            there: set[str] = set()
            queued = set(self._items)
            for obj in objects:
                there.add(self._append(Delta(DeltaType.REPLACED, obj)))
                await self._slicer.pause()
            for key in queued - there:
                waiting = self._items[key]
                newest = waiting[-1] if isinstance(waiting, Deltas) else waiting
                self._append(Delta(DeltaType.DELETED, _tombstone(key, newest.object)))
                await self._slicer.pause()
            if self._known is not None:
                for key in self._known.all_keys():
                    if key not in there and key not in queued:
                        self._append(Delta(DeltaType.DELETED, _tombstone(key, self._known.item(key))))
                    await self._slicer.pause()
            if not self._populated:
                self._populated = True
                self._initial = len(self._queue)
            self._version = version
            self._news = True
            self._condition.notify_all()

    async def resync(self) -> None:
        """Repeats what the consumer has as Sync, but for keys that wait anyway (DF-06)."""
        if self._known is None:
            return
        async with self._condition:
            self._slicer.start()
            for key in self._known.all_keys():
                if key not in self._items:
                    item = self._known.item(key)
                    if item is not None:
                        self._append(Delta(DeltaType.SYNC, item), key)
                await self._slicer.pause()
            self._condition.notify_all()

    # What the consumer does.

    async def pop(self, process: PopProcessFunc[T]) -> Deltas[T]:
        """Waits for a key, and hands its deltas to `process`, under the lock. What raises is not queued again (Q-01).

        Raises:
            FIFOClosed: the queue is closed, and empty.
        """
        async with self._condition:
            while not self._queue:
                self._news = False
                await self._wait()
            return self._pop_one(process)

    async def pop_batch(self, process: PopProcessFunc[T], flush: Callable[[], None] = lambda: None) -> str:
        """Waits for a key, and hands everything that waits to `process`, under one lock, in slices.

        Args:
            process: as for `pop`.
            flush: called before the loop is let go and at the end: nothing that `process` did is half done then.

        Returns:
            The version up to which the consumer now has everything; "" if that is not known.

        Raises:
            FIFOClosed: the queue is closed, and empty.
        """
        async with self._condition:
            await self._wait()
            self._slicer.start()
            try:
                while self._queue:
                    self._pop_one(process)
                    if self._slicer.due():
                        flush()
                        await self._slicer.let_go()
            finally:
                flush()
            self._news = False
            return self._version

    def has_synced(self) -> bool:
        """Whether everything of the first population has been popped (Q-04)."""
        return self._populated and self._initial <= 0

    async def close(self) -> None:
        """Nothing more will come: whoever waits is told once what is left has been popped."""
        async with self._condition:
            self._closed = True
            self._condition.notify_all()

    def __len__(self) -> int:
        return len(self._queue)

    def key_of(self, obj: Any) -> str:
        """The key of an object, a tombstone, or deltas (DF-10).

        Raises:
            KeyFuncError: it has none.
        """
        return delta_key(obj, self._key_func)

    # Within the lock.

    async def _wait(self) -> None:
        while not self._queue and not self._news:
            if self._closed:
                raise FIFOClosed("the queue is closed")
            await self._condition.wait()

    def _pop_one(self, process: PopProcessFunc[T]) -> Deltas[T]:
        initial = not self.has_synced()
        key = self._queue.popleft()
        waiting = self._items.pop(key)
        deltas = waiting if isinstance(waiting, Deltas) else Deltas((waiting,))
        if self._initial > 0:
            self._initial -= 1
        process(deltas, initial)
        return deltas

    def _is_known(self, key: str) -> bool:
        return key in self._items or (self._known is not None and self._known.item(key) is not None)

    def _append(self, delta: Delta[T], key: str | None = None) -> str:
        obj = delta.object
        if key is None:
            key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else self._key_func(obj)
        if (
            self._transformer is not None
            and delta.type is not DeltaType.SYNC
            and not isinstance(obj, DeletedFinalStateUnknown)
        ):
            delta = Delta(delta.type, self._transformer(obj))
        waiting = self._items.get(key)
        if waiting is None:
            self._items[key] = delta
            self._queue.append(key)
        else:
            deltas = self._items[key] = waiting if isinstance(waiting, Deltas) else Deltas((waiting,))
            deltas.append(delta)
            if delta.type is DeltaType.DELETED:
                _dedup(deltas)
        return key


def _tombstone(key: str, last: Any) -> DeletedFinalStateUnknown[Any]:
    return last if isinstance(last, DeletedFinalStateUnknown) else DeletedFinalStateUnknown(key, last)


def _dedup(deltas: Deltas[Any]) -> None:
    """Two deletions in a row are one: the older, unless only the newer knows the last state (DF-02)."""
    if len(deltas) < 2 or deltas[-2].type is not DeltaType.DELETED:
        return
    if isinstance(deltas[-2].object, DeletedFinalStateUnknown):
        del deltas[-2]
    else:
        del deltas[-1]
