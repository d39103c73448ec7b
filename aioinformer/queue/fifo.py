"""The shell of a queue between a reflector and the one consumer: it waits, whatever it is that the queue holds.

One `asyncio.Condition` guards the state. Batches take it once: `apply` for everything that arrived in one read,
`pop_batch` for everything that waits. It is held while the consumer processes, so that whoever computes deletions
from what is known sees either all or nothing of a batch.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, MutableMapping
from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from aioinformer.concurrency import Slicer
from aioinformer.errors import FIFOClosed
from aioinformer.queue.deltas import Delta, Deltas, DeltaType, delta_key
from aioinformer.resources.keys import DeletedFinalStateUnknown

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, MutableMapping


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


class Queue(Protocol[T]):
    """What a reflector fills and a consumer empties."""

    async def apply(self, deltas: Iterable[Delta[T]], version: str = ...) -> None:
        """Queues what became known, in order; then the collection is at this version."""
        ...

    async def replace(self, objects: Iterable[T], version: str = ...) -> None:
        """This is all there is, as of this version."""
        ...

    async def take_over(self, objects: MutableMapping[str, T], version: str = ...) -> None:
        """The same, of objects by their keys, which belong to the queue from now on."""
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

    def mark_incomplete(self, *, initial: bool) -> None:
        """What was popped was not processed; until a replacement has been, no version is reached."""
        ...

    def __len__(self) -> int:
        """How much waits."""
        ...

    async def close(self) -> None:
        """Nothing more will come."""
        ...


class GuardedQueue(Generic[T, P]):
    """A queue for one consumer.

    Args:
        state: what it holds.
        key_func: object -> key.
        slice_seconds: how long work may hold the event loop at a time.
        on_batch: called after each batch: how much waited, and how many seconds it took.
    """

    def __init__(
        self,
        state: DeltaState[T, P],
        key_func: Callable[[Any], str],
        slice_seconds: float,
        on_batch: Callable[[int, float], None],
    ) -> None:
        self._state = state
        self._key_func = key_func
        self._slicer = Slicer(slice_seconds)
        self._on_batch = on_batch
        self._condition = asyncio.Condition()
        self._closed = False

    # What the reflector does.

    async def add(self, obj: T) -> None:
        """The object was added."""
        await self.apply([Delta(DeltaType.ADDED, obj)])

    async def update(self, obj: T) -> None:
        """The object was changed."""
        await self.apply([Delta(DeltaType.UPDATED, obj)])

    async def delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """The object was deleted."""
        await self.apply([Delta(DeltaType.DELETED, obj)])

    async def apply(self, deltas: Iterable[Delta[T]], version: str = "") -> None:
        """Queues what became known, in order, in one go.

        Args:
            deltas: of any keys.
            version: of the collection after them; told to the consumer once it has taken them all.
        """
        async with self._condition:
            try:
                self._state.take(deltas, version)
            finally:  # one without a key, or that the transformer refuses, must not hold up those before it
                self._condition.notify_all()

    async def replace(self, objects: Iterable[T], version: str = "") -> None:
        """This is all there is: what is not among it is gone."""
        await self._take_in(self._state.replacing(objects, version))

    async def take_over(self, objects: MutableMapping[str, T], version: str = "") -> None:
        """The same, of objects by their keys, which belong to the queue from now on: they are not copied."""
        await self._take_in(self._state.taking_over(objects, version))

    async def resync(self) -> None:
        """Everything that the consumer has is to be told again."""
        await self._take_in(self._state.resyncing())

    # What the consumer does.

    async def pop(self, process: PopProcessFunc[T]) -> P:
        """Waits for what is first in the line, has it processed under the lock, and returns it.

        Args:
            process: takes deltas of one key, and whether they belong to the initial list. What raises is not queued
                again (Q-01).

        Raises:
            FIFOClosed: the queue is closed, and empty.
        """
        async with self._condition:
            await self._until(self._state.__len__)
            popped: P | None = None
            with closing(self._state.popping(process)) as steps:
                for popped in steps:
                    if popped is not None:
                        break
                    await self._slicer.pause()
            assert popped is not None
            return popped

    async def pop_batch(self, process: PopProcessFunc[T], flush: Callable[[], None] = lambda: None) -> str:
        """Waits, and has what waits processed, under one lock, in slices.

        Args:
            process: as for `pop`.
            flush: called before the loop is let go and at the end: nothing that was processed is half done then.

        Returns:
            The version up to which the consumer now has everything; "" if that is not known.

        Raises:
            FIFOClosed: the queue is closed, and empty.
        """
        async with self._condition:
            await self._until(self._state.has_news)
            slicer = self._slicer
            waiting, began = len(self._state), perf_counter()
            try:
                with closing(self._state.popping(process)) as steps:
                    for _ in steps:
                        if slicer.due():
                            flush()
                            await slicer.let_go()
            finally:
                flush()
                self._on_batch(waiting, perf_counter() - began)
            return "" if self._state.incomplete else self._state.version

    def has_synced(self) -> bool:
        """Whether everything of the first population has been popped (Q-04)."""
        return self._state.has_synced()

    def mark_incomplete(self, *, initial: bool) -> None:
        """What was popped was not processed, and is not queued again: until a replacement has been, no version is
        reached.

        Args:
            initial: the first population was not through; it is once the next replacement has been processed.
        """
        self._state.mark_incomplete(initial=initial)

    async def close(self) -> None:
        """Nothing more will come: whoever waits is told once what is left has been popped."""
        async with self._condition:
            self._closed = True
            self._condition.notify_all()

    def __len__(self) -> int:
        return len(self._state)

    def __repr__(self) -> str:
        synced = "synced" if self.has_synced() else "not synced"
        closed = ", closed" if self._closed else ""
        return f"<{type(self).__name__}, {len(self)} queued, {synced}, version {self._state.version!r}{closed}>"

    def key_of(self, obj: Any) -> str:
        """The key of an object, a delta, deltas (of the newest) or a tombstone (DF-10, RF-18).

        Raises:
            KeyFuncError: it has none.
        """
        return delta_key(obj.object if isinstance(obj, Delta) else obj, self._key_func)

    # Within the lock.

    async def _take_in(self, steps: Generator[None]) -> None:
        async with self._condition:
            self._slicer.start()
            try:
                with closing(steps):
                    for _ in steps:
                        await self._slicer.pause()
            finally:  # what was taken in until it was given up, or refused, waits like anything else
                self._condition.notify_all()

    async def _until(self, ready: Callable[[], Any]) -> None:
        if ready():  # what waits already follows a batch: the slice goes on
            return
        while not ready():
            if self._closed:
                raise FIFOClosed("the queue is closed")
            await self._condition.wait()
        self._slicer.start()
