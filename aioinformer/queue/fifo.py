"""The condition-guarded queue between a reflector and the process loop; `DeltaFIFO` and `RealFIFO` say what it holds.

One `asyncio.Condition` guards the state. `apply` takes it once for everything that one read brought, `batch` once for
everything that waits. It stays locked while the consumer processes a batch: a relist that computes deletions from what
the consumer knows sees either all of a batch or nothing of it.

The producer calls a consumer that waits, with a few changes, in the step that enqueues them. Waking the consumer's task
would take another turn of the event loop: an event that comes alone would cost 30 % more (52 instead of 40 us, measured
from a chunk of 3 KB to the call of the handler). No other task has a turn meanwhile.

Work that takes long is a generator, so that the event loop gets a turn between any two steps.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, MutableMapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from aioinformer.concurrency import Slicer
from aioinformer.errors import FIFOClosed
from aioinformer.queue.deltas import Delta, Deltas, DeltaType, delta_key
from aioinformer.resources.keys import DeletedFinalStateUnknown

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
#: What is popped.
P = TypeVar("P")

#: Takes the deltas of one key, and whether they belong to the initial list.
PopProcessFunc: TypeAlias = Callable[[Deltas[T], bool], Any]
#: A step of a batch: deltas to process and whether they belong to the initial list, or None where the event loop may
#: get a turn.
Step: TypeAlias = tuple[Deltas[T], bool] | None
#: Takes the steps of a few changes, called by the producer.
ProducerCalls: TypeAlias = Callable[[Iterable[Step[T]]], None]


class Queue(Protocol[T]):
    """What a reflector fills and a process loop empties."""

    async def apply(self, deltas: Iterable[Delta[T]], version: str = ...) -> None:
        """Enqueue changes in their order; after them, the collection is at `version`."""

    async def replace(self, objects: Iterable[T], version: str = ...) -> None:
        """Enqueue a whole collection, as of `version`."""

    async def replace_owned(self, objects: MutableMapping[str, T], version: str = ...) -> None:
        """Enqueue a whole collection by key; the mapping belongs to the queue from now on."""

    async def resync(self) -> None:
        """Enqueue everything that the consumer knows once more."""

    def batch(self, producer_calls: ProducerCalls[T] | None = ...) -> Batch[T]:
        """Return a context in which everything that waits can be processed."""

    @property
    def version(self) -> str:
        """The version that the consumer reaches with what has been popped; "" if that is unknown."""

    def has_synced(self) -> bool:
        """Return whether all of the first population has been popped."""

    def mark_incomplete(self, *, initial: bool) -> None:
        """Note that something popped was not processed: no version is reached until the next replacement."""

    def __len__(self) -> int:
        """How many items wait."""

    async def close(self) -> None:
        """Accept nothing more; the consumer pops what is left."""


#: At most this number of items is processed in the step that enqueues them: less than a slice of work.
_FEW: Final = 8


class FIFO(ABC, Generic[T, P]):
    """A queue for one consumer. Subclasses keep what waits in `_line`, and define the steps of each change.

    Args:
        key_func: returns the key of an object.
        transformer: is applied to each object that is enqueued, except tombstones and resyncs.
    """

    def __init__(self, key_func: Callable[[Any], str], transformer: Callable[[T], T] | None) -> None:
        self._key_func = key_func
        self._transformer = transformer
        self._slicer = Slicer()
        self._condition = asyncio.Condition()
        self._closed = False
        #: What waits, in order.
        self._line: deque[Any] = deque()
        #: The version that the consumer reaches when it has processed all that was popped; "" if that is unknown. It is
        #: read in a batch after its last step, and after a few changes have been processed.
        self.version = ""
        #: Whether the consumer is to learn of a version although nothing waits.
        self._news = False
        #: Something popped was not processed: until the next replacement, it is unknown which version is reached.
        self._incomplete = False
        self._populated = False
        #: What was not processed was of the first population, which therefore ends with the next replacement.
        self._populated_in_part = False
        #: How many items of the first population wait.
        self._initial = 0
        #: Of a consumer that waits and that the producer may call.
        self._producer_calls: ProducerCalls[T] | None = None

    # What the reflector does.

    async def add(self, obj: T) -> None:
        """Enqueue an added object."""
        await self.apply([Delta(DeltaType.ADDED, obj)])

    async def update(self, obj: T) -> None:
        """Enqueue a changed object."""
        await self.apply([Delta(DeltaType.UPDATED, obj)])

    async def delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """Enqueue a deleted object."""
        await self.apply([Delta(DeltaType.DELETED, obj)])

    async def apply(self, deltas: Iterable[Delta[T]], version: str = "") -> None:
        """Enqueue changes in their order, in one step.

        Args:
            deltas: of any keys.
            version: of the collection after them; the consumer reaches it when it has processed them all.
        """
        producer_calls = self._producer_calls
        if producer_calls is None or self._line or self._news or self._condition.locked():
            await self._enqueue(deltas, version)
            return
        # The consumer waits, and no other task runs before the end of this step: the lock need not be taken.
        try:
            self._take(deltas, version)
            if len(self._line) <= _FEW and (self._line or self._news):
                # Not a list: what is not processed, because memory runs out, must stay in the line.
                steps = self._popping()
                try:  # `closing` is three more calls on the way of each event
                    producer_calls(steps)
                finally:
                    steps.close()
        finally:
            if self._line or self._news:
                async with self._condition:
                    self._condition.notify_all()

    async def _enqueue(self, deltas: Iterable[Delta[T]], version: str) -> None:
        async with self._condition:
            try:
                self._take(deltas, version)
            finally:  # a delta without a key, or one that the transformer refuses, must not delay those before it
                self._condition.notify_all()

    async def replace(self, objects: Iterable[T], version: str = "") -> None:
        """Enqueue a whole collection: objects that are known and not in it are deleted."""
        await self._in_slices(self._replacing(objects, version))

    async def replace_owned(self, objects: MutableMapping[str, T], version: str = "") -> None:
        """Enqueue a whole collection by key. The mapping belongs to the queue from now on and is not copied."""
        await self._in_slices(self._replacing_owned(objects, version))

    async def resync(self) -> None:
        """Enqueue everything that the consumer knows once more."""
        await self._in_slices(self._resyncing())

    async def close(self) -> None:
        """Accept nothing more; waits end with `FIFOClosed` once what is left has been popped."""
        async with self._condition:
            self._closed = True
            self._condition.notify_all()

    # What the consumer does.

    async def pop(self, process: PopProcessFunc[T]) -> P:
        """Wait for an item, have it processed under the lock, and return it.

        Args:
            process: is called with the deltas of one key, and whether they belong to the initial list. If it raises,
                the item is not enqueued again.

        Raises:
            FIFOClosed: the queue is closed and empty.
        """
        async with self._condition:
            while not self._line:
                await self._wait()
                self._slicer.start()
            popped: list[P] = []
            with closing(self._popping_one(popped)) as steps:
                for step in steps:
                    if step is None:
                        await self._slicer.pause()
                    else:
                        process(*step)
            return popped[0]

    def batch(self, producer_calls: ProducerCalls[T] | None = None) -> Batch[T]:
        """Return a context in which everything that waits can be processed; entering it waits for something.

        Args:
            producer_calls: processes a few changes in one step. While the consumer waits to enter the context, `apply`
                calls this if it brings no more than a few changes, and the consumer waits on.
                `apply` raises what it raises. What it has not iterated over then waits for the next batch.

        Raises:
            FIFOClosed: on entering it, if the queue is closed and empty.
        """
        return Batch(self, self._condition, self._popping, producer_calls)

    async def wait_filled(self, producer_calls: ProducerCalls[T] | None = None) -> bool:
        """Wait until something waits, or a version is to be learned; the caller has the lock. `Batch` calls it.

        Args:
            producer_calls: see `batch`.

        Returns:
            Whether that took a wait, so that other tasks had a turn.

        Raises:
            FIFOClosed: the queue is closed and empty.
        """
        waited = False
        try:
            while not (self._line or self._news):
                waited = True
                self._producer_calls = producer_calls
                await self._wait()
        finally:
            self._producer_calls = None
        return waited

    def mark_incomplete(self, *, initial: bool) -> None:
        """Note that something popped was not processed: no version is reached until the next replacement.

        Args:
            initial: the first population was not complete; it is complete once the next replacement is processed.
        """
        self._incomplete = True
        self.version = ""
        self._populated_in_part = self._populated_in_part or initial

    def has_synced(self) -> bool:
        """Return whether all of the first population has been popped."""
        return self._populated and self._initial <= 0 and not self._populated_in_part

    def key_of(self, obj: Any) -> str:
        """Return the key of an object, a delta, deltas (of the newest) or a tombstone.

        Raises:
            KeyFuncError: it has none.
        """
        return delta_key(obj.object if isinstance(obj, Delta) else obj, self._key_func)

    def __len__(self) -> int:
        return len(self._line)

    def __repr__(self) -> str:
        synced = "synced" if self.has_synced() else "not synced"
        closed = ", closed" if self._closed else ""
        return f"<{type(self).__name__}, {len(self)} queued, {synced}, version {self.version!r}{closed}>"

    # What subclasses define. The lock is held.

    @abstractmethod
    def _take(self, deltas: Iterable[Delta[T]], version: str) -> None:
        """Enqueue changes."""

    @abstractmethod
    def _replacing(self, objects: Iterable[T], version: str) -> Generator[None]:
        """Enqueue a whole collection, in steps."""

    def _replacing_owned(self, objects: MutableMapping[str, T], version: str) -> Generator[None]:
        """Enqueue a whole collection, in steps, and empty the mapping."""
        yield from self._replacing(objects.values(), version)
        while objects:  # freeing many objects at once would block the event loop
            objects.popitem()
            yield

    @abstractmethod
    def _resyncing(self) -> Generator[None]:
        """Enqueue everything that the consumer knows, in steps."""

    @abstractmethod
    def _popping_one(self, popped: list[P]) -> Generator[Step[T]]:
        """Pop the first item, in steps, and append it to `popped`."""

    @abstractmethod
    def _popping(self) -> Generator[Step[T]]:
        """Pop everything that belongs to a batch, in steps."""

    def _transformed(self, delta: Delta[T]) -> Delta[T]:
        obj = delta.object
        if self._transformer is None or delta.type is DeltaType.SYNC or isinstance(obj, DeletedFinalStateUnknown):
            return delta
        return Delta(delta.type, self._transformer(obj))

    def _replaced(self, version: str) -> None:
        """Note that a replacement is complete up to here."""
        self._incomplete = False
        self._populated_in_part = False
        self.version = version

    # Waiting.

    async def _in_slices(self, steps: Generator[None]) -> None:
        async with self._condition:
            self._slicer.start()
            try:
                with closing(steps):
                    for _ in steps:
                        await self._slicer.pause()
            finally:  # what was enqueued before a failure or a cancellation waits like anything else
                self._condition.notify_all()

    async def _wait(self) -> None:
        if self._closed:
            raise FIFOClosed("the queue is closed")
        await self._condition.wait()


class Batch(Generic[T]):
    """Everything that waits in a queue, for its consumer: `async with queue.batch() as batch: for step in batch: …`.

    The queue is locked inside the context. What has not been iterated over at its end waits for the next batch.

    Args:
        queue: waits until it has something.
        lock: of the queue.
        popping: returns the steps that pop everything.
        producer_calls: see `FIFO.batch`.

    Attributes:
        size: how many items wait at the beginning.
        waited: whether entering the context waited, so that other tasks had a turn.
    """

    __slots__ = ("_lock", "_popping", "_producer_calls", "_queue", "_steps", "size", "waited")

    def __init__(
        self,
        queue: FIFO[T, Any],
        lock: asyncio.Condition,
        popping: Callable[[], Generator[Step[T]]],
        producer_calls: ProducerCalls[T] | None,
    ) -> None:
        self._queue = queue
        self._lock = lock
        self._popping = popping
        self._producer_calls = producer_calls
        self._steps: Generator[Step[T]] | None = None
        self.size = 0
        self.waited = False

    async def __aenter__(self) -> Self:
        await self._lock.acquire()
        try:
            self.waited = await self._queue.wait_filled(self._producer_calls)
        except BaseException:
            self._lock.release()
            raise
        self.size = len(self._queue)
        return self

    def __iter__(self) -> Generator[Step[T]]:
        steps = self._popping()
        self._steps = steps
        return steps

    @property
    def version(self) -> str:
        """The version that the consumer has reached; "" if that is unknown. To be read after the last step."""
        return self._queue.version

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._steps is not None:
                self._steps.close()
                self._steps = None  # the consumer may keep this object until the next batch
        finally:
            self._lock.release()
