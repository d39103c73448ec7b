"""RealFIFO: changes in the order in which they came, of all objects.

A key may wait in many places, so a slow consumer costs memory. In exchange there is an order between objects, and a
replacement waits as one item, so that readers see it in one piece.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from aioinformer.errors import UsageError
from aioinformer.queue.deltas import Delta, Deltas
from aioinformer.queue.fifo import FIFO, Step
from aioinformer.resources.keys import meta_namespace_key_func

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

__all__ = ["Bookmark", "CollectionConsumer", "OrderedDelta", "RealFIFO", "ReplacedAll", "SyncAll"]

T = TypeVar("T")


class ReplacedAll(msgspec.Struct, Generic[T], frozen=True):
    """The whole collection, at this version."""

    objects: list[T]
    version: str = ""


class SyncAll(msgspec.Struct, frozen=True):
    """Everything that the consumer knows is to be delivered once more."""


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this version is in the line before it."""

    version: str


#: What waits in the line.
OrderedDelta: TypeAlias = Delta[T] | ReplacedAll[T] | SyncAll | Bookmark


class CollectionConsumer(Protocol[T]):
    """Processes what concerns the whole collection, in steps: the event loop may get a turn between any two of them."""

    def replace_all(self, objects: list[T], is_in_initial_list: bool) -> Iterable[None]: ...

    def sync_all(self) -> Iterable[None]: ...


class RealFIFO(FIFO[T, OrderedDelta[T]]):
    """The queue in order of arrival. It has one consumer.

    Args:
        consumer: processes replacements and resyncs; the process loop gets the deltas of single objects.
        key_func: returns the key of an object; for `key_of` alone.
        transformer: is applied to each object that is enqueued, except tombstones and resyncs. If it refuses one object
            of a replacement, the replacement is not enqueued.
        batch_size: the largest number of items in a batch.

    Raises:
        UsageError: `batch_size` is less than 1.
    """

    def __init__(
        self,
        consumer: CollectionConsumer[T],
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        *,
        transformer: Callable[[T], T] | None = None,
        batch_size: int = 1000,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size={batch_size} must be 1 at least")
        super().__init__(key_func, transformer)
        self._consumer = consumer
        self._batch_size = batch_size

    async def bookmark(self, version: str) -> None:
        """Enqueue the statement that everything up to this version has been enqueued."""
        await self.apply([], version)

    def _take(self, deltas: Iterable[Delta[T]], version: str) -> None:
        for delta in deltas:
            self._populated = True
            self._line.append(self._transformed(delta))
        if version:
            self._line.append(Bookmark(version))

    def _replacing(self, objects: Iterable[T], version: str) -> Generator[None]:
        transformer = self._transformer
        taken: list[T] = []
        for obj in objects:
            taken.append(transformer(obj) if transformer is not None else obj)
            yield
        self._line.append(ReplacedAll(taken, version))
        if not self._populated:
            self._populated = True
            self._initial = len(self._line)

    def _resyncing(self) -> Generator[None]:
        yield from ()  # which objects are known is looked up when the item is popped
        self._line.append(SyncAll())

    def _popping_one(self, popped: list[OrderedDelta[T]]) -> Generator[Step[T]]:
        initial = not self.has_synced()
        item: OrderedDelta[T] = self._line.popleft()
        popped.append(item)
        try:
            if isinstance(item, Delta):
                yield Deltas((item,)), initial
            elif isinstance(item, ReplacedAll):
                yield from self._consumer.replace_all(item.objects, initial)
                self._replaced(item.version)
            elif isinstance(item, SyncAll):
                yield from self._consumer.sync_all()
            else:
                self.version = "" if self._incomplete else item.version
        finally:
            if self._initial > 0:
                self._initial -= 1

    def _popping(self) -> Generator[Step[T]]:
        for _ in range(self._batch_size):
            initial = not self.has_synced()
            yield from self._popping_one([])
            if not self._line or (initial and self.has_synced()):
                return
