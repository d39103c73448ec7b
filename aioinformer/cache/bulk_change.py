"""Change many objects of a store so that every reader sees all of the change or nothing of it.

The work is done beforehand, a bit at each call: index functions are called, and a collection of new objects is indexed
on the side. `commit` then takes the lock once. While a bulk change is open, nothing else may change the objects in it.
Other objects, other forms of the same objects, and more indices may be added meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.indices import Index
    from aioinformer.cache.store import ThreadSafeStore


class BulkChange:
    """Collect puts and deletions, and make them at once.

    Args:
        store: the store to change.
        fresh: none of the objects that will be put should be in the store yet.
    """

    def __init__(self, store: ThreadSafeStore[Any], *, fresh: bool) -> None:
        self._store = store
        self._deleted: dict[str, None] = {}
        #: key -> the item, and its values by the names of the indices
        self._puts: dict[str, tuple[Any, dict[str, tuple[str, ...]]]] = {}
        #: Objects that are all new, and indices of these alone.
        self._items: dict[str, Any] | None = None
        self._made: dict[str, Index[Any]] = {}
        if fresh:
            self._items = {}
            self._made = {index.name: store.new_index(index.name, index.function) for index in store.every_index}

    def __contains__(self, key: str) -> bool:
        """Return whether an object is changed."""
        return key in self._puts or key in self._deleted or (self._items is not None and key in self._items)

    def put(self, key: str, item: Any) -> None:
        """Add or replace an item."""
        if self._items is None:
            self._puts[key] = item, {index.name: index.evaluate(key, item) for index in self._store.every_index}
            return
        self._items[key] = item
        for index in self._made.values():
            index.put(key, item, index.evaluate(key, item))

    def delete(self, key: str) -> None:
        """Remove an item that is in the store."""
        self._deleted[key] = None

    def commit(self, notify: Callable[[], Any] = lambda: None) -> None:
        """Make the changes, all at once.

        Args:
            notify: called as a part of the change, inside the lock.

        Raises:
            MemoryError: nothing has changed. The same if `notify` raises.
        """
        items = self._items
        if items is not None:
            if self._store.put_new(items, self._made, notify):
                return
            self._puts = {key: (item, {}) for key, item in items.items()}  # some of them have been put by others
        for key, (item, values) in self._puts.items():
            for index in self._store.every_index:
                if index.name not in values:
                    values[index.name] = index.evaluate(key, item)
        self._store.put_all(self._puts, self._deleted, notify)
