"""Keys, items and indices under one lock: what every store here is made of.

What holds at any time, for every reader, from any thread:

- One call is answered from one state: nothing is seen half changed (ARC-08).
- An object is in the store and in all its indices, or in none of them; a change that runs out of memory is undone.
- What an index function said of an object is kept with it, so that the function is called once a version, and a
  function that changes its mind leaves nothing behind in the index.
- An index function that raises costs its object the place in that index, which `failing` tells, and nothing else.

Index functions are called outside the lock, so that they may read the store. The lock is re-entrant: a finalizer or a
signal handler may read in the middle of a change of its own thread.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from aioinformer.cache.indices import Index, Indexers, IndexFunc, index_functions
from aioinformer.cache.objects.record import Record
from aioinformer.errors import IndexNotFound, UsageError
from aioinformer.functions import Timed, untimed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

T = TypeVar("T")

#: The name of the index by namespace.
NAMESPACE_INDEX = "namespace"

#: index name -> index
Indices: TypeAlias = dict[str, Index[T]]
#: Indices in which a change was begun, with the values of the object before and after it.
Begun: TypeAlias = list[tuple[Index[Any], tuple[str, ...], tuple[str, ...]]]

#: So many objects are named for which an index function raises.
_NAMED: Final = 3


class ThreadSafeStore(Generic[T]):
    """Keys, items and indices under one lock.

    Items are whatever the owner puts in. `to_view` makes of an item what index functions and readers see.

    Args:
        indexers: index functions by name.
        to_view: item -> what readers see; None for the item itself.
        timed: wraps index functions, so that their calls are timed.
    """

    def __init__(
        self,
        indexers: Indexers[T] | None = None,
        to_view: Callable[[Any], T] | None = None,
        timed: Timed = untimed,
    ) -> None:
        self._to_view = to_view
        self._timed = timed
        self._lock = threading.RLock()
        self._items: dict[str, Any] = {}
        self._indices: Indices[T] = {}
        #: Indices that are being filled: kept up to date as the others are, and not to be asked yet.
        self._unfinished: Indices[T] = {}
        #: Both kinds, for the writer; another list whenever an index is added or replaced, by which `put` notices it.
        self.every_index: list[Index[T]] = []
        self.resource_version = ""
        #: Given the items when the store is gone.
        self.on_release: Callable[[dict[str, Any]], None] | None = None
        if indexers:
            self.add_indexers(indexers)

    def __del__(self) -> None:
        if self.on_release is not None:
            self.on_release(self._items)

    # Writing.

    def put(self, key: str, item: Any, announce: Callable[[Any], Any] | None = None, news: Any = None) -> Any:
        """Adds or replaces an item; returns the item that was there, None if none was.

        Args:
            key: of the item.
            item: to put in.
            announce: called with `news` as a part of the change, within the lock: if it raises, nothing has changed.
            news: for `announce`.

        Raises:
            MemoryError: nothing has changed.
        """
        kept = self.every_index
        items = self._items
        settled = key in items and isinstance(item, Record)
        values = []
        for index in kept:
            if not (settled and index.settles_records):
                values.append((index, index.evaluate(key, item)))
        if settled and not values:
            with self._lock:
                old = items.get(key)
                if old is not None and kept is self.every_index:
                    if announce is not None:
                        announce(news)
                    items[key] = item  # takes the place of another, for which memory is there
                    return old
            return self.put(key, item, announce, news)  # another thread came between
        with self._lock:
            if kept is not self.every_index:
                return self.put(key, item, announce, news)
            old = items.get(key)
            items[key] = item
            begun: Begun = []
            try:
                for index, new in values:
                    before = index.add(key, item, new)
                    if before is not None:
                        begun.append((index, before, new))
                if announce is not None:
                    announce(news)
            except BaseException:
                self._undo(key, old, begun)
                raise
            for index, before, new in begun:
                index.settle(key, before, new)
        return old

    def _undo(self, key: str, old: Any, begun: Begun) -> None:
        """Takes back a change that was begun, with no need for memory."""
        for index, before, new in begun:
            index.revert(key, before, new)
        if old is None:
            self._items.pop(key, None)
        else:
            self._items[key] = old

    def exchange(self, key: str, old: Any, new: Any) -> None:
        """Puts another form of the same object in its place, if it is still there; its indices stay as they are."""
        with self._lock:
            if self._items.get(key) is old:
                self._items[key] = new

    def delete(self, key: str, announce: Callable[[Any], Any] | None = None, news: Any = None) -> Any:
        """Removes an item; returns it, None if there was none.

        Args:
            key: of the item.
            announce: as for `put`; not called if there is no such item.
            news: for `announce`.
        """
        with self._lock:
            old = self._items.get(key)
            if old is not None:
                indices = self.every_index
                if announce is not None:
                    announce(news)
                for index in indices:
                    index.remove(key, old)
                del self._items[key]
        return old

    def replace(self, items: Mapping[str, Any]) -> None:
        """These are all items there are; what is not among them is gone."""
        built = [
            (indices, {name: self._built(name, index.function, items.items()) for name, index in indices.items()})
            for indices in (self._indices, self._unfinished)
        ]
        taken = dict(items)
        with self._lock:
            self._items = taken
            for indices, rebuilt in built:
                indices.update(rebuilt)
            self.renew()

    def renew(self) -> None:
        """Note, within the lock, that an index was added or replaced, or the items were."""
        self.every_index = [*self._indices.values(), *self._unfinished.values()]

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Adds index functions; what is in the store is indexed at once.

        Raises:
            UsageError: a name is taken, or a function is none; nothing is changed then.
        """
        for _ in self.adding_indexers(indexers):
            pass

    def adding_indexers(self, indexers: Indexers[T]) -> Generator[None]:
        """The same, one object of the store a step; whoever closes the generator early has added nothing.

        Raises:
            UsageError: as `add_indexers`, at the first step.
        """
        if taken := sorted(name for name in indexers if name in self._indices or name in self._unfinished):
            raise UsageError(f"index {', '.join(taken)} exists already; choose another name")
        made = {
            name: Index(name, function, self._to_view, self._timed)
            for name, function in index_functions(indexers).items()
        }
        with self._lock:
            self._unfinished.update(made)
            self.renew()
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
                self.renew()

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

    def _built(self, name: str, function: IndexFunc[T], items: Iterable[tuple[str, Any]]) -> Index[T]:
        index = Index(name, function, self._to_view, self._timed)
        for key, item in items:
            index.put(key, item, index.evaluate(key, item))
        return index

    # Reading.

    def item(self, key: str) -> Any:
        """The item under a key as it is, None if there is none."""
        return self._items.get(key)

    def snapshot(self) -> list[tuple[str, Any]]:
        """All keys and items, as they are at this moment."""
        with self._lock:
            return list(self._items.items())

    def items(self) -> list[Any]:
        """All items, as they are at this moment."""
        with self._lock:
            return list(self._items.values())

    def all_keys(self) -> list[str]:
        """All keys."""
        with self._lock:
            return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def indexers(self) -> dict[str, IndexFunc[T]]:
        """The index functions by name: a copy."""
        with self._lock:
            return {name: index.function for name, index in self._indices.items()}

    def failing(self) -> dict[str, tuple[IndexFunc[T], list[str], int]]:
        """The indices whose functions raised for objects in their present versions.

        Returns:
            By the name of the index: its function, the keys of the first few of these objects, and how many there are.
        """
        with self._lock:
            return {
                name: (index.function, list(islice(index.failing, _NAMED)), len(index.failing))
                for name, index in self._indices.items()
                if index.failing
            }

    def any_failing(self) -> bool:
        """Whether an index function raised for any object in its present version. For the writer's thread alone."""
        return any(index.failing for index in self._indices.values())

    def indexed(self, name: str, value: str) -> list[Any]:
        """The items that have a value in an index.

        Raises:
            IndexNotFound: no such index.
        """
        with self._lock:
            items = self._items
            return [items[key] for key in self._index(name).keys(value)]

    def indexed_keys(self, name: str, value: str) -> list[str]:
        """The keys of the items that have a value in an index, sorted.

        Raises:
            IndexNotFound: no such index.
        """
        with self._lock:
            return sorted(self._index(name).keys(value))

    def sharing(self, name: str, item: Any) -> list[Any]:
        """The items that share any value of an index with this one, each once.

        Args:
            name: of the index.
            item: as it is stored, or as readers see it.

        Raises:
            IndexNotFound: no such index.
        """
        values = self._index(name).evaluate("the object asked for", item, seen=not isinstance(item, Record))
        with self._lock:
            index, items = self._index(name), self._items
            found = dict.fromkeys(key for value in values for key in index.keys(value))
            return [items[key] for key in found]

    def indexed_by_path(self, wanted: Iterable[tuple[tuple[str, ...], str]], namespace: str = "") -> list[Any] | None:
        """The items that have any of these values at their paths, by the index that knows the fewest of them.

        Returns:
            A superset of the items that have them all (in the namespace, if one is given); None if no index helps.
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
        """The values in an index; none if there is no such index (STO-05)."""
        with self._lock:
            index = self._indices.get(name)
            return index.values() if index is not None else []

    def _index(self, name: str) -> Index[T]:
        try:
            return self._indices[name]
        except KeyError:
            known = ", ".join(sorted(self._indices)) or "none"
            raise IndexNotFound(f"index {name!r} does not exist (there is: {known}); see add_indexers") from None
