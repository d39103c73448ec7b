"""DeltaFIFO: changes by key. All queued deltas of an object are popped together, at the position of the first one.

A slow consumer costs one entry for each object, however often it changes. There is no order between objects. A
replacement enqueues a deletion for each known object that it does not contain.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aioinformer.queue.deltas import Delta, Deltas, DeltaType, delta_key
from aioinformer.queue.fifo import FIFO, PopProcessFunc, Queue, Step
from aioinformer.queue.listed_objects import ListedObjects
from aioinformer.resources.keys import DeletedFinalStateUnknown, meta_namespace_key_func

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, MutableMapping

__all__ = ["DeltaFIFO", "KnownObjects", "PopProcessFunc", "Queue"]

T = TypeVar("T")

#: Named here: looking a member up in its class for each object of a list would cost as much as enqueueing it.
_REPLACED = DeltaType.REPLACED
_DELETED = DeltaType.DELETED


class KnownObjects(Protocol):
    """The objects that the consumer has. The queue compares them with a replacement, and resyncs them."""

    def all_keys(self) -> list[str]: ...

    def item(self, key: str) -> Any: ...


class DeltaFIFO(FIFO[T, Deltas[T]]):
    """The queue by key. It has one consumer.

    Args:
        key_func: returns the key of an object.
        known_objects: what the consumer knows; without it, only what is queued is known.
        transformer: is applied to each object that is enqueued, except tombstones and resyncs.
    """

    def __init__(
        self,
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        known_objects: KnownObjects | None = None,
        *,
        transformer: Callable[[T], T] | None = None,
    ) -> None:
        super().__init__(key_func, transformer)
        self._known = known_objects
        #: Queued deltas by key, in the order of `_line`. A single delta, or an object of a replacement, is stored
        #: without a list, because the garbage collector would walk one list for each key.
        self._items: MutableMapping[str, T | Delta[T] | Deltas[T]] = {}

    def _take(self, deltas: Iterable[Delta[T]], version: str) -> None:
        for delta in deltas:
            self._populated = True
            if delta.type is _DELETED and not self._is_known(delta_key(delta.object, self._key_func)):
                continue
            self._append(delta)
        if version:
            self.version = "" if self._incomplete else version
            self._news = True

    def _replacing(self, objects: Iterable[T], version: str) -> Generator[None]:
        items = self._items
        append = self._append
        unlisted = set(items)
        for obj in objects:
            unlisted.discard(append(Delta(_REPLACED, obj)))
            yield
        yield from self._deleting_missing(unlisted, version)

    def _replacing_owned(self, objects: MutableMapping[str, T], version: str) -> Generator[None]:
        if self._items or self._transformer is not None or not isinstance(objects, ListedObjects):
            yield from super()._replacing_owned(objects, version)
            return
        yield from objects.close_gaps()
        self._items, self._line = objects.detach()
        yield from self._deleting_missing(set(), version)

    def _deleting_missing(self, unlisted: set[str], version: str) -> Generator[None]:
        """Enqueue the deletion of everything that is known or queued and not listed; then the replacement is complete.

        Args:
            unlisted: keys that are queued and not listed.
            version: of the list.
        """
        items = self._items
        if "" in items and "" not in unlisted:  # an object without a readable name may be any that is not listed
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
        self._replaced(version)
        self._news = True

    def _resyncing(self) -> Generator[None]:
        if self._known is None:
            return
        for key in self._known.all_keys():
            if key not in self._items:
                item = self._known.item(key)
                if item is not None:
                    self._append(Delta(DeltaType.SYNC, item), key)
            yield

    def _popping_one(self, popped: list[Deltas[T]]) -> Generator[Step[T]]:
        with closing(self._popping()) as steps:
            deltas, initial = next(steps)
        popped.append(deltas)
        yield deltas, initial

    def _popping(self) -> Generator[tuple[Deltas[T], bool]]:
        line = self._line
        items = self._items
        while line:
            key = line[0]
            waiting = items[key]
            deltas = Deltas((waiting,)) if type(waiting) is Delta else _deltas(waiting)
            initial = not self._populated
            left = self._initial
            if left:
                initial = True
                left -= 1
            step = (deltas, initial)
            # From here on, no memory is needed. If there was none for the step, the item is still in line.
            del items[key]
            line.popleft()
            self._initial = left
            yield step
        self._items = {}  # without the memory that a list needed
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
                del self._items[key]  # an item that is not in line would wait for ever
                raise
        else:
            deltas = _deltas(waiting)
            self._items[key] = deltas
            deltas.append(delta)
            if delta.type is DeltaType.DELETED:
                _dedup(deltas)
        return key


def _deltas(waiting: T | Delta[T] | Deltas[T]) -> Deltas[T]:
    if isinstance(waiting, Deltas):
        return waiting
    return Deltas((waiting if isinstance(waiting, Delta) else Delta(_REPLACED, waiting),))


def _tombstone(key: str, last: Any) -> DeletedFinalStateUnknown[Any]:
    if isinstance(last, DeletedFinalStateUnknown):
        return last
    return DeletedFinalStateUnknown(key, last)


def _dedup(deltas: Deltas[Any]) -> None:
    """Merge two consecutive deletions: keep the older one, unless it is a tombstone. There are two deltas or more."""
    if deltas[-2].type is not DeltaType.DELETED:
        return
    if isinstance(deltas[-2].object, DeletedFinalStateUnknown):
        del deltas[-2]
    else:
        del deltas[-1]
