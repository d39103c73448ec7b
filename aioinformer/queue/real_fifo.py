"""RealFIFO: what became known, in the order in which it became known, whatever it is about.

What it holds, and by which rules, is in `ordered_deltas`; how it waits, in `guarded_queue`.

Against `DeltaFIFO`, a key may wait in many places, so that a slow consumer costs memory; in exchange there is an order
between keys, and a relist reaches readers in one piece. The consumer is handed one delta after the other, so that a
batch needs no distinct keys.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from aioinformer.errors import UsageError
from aioinformer.queue.deltas import Delta, Deltas
from aioinformer.queue.fifo import DeltaState, GuardedQueue
from aioinformer.resources.keys import meta_namespace_key_func

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from aioinformer.queue.fifo import PopProcessFunc


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


#: What is in the line.
OrderedDelta: TypeAlias = Delta[T] | ReplacedAll[T] | SyncAll | Bookmark


class CollectionConsumer(Protocol[T]):
    """Processes what concerns the whole collection, in steps: the loop may get a turn between any two of them."""

    def replace_all(self, objects: list[T], is_in_initial_list: bool) -> Iterable[None]: ...

    def sync_all(self) -> Iterable[None]: ...


class OrderedDeltas(DeltaState[T, OrderedDelta[T]]):
    """Deltas in line.

    Args:
        consumer: processes lists and repetitions.
        transformer: see `DeltaState`. If it refuses an object of a list, the list is not taken in.
        batch_size: the most deltas of a batch.
    """

    def __init__(self, consumer: CollectionConsumer[T], transformer: Callable[[T], T] | None, batch_size: int) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size={batch_size} must be 1 at least")
        super().__init__(transformer)
        self._consumer = consumer
        self._batch_size = batch_size
        self._line: deque[OrderedDelta[T]] = deque()

    def __len__(self) -> int:
        return len(self._line)

    def has_news(self) -> bool:
        return bool(self._line)

    def take(self, deltas: Iterable[Delta[T]], version: str) -> None:
        for delta in deltas:
            self._populated = True
            self._line.append(self._transformed(delta))
        if version:
            self._line.append(Bookmark(version))

    def replacing(self, objects: Iterable[T], version: str) -> Generator[None]:
        transformer = self._transformer
        taken: list[T] = []
        for obj in objects:
            taken.append(transformer(obj) if transformer is not None else obj)
            yield
        self._line.append(ReplacedAll(taken, version))
        if not self._populated:
            self._populated = True
            self._initial = len(self._line)

    def resyncing(self) -> Generator[None]:
        yield from ()  # what there is to repeat is found out when it comes up
        self._line.append(SyncAll())

    def popping(self, process: PopProcessFunc[T]) -> Generator[OrderedDelta[T] | None]:
        for _ in range(self._batch_size):
            initial = not self.has_synced()
            item = self._line.popleft()
            try:
                if isinstance(item, Delta):
                    process(Deltas((item,)), initial)
                elif isinstance(item, ReplacedAll):
                    yield from self._consumer.replace_all(item.objects, initial)
                    self.version = item.version
                    self.incomplete = self._populated_in_part = False
                elif isinstance(item, SyncAll):
                    yield from self._consumer.sync_all()
                else:
                    self.version = item.version
            finally:
                if self._initial > 0:
                    self._initial -= 1
            yield item
            if not self._line or (initial and self.has_synced()):
                return


__all__ = ["Bookmark", "CollectionConsumer", "OrderedDelta", "RealFIFO", "ReplacedAll", "SyncAll"]


class RealFIFO(GuardedQueue[T, OrderedDelta[T]]):
    """The queue in order of arrival. It has one consumer.

    Args:
        consumer: processes lists and repetitions; single objects go to the function that `pop` is given.
        key_func: object -> key, for `key_of` alone.

        transformer: applied to every object on its way in, but for tombstones (RF-09). If it refuses one object of a
            list, the list is not queued.
        batch_size: the most deltas of a batch.
        slice_seconds: how long work may hold the event loop at a time.
        on_batch: called after each batch: how much waited, and how many seconds it took.
    """

    def __init__(
        self,
        consumer: CollectionConsumer[T],
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        *,
        transformer: Callable[[T], T] | None = None,
        batch_size: int = 1000,
        slice_seconds: float = 0.0005,
        on_batch: Callable[[int, float], None] = lambda waiting, seconds: None,
    ) -> None:
        super().__init__(OrderedDeltas(consumer, transformer, batch_size), key_func, slice_seconds, on_batch)

    async def bookmark(self, version: str) -> None:
        """Everything up to this version has been queued (RF-08)."""
        await self.apply([], version)
