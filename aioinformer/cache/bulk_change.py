"""Change many objects of a store so that every reader sees all of the change or nothing of it.

The work is done beforehand, a bit at each call: index functions are called, and new objects are indexed on the side.
`commit` then takes the lock once, for a step whose loops are those of additions to a dict: only deletions and objects
that move in an index take one of Python. While a bulk change is open, nothing else may change the objects in it. Other
objects, other forms of the same objects, and more indices may be added meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.indices import Index
    from aioinformer.cache.store import ThreadSafeStore


class BulkChange:
    """Collect additions, updates and deletions, and make them at once.

    Attributes:
        indices: of the store, when the change began.
        added: new items by key.
        added_to: indices of these items alone, by index of the store.
        settled: new items of objects that no index has to follow, by key.
        moved: key -> the item, and its values by index.
        deleted: keys.
    """

    def __init__(self, store: ThreadSafeStore[Any]) -> None:
        self._store = store
        self.indices = store.every_index
        self.added: dict[str, Any] = {}
        self.added_to = {index: store.built(index.name, index.function, ()) for index in self.indices}
        self.settled: dict[str, Any] = {}
        self.moved: dict[str, tuple[Any, dict[Index[Any], tuple[str, ...]]]] = {}
        self.deleted: dict[str, None] = {}

    def __contains__(self, key: str) -> bool:
        """Return whether an object is changed."""
        return key in self.added or key in self.settled or key in self.moved or key in self.deleted

    def add(self, key: str, item: Any) -> None:
        """Add an item that is not in the store."""
        self.added[key] = item
        for index in self.added_to.values():
            index.put(key, item, index.evaluate(key, item))

    def update(self, key: str, item: Any) -> None:
        """Replace an item that is in the store."""
        values = {index: index.evaluate(key, item) for index in self.indices}
        # An index that is being filled has no values of some objects yet.
        if not self._store.is_indexing and all(index.has(key, item, new) for index, new in values.items()):
            self.settled[key] = item
        else:
            self.moved[key] = item, values

    def delete(self, key: str) -> None:
        """Remove an item that is in the store."""
        self.deleted[key] = None

    def commit(self, notify: Callable[[], Any] = lambda: None) -> None:
        """Make the changes, all at once.

        Args:
            notify: called as a part of the change, inside the lock.

        Raises:
            MemoryError: nothing has changed. The same if `notify` raises.
        """
        self.follow(self._store.every_index)
        self._store.change(self, notify)

    def follow(self, indices: list[Index[Any]]) -> None:
        """Evaluate what indices need that were added or replaced since the change began."""
        if indices is not self.indices:
            self.indices = indices
            self._move(self.settled)

    def update_added(self) -> None:
        """Make updates of the additions: another writer has put some of these objects."""
        self.added_to.clear()
        self._move(self.added)

    def _move(self, items: dict[str, Any]) -> None:
        self.moved |= {key: (item, {}) for key, item in items.items()}
        items.clear()
        for index in self.indices:
            if index not in self.added_to:
                self.added_to[index] = self._store.built(index.name, index.function, self.added.items())
            for key, (item, values) in self.moved.items():
                if index not in values:
                    values[index] = index.evaluate(key, item)
