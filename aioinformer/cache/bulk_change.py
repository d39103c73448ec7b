"""Changes of many objects of a store that every reader sees as one.

What takes time is done beforehand, a bit at each call: index functions are called, and objects that are all new are
indexed on the side. `commit` then takes the lock once. As long as a bulk change is open, nobody else may change what it
changes; other objects, other forms of the same ones, and more indices, may come meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.cache.indices import Index

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.store import ThreadSafeStore
    from aioinformer.cache.thread_safe_store import Begun

#: What an index says of an object.
Values = tuple[str, ...]


class BulkChange:
    """Collects puts and deletions, and makes them at once.

    Args:
        store: what is changed.
        fresh: none of the objects that will be put should be in there yet.
    """

    def __init__(self, store: ThreadSafeStore[Any], *, fresh: bool) -> None:
        self._store = store
        self._deleted: list[str] = []
        #: key -> the item, and what the indices said of it, by their names
        self._puts: dict[str, tuple[Any, dict[str, Values]]] = {}
        #: Objects that are all new, and indices of these alone.
        self._items: dict[str, Any] | None = {} if fresh else None
        self._made: dict[str, Index[Any]] = {}
        if fresh:
            self._made = {
                index.name: Index(index.name, index.function, store._to_view, store._timed) for index in self._indices()
            }

    def put(self, key: str, item: Any) -> None:
        """Adds or replaces an item."""
        if self._items is None:
            self._puts[key] = item, {index.name: index.evaluate(key, item) for index in self._indices()}
            return
        self._items[key] = item
        for index in self._made.values():
            index.put(key, item, index.evaluate(key, item))

    def delete(self, key: str) -> None:
        """Removes an item that the store holds."""
        self._deleted.append(key)

    def commit(self, announce: Callable[[], Any] = lambda: None) -> None:
        """Makes the changes, all at once.

        Args:
            announce: called as a part of the change, within the lock.

        Raises:
            MemoryError: nothing has changed. The same if `announce` raises.
        """
        items = self._items
        if items is not None and items.keys().isdisjoint(self._store._items):
            self._take_in(items, announce)
            return
        if items is not None:  # somebody else has put one of them in
            self._puts = {key: (item, {}) for key, item in items.items()}
        self._change(announce)

    def _indices(self) -> list[Index[Any]]:
        return self._store.every_index

    def _take_in(self, items: dict[str, Any], announce: Callable[[], Any]) -> None:
        store, made = self._store, self._made
        for index in self._indices():
            if index.name not in made:  # it came meanwhile
                made[index.name] = store._built(index.name, index.function, items.items())
        with store._lock:
            if store._items:
                try:
                    store._items.update(items)
                    for index in self._indices():
                        index.take_in(made[index.name])
                    announce()
                except BaseException:
                    for key, item in items.items():
                        store._items.pop(key, None)
                        for index in self._indices():
                            index.remove(key, item)
                    raise
            else:
                taken = [
                    (all_of, {name: made[name] for name in all_of}) for all_of in (store._indices, store._unfinished)
                ]
                announce()
                store._items = items
                for indices, ours in taken:
                    indices.update(ours)
                store.renew()

    def _change(self, announce: Callable[[], Any]) -> None:
        store, indices = self._store, self._indices()
        for key, (item, values) in self._puts.items():
            values |= {index.name: index.evaluate(key, item) for index in indices if index.name not in values}
        with store._lock:
            changes: list[tuple[str, Any, Begun]] = []
            try:
                for key, (item, values) in self._puts.items():
                    begun: Begun = []
                    changes.append((key, store._items.get(key), begun))
                    store._items[key] = item
                    for index in indices:
                        before = index.add(key, item, values[index.name])
                        if before is not None:
                            begun.append((index, before, values[index.name]))
                announce()
            except BaseException:
                for key, old, begun in changes:
                    store._undo(key, old, begun)
                raise
            for key, _, begun in changes:
                for index, before, new in begun:
                    index.settle(key, before, new)
            for key in self._deleted:
                old = store._items.pop(key, None)
                if old is not None:
                    for index in indices:
                        index.remove(key, old)
