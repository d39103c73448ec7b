"""RealFIFO: what became known, in the order in which it became known, whatever it is about.

The rules (client-go's, RF-01 to RF-19, in its atomic mode):

- Nothing is brought together and nothing is left out: a delta stays what it is, where it is (RF-01, RF-03).
- A list is one delta, and so is a repetition of everything. What they mean for each object is found out when they are
  processed, from what the consumer has then: nobody can go back in time (RF-06, RF-07).
- A version is a delta, too: when it comes up, everything up to it has been processed, and nothing beyond (RF-08).
- The first population has been processed when what was queued at the first `replace`, that list included, has been;
  an empty list counts as one (RF-10, RF-11).

Against `DeltaFIFO`, a key may wait in many places, so that a slow consumer costs memory; in exchange there is an order
between keys, and a relist reaches readers in one piece. A batch ends after `batch_size` deltas, so that versions get
through, and at the end of the first population, so that nothing that came later is taken for a part of it (RF-12).
The consumer is handed one delta after the other, so that a batch needs no distinct keys.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from aioinformer.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType
from aioinformer.errors import FIFOClosed, UsageError
from aioinformer.keys import delta_key, meta_namespace_key_func
from aioinformer.slices import Slicer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.fifo import PopProcessFunc

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplacedAll(Generic[T]):
    """These are all objects there are, at this version."""

    objects: list[T]
    version: str = ""


@dataclass(frozen=True, slots=True)
class SyncAll:
    """Everything that the consumer has is to be told again."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this version has been told."""

    version: str


#: What a RealFIFO holds.
OrderedDelta: TypeAlias = Delta[T] | ReplacedAll[T] | SyncAll | Bookmark


class CollectionConsumer(Protocol[T]):
    """Processes what concerns the whole collection, in steps: the loop may get a turn between any two of them."""

    def replace_all(self, objects: list[T], is_in_initial_list: bool) -> Iterable[None]: ...

    def sync_all(self) -> Iterable[None]: ...


class RealFIFO(Generic[T]):
    """The queue in order of arrival. It has one consumer.

    Args:
        consumer: processes lists and repetitions; single objects go to the function that `pop` is given.
        key_func: object -> key, for `key_of` alone.

        transformer: applied to every object on its way in, but for tombstones (RF-09).
        batch_size: the most deltas of a batch.
        slice_seconds: how long work may hold the event loop at a time.
    """

    def __init__(
        self,
        consumer: CollectionConsumer[T],
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        *,
        transformer: Callable[[T], T] | None = None,
        batch_size: int = 1000,
        slice_seconds: float = 0.001,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size={batch_size} must be 1 at least")
        self._consumer = consumer
        self._key_func = key_func
        self._transformer = transformer
        self._batch_size = batch_size
        self._slicer = Slicer(slice_seconds)
        self._condition = asyncio.Condition()
        self._items: deque[OrderedDelta[T]] = deque()
        #: Up to which everything has been processed.
        self._version = ""
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
        """The object was deleted. Queued in any case: whether anybody knew it is known when it is processed (RF-03)."""
        await self.apply([Delta(DeltaType.DELETED, obj)])

    async def bookmark(self, version: str) -> None:
        """Everything up to this version has been queued (RF-08)."""
        await self.apply([], version)

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
                    self._items.append(self._transformed(delta))
                if version:
                    self._items.append(Bookmark(version))
            finally:  # one that the transformer refuses must not hold up those before it
                self._condition.notify_all()

    async def replace(self, objects: Iterable[T], version: str = "") -> None:
        """This is all there is, in one delta; if the transformer refuses one object, nothing is queued."""
        async with self._condition:
            self._slicer.start()
            transformer = self._transformer
            taken: list[T] = []
            for obj in objects:
                taken.append(transformer(obj) if transformer is not None else obj)
                await self._slicer.pause()
            self._items.append(ReplacedAll(taken, version))
            if not self._populated:
                self._populated = True
                self._initial = len(self._items)
            self._condition.notify_all()

    async def resync(self) -> None:
        """Everything that the consumer has when this comes up is to be told again (RF-07)."""
        async with self._condition:
            self._items.append(SyncAll())
            self._condition.notify_all()

    # What the consumer does.

    async def pop(self, process: PopProcessFunc[T]) -> OrderedDelta[T]:
        """Waits for a delta, has it processed under the lock, and returns it. What raises is not queued again (Q-01).

        Args:
            process: takes a single object's delta, as a list of one, and whether it belongs to the initial list.

        Raises:
            FIFOClosed: the queue is closed, and empty.
        """
        async with self._condition:
            await self._wait()
            return await self._pop_one(process, lambda: None)

    async def pop_batch(self, process: PopProcessFunc[T], flush: Callable[[], None] = lambda: None) -> str:
        """Waits for deltas, and has up to `batch_size` of those that wait processed, under one lock, in slices.

        Args:
            process: as for `pop`.
            flush: called before the loop is let go and at the end: nothing that was processed is half done then.

        Returns:
            The version up to which the consumer now has everything; "" if that is not known.

        Raises:
            FIFOClosed: the queue is closed, and empty.
        """
        async with self._condition:
            await self._wait()
            try:
                for _ in range(self._batch_size):
                    initial = not self.has_synced()
                    await self._pop_one(process, flush)
                    if not self._items or (initial and self.has_synced()):
                        break
                    if self._slicer.due():
                        flush()
                        await self._slicer.let_go()
            finally:
                flush()
            return self._version

    def has_synced(self) -> bool:
        """Whether everything of the first population has been processed (Q-04)."""
        return self._populated and self._initial <= 0

    async def close(self) -> None:
        """Nothing more will come: whoever waits is told once what is left has been popped."""
        async with self._condition:
            self._closed = True
            self._condition.notify_all()

    def __len__(self) -> int:
        return len(self._items)

    def key_of(self, obj: Any) -> str:
        """The key of an object, a delta, deltas (of the newest) or a tombstone (RF-18).

        Raises:
            KeyFuncError: it has none.
        """
        return delta_key(obj.object if isinstance(obj, Delta) else obj, self._key_func)

    # Within the lock.

    async def _wait(self) -> None:
        if self._items:  # what waits already follows a batch: the slice goes on
            return
        while not self._items:
            if self._closed:
                raise FIFOClosed("the queue is closed")
            await self._condition.wait()
        self._slicer.start()

    async def _pop_one(self, process: PopProcessFunc[T], flush: Callable[[], None]) -> OrderedDelta[T]:
        initial = not self.has_synced()
        item = self._items.popleft()
        try:
            if isinstance(item, Delta):
                process(Deltas((item,)), initial)
            elif isinstance(item, ReplacedAll):
                await self._work_off(self._consumer.replace_all(item.objects, initial), flush)
                self._version = item.version
            elif isinstance(item, SyncAll):
                await self._work_off(self._consumer.sync_all(), flush)
            else:
                self._version = item.version
        finally:
            if self._initial > 0:
                self._initial -= 1
        return item

    async def _work_off(self, steps: Iterable[None], flush: Callable[[], None]) -> None:
        for _ in steps:
            if self._slicer.due():
                flush()
                await self._slicer.let_go()

    def _transformed(self, delta: Delta[T]) -> Delta[T]:
        if self._transformer is None or isinstance(delta.object, DeletedFinalStateUnknown):
            return delta
        return Delta(delta.type, self._transformer(delta.object))
