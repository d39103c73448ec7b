"""Changes of many objects of a store that every reader sees as one.

What takes time is done beforehand, a bit at each call: index functions are called, and a store that is empty is filled
on the side. `commit` then takes the lock once. As long as a bulk change is open, nobody else may change what the store
holds; other forms of the same objects, and more indices, may come meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.indices import Index

if TYPE_CHECKING:
    from aioinformer.store import ThreadSafeStore

#: What an index says of an object.
Values = tuple[str, ...]


class BulkChange:
    """Collects puts and deletions, and makes them at once."""

    def __init__(self, cells: ThreadSafeStore[Any]) -> None:
        self._cells = cells
        self._deleted: list[str] = []
        #: key -> the item, and what the indices said of it
        self._puts: dict[str, tuple[Any, dict[Index[Any], Values]]] = {}
        #: What a store that is empty will hold, and the indices that will take the place of those it has.
        self._items: dict[str, Any] | None = None
        self._filled: dict[Index[Any], Index[Any]] = {}
        if not len(cells):
            self._items = {}
            self._filled = {index: Index(index.name, index.function, cells._present) for index in self._indices()}

    def put(self, key: str, item: Any) -> None:
        """Adds or replaces an item."""
        if self._items is None:
            self._puts[key] = item, {index: index.evaluate(key, item) for index in self._indices()}
            return
        self._items[key] = item
        for index in self._filled.values():
            index.put(key, item, index.evaluate(key, item))

    def delete(self, key: str) -> None:
        """Removes an item that the store holds."""
        self._deleted.append(key)

    def commit(self) -> None:
        """Makes the changes, all at once."""
        if self._items is not None:
            self._fill(self._items)
        else:
            self._change()

    def _indices(self) -> list[Index[Any]]:
        return [*self._cells._indices.values(), *self._cells._unfinished.values()]

    def _fill(self, items: dict[str, Any]) -> None:
        cells = self._cells
        for index in self._indices():
            if index not in self._filled:  # it came meanwhile
                self._filled[index] = cells._built(index.name, index.function, items.items())
        with cells._lock:
            cells._items = items
            for indices in (cells._indices, cells._unfinished):
                indices.update({name: self._filled[index] for name, index in indices.items()})

    def _change(self) -> None:
        cells, indices = self._cells, self._indices()
        for key, (item, values) in self._puts.items():
            values |= {index: index.evaluate(key, item) for index in indices if index not in values}
        with cells._lock:
            for key in self._deleted:
                old = cells._items.pop(key, None)
                if old is not None:
                    for index in indices:
                        index.remove(key, old)
            for key, (item, values) in self._puts.items():
                cells._items[key] = item
                for index in indices:
                    index.put(key, item, values[index])
