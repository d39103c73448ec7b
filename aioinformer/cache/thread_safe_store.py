"""Keys, items and indices under one lock: the base of every store.

These statements hold at any time, for readers in any thread:

- Each call is answered from one state. No reader sees half of a change.
- An object is in the store and in all its indices, or in none of them. A change that runs out of memory is undone.
- The values that an index function returned for an object are kept with it. The function is called once for each
  version, and a function that returns other values for the same version leaves no stale entries.
- If an index function raises for an object, the object is absent from that index and present everywhere else; `failing`
  lists such objects.

Index functions are called outside the lock, so they may read the store. The lock is re-entrant: a finalizer or a signal
handler may read while its own thread is changing the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.indices import Begun, Index, Indexers, IndexFunc, index_functions
from aioinformer.cache.objects.record import Record
from aioinformer.errors import IndexNotFound, UsageError
from aioinformer.functions import LogError, Timed, log_each, untimed

T = TypeVar("T")

#: The name of the namespace index.
NAMESPACE_INDEX = "namespace"

#: index name -> index
Indices: TypeAlias = dict[str, Index[T]]

#: How many objects are named for which an index function raises.
_NAMED: Final = 3


class ThreadSafeStore(Generic[T]):
    """Keys, items and indices under one lock.

    Items are of any type. `to_view` returns what index functions and readers see of an item.

    Args:
        indexers: index functions by name.
        to_view: item -> what readers see; None for the item itself.
        timed: wraps index functions, so that their calls are timed.
        log_error: logs the errors of index functions.

    Attributes:
        every_index: all indices, unfinished ones included, for the writer's thread. Adding or replacing an index makes
            a new list; `put` detects the change by comparing identities.
        resource_version: up to which everything is in the store; "" if that is unknown.
        on_release: called with the items when the store is garbage.
    """

    def __init__(
        self,
        indexers: Indexers[T] | None = None,
        to_view: Callable[[Any], T] | None = None,
        timed: Timed = untimed,
        log_error: LogError = log_each,
    ) -> None:
        self._to_view = to_view
        self._timed = timed
        self._log_error = log_error
        self._lock = threading.RLock()
        self._items: dict[str, Any] = {}
        self._indices: Indices[T] = {}
        #: Indices that are being filled: kept up to date like the others, and not readable yet.
        self._unfinished: Indices[T] = {}
        self.every_index: list[Index[T]] = []
        self.resource_version = ""
        self.on_release: Callable[[dict[str, Any]], None] | None = None
        if indexers:
            self.add_indexers(indexers)

    def __del__(self) -> None:
        if self.on_release is not None:
            self.on_release(self._items)

    # Writing.

    def put(self, key: str, item: Any, notify: Callable[[Any], Any] | None = None, notification: Any = None) -> Any:
        """Add or replace an item; return the previous item, or None.

        Args:
            key: of the item.
            item: the new item.
            notify: called with `notification` inside the lock. If it raises, nothing has changed.
            notification: the argument of `notify`.

        Raises:
            MemoryError: nothing has changed.
        """
        while True:
            indices = self.every_index
            values = []
            # An update cannot move a record in an index of namespaces: not to ask it saves 1.2 of 1.9 us of a put.
            settled = key in self._items and isinstance(item, Record)
            for index in indices:
                if not (settled and index.settles_records):
                    values.append((index, index.evaluate(key, item)))
            with self._lock:
                old = self._items.get(key)
                if indices is not self.every_index or (settled and old is None):
                    continue  # another thread came between
                begun: Begun = []
                try:
                    self._items[key] = item
                    for index, new in values:
                        index.add(key, item, new, begun)
                    if notify is not None:
                        notify(notification)
                except BaseException:
                    self._undo(key, old, begun)
                    raise
                for index, before, new in begun:
                    index.settle(key, before, new)
                return old

    def _undo(self, key: str, old: Any, begun: Begun) -> None:
        """Undo a change that has begun; this needs no memory."""
        for index, before, new in begun:
            index.settle(key, new, before)
        if old is None:
            self._items.pop(key, None)
        else:
            self._items[key] = old

    def exchange(self, key: str, old: Any, new: Any) -> None:
        """Replace an item with another form of the same object, if it is still there. Its indices do not change."""
        with self._lock:
            if self._items.get(key) is old:
                self._items[key] = new

    def delete(self, key: str, notify: Callable[[Any], Any] | None = None, notification: Any = None) -> Any:
        """Remove an item and return it; return None if there was none.

        Args:
            key: of the item.
            notify: as for `put`; not called if there is no such item.
            notification: the argument of `notify`.
        """
        with self._lock:
            old = self._items.get(key)
            if old is not None:
                indices = self.every_index
                if notify is not None:
                    notify(notification)
                for index in indices:
                    index.remove(key, old)
                del self._items[key]
        return old

    def replace(self, items: Mapping[str, Any]) -> None:
        """Replace all items with these."""
        taken = dict(items)
        while True:
            indices = self.every_index
            built = {index: self.built(index.name, index.function, taken.items()) for index in indices}
            with self._lock:
                if indices is self.every_index:  # otherwise, another thread has added an index just now
                    self._begin(taken, built, lambda: None)
                    return

    def change(self, change: BulkChange, notify: Callable[[], Any]) -> None:
        """Make many changes, which every reader sees whole or not at all.

        Args:
            change: its additions become the items and the indices of an empty store.
            notify: called as a part of the change, inside the lock.

        Raises:
            MemoryError: nothing has changed. The same if `notify` raises.
        """
        with self._lock:
            items = self._items
            indices = self.every_index
            added = change.added
            change.follow(indices)  # another thread may have added an index just now
            if not added.keys().isdisjoint(items):
                change.update_added()
            if not (items or change.settled or change.moved):
                self._begin(added, change.added_to, notify)
                return
            changes: list[tuple[str, Any, Begun]] = []
            try:
                for key, (item, values) in change.moved.items():
                    begun: Begun = []
                    changes.append((key, items.get(key), begun))
                    items[key] = item
                    for index in indices:
                        index.add(key, item, values[index], begun)
                items.update(added)
                for index in indices:
                    index.take_in(change.added_to[index])
                notify()
            except BaseException:
                for key, old, begun in changes:
                    self._undo(key, old, begun)
                self._remove(added)
                raise
            items.update(change.settled)  # of keys that exist, which needs no memory
            for key, _, begun in changes:
                for index, before, new in begun:
                    index.settle(key, before, new)
            self._remove(change.deleted)

    def _begin(self, items: dict[str, Any], made: dict[Index[T], Index[T]], notify: Callable[[], Any]) -> None:
        indices = {name: made[index] for name, index in self._indices.items()}
        unfinished = {name: made[index] for name, index in self._unfinished.items()}
        every_index = [*indices.values(), *unfinished.values()]
        notify()
        self._items = items  # from here on, no memory is needed
        self._indices = indices
        self._unfinished = unfinished
        self.every_index = every_index

    def _remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            item = self._items.pop(key, None)
            if item is not None:
                for index in self.every_index:
                    index.remove(key, item)

    def new_index(self, name: str, function: IndexFunc[T]) -> Index[T]:
        """Return an empty index by a function, for items of this store."""
        return Index(name, function, self._to_view, self._timed, self._log_error)

    @property
    def is_indexing(self) -> bool:
        """Whether an index is being filled."""
        return bool(self._unfinished)

    def _renew(self) -> None:
        """Note, inside the lock, that an index was added or replaced, or the items were replaced."""
        self.every_index = [*self._indices.values(), *self._unfinished.values()]

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add index functions; all items are indexed when this returns.

        Raises:
            UsageError: a name is taken, or a value is not a function. Nothing has changed then.
        """
        for _ in self.adding_indexers(indexers):
            pass

    def adding_indexers(self, indexers: Indexers[T]) -> Generator[None]:
        """Add index functions, one item at each step. A generator that is closed early has added nothing.

        Raises:
            UsageError: as `add_indexers`, at the first step.
        """
        if taken := sorted(name for name in indexers if name in self._indices or name in self._unfinished):
            raise UsageError(f"index {', '.join(taken)} exists already; choose another name")
        made = {name: self.new_index(name, function) for name, function in index_functions(indexers).items()}
        with self._lock:
            self._unfinished.update(made)
            self._renew()
        complete = False
        try:
            for key in self.all_keys():
                self._index_again(key, made)
                yield
            complete = True
        finally:
            with self._lock:
                filled = {name: self._unfinished.pop(name) for name in made}
                if complete:
                    self._indices.update(filled)
                self._renew()

    def _index_again(self, key: str, names: Iterable[str]) -> None:
        item = self._items.get(key)
        while item is not None:
            values = [(name, self._unfinished[name].evaluate(key, item)) for name in names]
            with self._lock:
                now = self._items.get(key)
                if now is item:
                    for name, new in values:
                        self._unfinished[name].put(key, item, new)
                    return
            item = now  # another thread, or the function itself, changed it meanwhile

    def built(self, name: str, function: IndexFunc[T], items: Iterable[tuple[str, Any]]) -> Index[T]:
        """Return an index of some items by a function."""
        index = self.new_index(name, function)
        for key, item in items:
            index.put(key, item, index.evaluate(key, item))
        return index

    # Reading.

    def item(self, key: str) -> Any:
        """Return the item of a key as it is stored, or None."""
        return self._items.get(key)

    def snapshot(self) -> list[tuple[str, Any]]:
        """Return all keys and items."""
        with self._lock:
            return list(self._items.items())

    def items(self) -> list[Any]:
        """Return all items."""
        with self._lock:
            return list(self._items.values())

    def all_keys(self) -> list[str]:
        """Return all keys."""
        with self._lock:
            return list(self._items)

    def __len__(self) -> int:
        with self._lock:
            return len(self._items)

    def indexers(self) -> dict[str, IndexFunc[T]]:
        """Return the index functions by name, as a copy."""
        with self._lock:
            return {name: index.function for name, index in self._indices.items()}

    def failing(self) -> dict[str, tuple[IndexFunc[T], list[str], int]]:
        """Return the indices whose functions raised for the present version of an object.

        Returns:
            By name: the function, the keys of the first few of these objects, and how many there are.
        """
        with self._lock:
            return {
                name: (index.function, list(islice(index.failing, _NAMED)), len(index.failing))
                for name, index in self._indices.items()
                if index.failing
            }

    def any_failing(self) -> bool:
        """Return whether an index function raised for the present version of an object. Any thread may call this."""
        return any(index.failing for index in tuple(self._indices.values()))

    def indexed(self, name: str, value: str) -> list[Any]:
        """Return the items that have a value in an index.

        Raises:
            IndexNotFound: no such index.
        """
        with self._lock:
            items = self._items
            return [items[key] for key in self._index(name).keys(value)]

    def indexed_keys(self, name: str, value: str) -> list[str]:
        """Return the sorted keys of the items that have a value in an index.

        Raises:
            IndexNotFound: no such index.
        """
        with self._lock:
            return sorted(self._index(name).keys(value))

    def sharing(self, name: str, item: Any) -> list[Any]:
        """Return the items that share any value of an index with this one, each once.

        Args:
            name: of the index.
            item: as it is stored, or as readers see it.

        Raises:
            IndexNotFound: no such index.
        """
        values = self._index(name).evaluate("the object asked for", item, seen=not isinstance(item, Record))
        with self._lock:
            index = self._index(name)
            items = self._items
            found = dict.fromkeys(key for value in values for key in index.keys(value))
            return [items[key] for key in found]

    def indexed_by_path(self, wanted: Iterable[tuple[tuple[str, ...], str]], namespace: str = "") -> list[Any] | None:
        """Return items that have one of these values at its path, from the index in which the fewest have it.

        Returns:
            A superset of the items that have all values (in the namespace, if given); None if no index helps.
        """
        with self._lock:
            by_path = {index.steps: index for index in self._indices.values() if index.steps is not None}
            known = [(by_path[steps], value) for steps, value in wanted if steps in by_path]
            if namespace and NAMESPACE_INDEX in self._indices:
                known.append((self._indices[NAMESPACE_INDEX], namespace))
            if not known:
                return None
            index, value = min(known, key=lambda each: each[0].size(each[1]))
            items = self._items
            return [items[key] for key in index.keys(value)]

    def values(self, name: str) -> list[str]:
        """Return the values in an index; empty if there is no such index."""
        with self._lock:
            index = self._indices.get(name)
            return index.values() if index is not None else []

    def _index(self, name: str) -> Index[T]:
        try:
            return self._indices[name]
        except KeyError:
            known = ", ".join(sorted(self._indices)) or "none"
            raise IndexNotFound(f"index {name!r} does not exist (there is: {known}); see add_indexers") from None
