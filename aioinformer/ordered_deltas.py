"""What waits, in the order in which it became known, whatever it is about: what a `RealFIFO` holds.

The rules (client-go's, RF-01 to RF-19, in its atomic mode):

- Nothing is brought together and nothing is left out: a delta stays what it is, where it is (RF-01, RF-03).
- A list is one delta, and so is a repetition of everything. What they mean for each object is found out when they are
  processed, from what the consumer has then: nobody can go back in time (RF-06, RF-07).
- A version is a delta, too: when it comes up, everything up to it has been processed, and nothing beyond (RF-08).
- The first population has been processed when what was queued at the first replacement, that list included, has been;
  an empty list counts as one (RF-10, RF-11).
- A batch ends after `batch_size` deltas, so that versions get through, and at the end of the first population, so that
  nothing that came later is taken for a part of it (RF-12).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from aioinformer.delta_state import DeltaState
from aioinformer.deltas import Delta, Deltas
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from aioinformer.delta_state import PopProcessFunc

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
