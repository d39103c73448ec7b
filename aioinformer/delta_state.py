"""What a queue of deltas holds, without the waiting: what comes in, what goes out, and when all of the first is out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, MutableMapping
from typing import Any, Generic, TypeAlias, TypeVar

from aioinformer.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType

T = TypeVar("T")
#: What is popped.
P = TypeVar("P")

#: Takes the deltas of one key, and whether they belong to the initial list.
PopProcessFunc: TypeAlias = Callable[[Deltas[T], bool], Any]


class DeltaState(ABC, Generic[T, P]):
    """The state of a queue. Whoever has it sees to it that only one of its methods is at work.

    What takes long is a generator, which lets its caller have a turn between any two steps.

    Args:
        transformer: applied to every object on its way in, but for tombstones and repetitions (DF-07, RF-09).

    Attributes:
        version: up to which the consumer has everything, once nothing waits before it.
    """

    def __init__(self, transformer: Callable[[T], T] | None) -> None:
        self.version = ""
        #: Something was not processed: until a replacement has been, it is not known up to which version all was.
        self.incomplete = False
        self._transformer = transformer
        self._populated = False
        #: ... and that was of the first population, for which the next replacement counts.
        self._populated_in_part = False
        #: How much of the first population still waits.
        self._initial = 0

    def has_synced(self) -> bool:
        """Whether everything of the first population has been popped (Q-04)."""
        return self._populated and self._initial <= 0 and not self._populated_in_part

    def mark_incomplete(self, *, initial: bool) -> None:
        """What was popped was not processed.

        Args:
            initial: the first population was not through.
        """
        self.incomplete = True
        self._populated_in_part = self._populated_in_part or initial

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def has_news(self) -> bool:
        """Whether the consumer has something to learn, even if it is only a version."""

    @abstractmethod
    def take(self, deltas: Iterable[Delta[T]], version: str) -> None:
        """Takes in what became known, in order; then the collection is at this version, unless that is ""."""

    @abstractmethod
    def replacing(self, objects: Iterable[T], version: str) -> Generator[None]:
        """Takes in that this is all there is."""

    def taking_over(self, objects: MutableMapping[str, T], version: str) -> Generator[None]:
        """The same, of objects by their keys: nobody else has them, and they are taken out of there."""
        yield from self.replacing(objects.values(), version)
        while objects:  # to free many at once would hold the loop
            objects.popitem()
            yield

    @abstractmethod
    def resyncing(self) -> Generator[None]:
        """Takes in that what the consumer has is to be repeated."""

    @abstractmethod
    def popping(self, process: PopProcessFunc[T]) -> Generator[P | None]:
        """Has a batch processed, as far as anything waits. Each step yields what it popped, None before it is done."""

    def _transformed(self, delta: Delta[T]) -> Delta[T]:
        obj = delta.object
        if self._transformer is None or delta.type is DeltaType.SYNC or isinstance(obj, DeletedFinalStateUnknown):
            return delta
        return Delta(delta.type, self._transformer(obj))
