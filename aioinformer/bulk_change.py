"""Changes of many objects of a store that every reader sees as one.

What takes time is done beforehand, a bit at each call: index functions are called, and objects that are all new are
indexed on the side. `commit` then takes the lock once. As long as a bulk change is open, nobody else may change what it
changes; other objects, other forms of the same ones, and more indices, may come meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.indices import Index

if TYPE_CHECKING:
    from aioinformer.store import ThreadSafeStore

#: What an index says of an object.
Values = tuple[str, ...]


class BulkChange:
    """Collects puts and deletions, and makes them at once.

    Args:
        cells: what is changed.
        fresh: none of the objects that will be put should be in there yet.
    """

    def __init__(self, cells: ThreadSafeStore[Any], *, fresh: bool) -> None:
        self._cells = cells
        self._deleted: list[str] = []
        #: key -> the item, and what the indices said of it, by their names
        self._puts: dict[str, tuple[Any, dict[str, Values]]] = {}
        #: Objects that are all new, and indices of these alone.
        self._items: dict[str, Any] | None = {} if fresh else None
        self._made: dict[str, Index[Any]] = {}
        if fresh:
            self._made = {
                index.name: Index(index.name, index.function, cells._present, cells._timed) for index in self._indices()
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

    def commit(self) -> None:
        """Makes the changes, all at once."""
        items = self._items
        if items is not None and items.keys().isdisjoint(self._cells._items):
            self._take_in(items)
            return
        if items is not None:  # somebody else has put one of them in
            self._puts = {key: (item, {}) for key, item in items.items()}
        self._change()

    def _indices(self) -> list[Index[Any]]:
        return [*self._cells._indices.values(), *self._cells._unfinished.values()]

    def _take_in(self, items: dict[str, Any]) -> None:
        cells, made = self._cells, self._made
        for index in self._indices():
            if index.name not in made:  # it came meanwhile
                made[index.name] = cells._built(index.name, index.function, items.items())
        with cells._lock:
            if cells._items:
                cells._items.update(items)
                for index in self._indices():
                    index.take_in(made[index.name])
            else:
                cells._items = items
                for indices in (cells._indices, cells._unfinished):
                    indices.update({name: made[name] for name in indices})

    def _change(self) -> None:
        cells, indices = self._cells, self._indices()
        for key, (item, values) in self._puts.items():
            values |= {index.name: index.evaluate(key, item) for index in indices if index.name not in values}
        with cells._lock:
            for key in self._deleted:
                old = cells._items.pop(key, None)
                if old is not None:
                    for index in indices:
                        index.remove(key, old)
            for key, (item, values) in self._puts.items():
                cells._items[key] = item
                for index in indices:
                    index.put(key, item, values[index.name])
