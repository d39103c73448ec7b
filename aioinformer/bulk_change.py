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


class BulkChange:
    """Collects puts and deletions, and makes them at once."""

    def __init__(self, cells: ThreadSafeStore[Any]) -> None:
        self._cells = cells
        self._indices: dict[str, Index[Any]] = dict(cells._indices)
        self._deleted: list[str] = []
        #: key -> the item, and what the index functions said of it
        self._puts: dict[str, tuple[Any, dict[str, tuple[str, ...]]]] = {}
        #: What a store that is empty will hold.
        self._items: dict[str, Any] | None = None
        if not len(cells):
            self._items = {}
            self._indices = {name: Index(name, index.function, cells._present) for name, index in self._indices.items()}

    def put(self, key: str, item: Any) -> None:
        """Adds or replaces an item."""
        values = {name: index.evaluate(key, item) for name, index in self._indices.items()}
        if self._items is None:
            self._puts[key] = item, values
            return
        self._items[key] = item
        for name, index in self._indices.items():
            index.put(key, item, values[name])

    def delete(self, key: str) -> None:
        """Removes an item that the store holds."""
        self._deleted.append(key)

    def commit(self) -> None:
        """Makes the changes, all at once."""
        cells = self._cells
        if self._items is not None:
            late = cells._indices.keys() - self._indices.keys()
            for name in late:
                self._indices[name] = cells._built(name, cells._indices[name].function, self._items.items())
            unfinished = {
                name: cells._built(name, index.function, self._items.items())
                for name, index in cells._unfinished.items()
            }
            with cells._lock:
                cells._items = self._items
                cells._indices = self._indices
                cells._unfinished.update(unfinished)
            return
        indices = {**cells._indices, **cells._unfinished}
        late = indices.keys() - self._indices.keys()
        for key, (item, values) in self._puts.items():
            values |= {name: indices[name].evaluate(key, item) for name in late}
        with cells._lock:
            for key in self._deleted:
                old = cells._items.pop(key, None)
                if old is not None:
                    for index in indices.values():
                        index.remove(key, old)
            for key, (item, values) in self._puts.items():
                cells._items[key] = item
                for name, index in indices.items():
                    index.put(key, item, values[name])
