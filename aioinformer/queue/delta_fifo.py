"""DeltaFIFO: what became known of objects, by key, until the one consumer takes it.

What it holds, and by which rules, is in `keyed_deltas`; how it waits, in `guarded_queue`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aioinformer.queue.deltas import Delta, Deltas, DeltaType, delta_key
from aioinformer.queue.fifo import DeltaState, GuardedQueue, PopProcessFunc, Queue
from aioinformer.queue.listed_objects import ListedObjects
from aioinformer.resources.keys import DeletedFinalStateUnknown, meta_namespace_key_func

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, MutableMapping


T = TypeVar("T")

#: Named here: to look it up in its class for each object of a list would cost as much as to queue it.
_REPLACED, _DELETED = DeltaType.REPLACED, DeltaType.DELETED


class KnownObjects(Protocol):
    """What the consumer has: the queue looks there for what is deleted, or to be repeated."""

    def all_keys(self) -> list[str]: ...

    def item(self, key: str) -> Any: ...


class KeyedDeltas(DeltaState[T, Deltas[T]]):
    """Deltas by key, and the keys in line.

    Args:
        key_func: object -> key.
        known_objects: what the consumer has; without it, only what is queued is known.
        transformer: see `DeltaState`.
    """

    def __init__(
        self,
        key_func: Callable[[Any], str],
        known_objects: KnownObjects | None,
        transformer: Callable[[T], T] | None,
    ) -> None:
        super().__init__(transformer)
        self._key_func = key_func
        self._known = known_objects
        #: One delta stands for itself, and so does an object that replaces what was there: a relist brings one of every
        #: key, and lists would be walked by the collector.
        self._items: MutableMapping[str, T | Delta[T] | Deltas[T]] = {}
        self._line: deque[str] = deque()
        self._news = False

    def __len__(self) -> int:
        return len(self._line)

    def has_news(self) -> bool:
        return self._news or bool(self._line)

    def take(self, deltas: Iterable[Delta[T]], version: str) -> None:
        for delta in deltas:
            self._populated = True
            if delta.type is _DELETED and not self._is_known(delta_key(delta.object, self._key_func)):
                continue
            self._append(delta)
        if version:
            self.version = version
            self._news = True

    def replacing(self, objects: Iterable[T], version: str) -> Generator[None]:
        items, append = self._items, self._append
        unlisted = set(items)
        for obj in objects:
            unlisted.discard(append(Delta(_REPLACED, obj)))
            yield
        yield from self._replaced(unlisted, version)

    def taking_over(self, objects: MutableMapping[str, T], version: str) -> Generator[None]:
        if self._items or self._transformer is not None or not isinstance(objects, ListedObjects):
            yield from super().taking_over(objects, version)
            return
        yield from objects.closing_gaps()
        self._items, self._line = objects.apart()
        yield from self._replaced(set(), version)

    def _replaced(self, unlisted: set[str], version: str) -> Generator[None]:
        """What there is, is in line; what is not, known or queued, is gone.

        Args:
            unlisted: what is queued and not listed.
            version: of the list.
        """
        items = self._items
        if "" in items and "" not in unlisted:  # what has no readable name may be any of those that are not named
            unlisted.clear()
            keys: Iterable[str] = ()
        else:
            keys = self._known.all_keys() if self._known is not None else ()
        for key in unlisted:
            self._append(Delta(DeltaType.DELETED, _tombstone(key, _deltas(items[key])[-1].object)))
            yield
        for key in keys:
            if key not in items and self._known is not None:
                self._append(Delta(DeltaType.DELETED, _tombstone(key, self._known.item(key))))
            yield
        if not self._populated or self._populated_in_part:
            self._populated = True
            self._initial = len(self._line)
        self.incomplete = self._populated_in_part = False
        self.version = version
        self._news = True

    def resyncing(self) -> Generator[None]:
        if self._known is None:
            return
        for key in self._known.all_keys():
            if key not in self._items:
                item = self._known.item(key)
                if item is not None:
                    self._append(Delta(DeltaType.SYNC, item), key)
            yield

    def popping(self, process: PopProcessFunc[T]) -> Generator[Deltas[T]]:
        line, items = self._line, self._items
        while line:
            waiting = items.pop(line.popleft())
            deltas = Deltas((waiting,)) if type(waiting) is Delta else _deltas(waiting)
            initial = not self._populated
            if self._initial:
                initial = True
                self._initial -= 1
            process(deltas, initial)
            yield deltas
        self._items = {}  # without the space that a list needed
        self._news = False

    def _is_known(self, key: str) -> bool:
        return key in self._items or (self._known is not None and self._known.item(key) is not None)

    def _append(self, delta: Delta[T], key: str | None = None) -> str:
        if key is None:
            obj = delta.object
            key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else self._key_func(obj)
        if self._transformer is not None:
            delta = self._transformed(delta)
        waiting = self._items.get(key)
        if waiting is None:
            self._items[key] = delta
            try:
                self._line.append(key)
            except BaseException:
                del self._items[key]  # what is in no line would wait for ever
                raise
        else:
            deltas = self._items[key] = _deltas(waiting)
            deltas.append(delta)
            if delta.type is DeltaType.DELETED:
                _dedup(deltas)
        return key


def _deltas(waiting: T | Delta[T] | Deltas[T]) -> Deltas[T]:
    if isinstance(waiting, Deltas):
        return waiting
    return Deltas((waiting if isinstance(waiting, Delta) else Delta(_REPLACED, waiting),))


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


__all__ = ["DeltaFIFO", "KnownObjects", "PopProcessFunc", "Queue"]


class DeltaFIFO(GuardedQueue[T, Deltas[T]]):
    """The queue by key. What waits of an object is popped together; a replacement queues what it lacks as deleted.

    It has one consumer.

    Args:
        key_func: object -> key.
        known_objects: what the consumer has; without it, only what is queued is known.
        transformer: applied to every object on its way in, but for tombstones and repetitions (DF-07).
        slice_seconds: how long work may hold the event loop at a time.
        on_batch: called after each batch: how much waited, and how many seconds it took.
    """

    def __init__(
        self,
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        known_objects: KnownObjects | None = None,
        *,
        transformer: Callable[[T], T] | None = None,
        slice_seconds: float = 0.0005,
        on_batch: Callable[[int, float], None] = lambda waiting, seconds: None,
    ) -> None:
        super().__init__(KeyedDeltas(key_func, known_objects, transformer), key_func, slice_seconds, on_batch)
