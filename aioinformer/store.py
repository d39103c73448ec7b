"""The indexed, in-memory copy of a collection, readable from any thread.

What holds at any time, for every reader:

- One call is answered from one state: nothing is seen half changed (ARC-08).
- An object is in the store and in all its indices, or in none of them.
- What an index function said of an object is kept with it, so that the function is called once a version, and a
  function that changes its mind leaves nothing behind in the index.
- An index function that raises costs its object the place in that index, a log line, and nothing else.

Index functions are called outside the lock, so that they may read the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from aioinformer.deltas import DeletedFinalStateUnknown
from aioinformer.errors import IndexNotFound, KeyFuncError, UsageError
from aioinformer.indices import Index, Indexers, IndexFunc, index_functions
from aioinformer.keys import ExplicitKey, deletion_handling_meta_namespace_key_func
from aioinformer.keys import metadata_field as _field
from aioinformer.keys import metadata_of as _metadata_of
from aioinformer.objects import Record

if TYPE_CHECKING:
    import builtins

T = TypeVar("T")

#: The name of the index by namespace.
NAMESPACE_INDEX = "namespace"

KeyFunc: TypeAlias = Callable[[Any], str]
#: index name -> index
Indices: TypeAlias = dict[str, Index[T]]


class Store(Protocol[T]):
    """What readers may rely on in any store."""

    def list(self) -> builtins.list[T]:
        """All objects, in no order."""
        ...

    def list_keys(self) -> builtins.list[str]:
        """All keys, in no order."""
        ...

    def get(self, obj: Any) -> T | None:
        """The object with the key of this one, None if there is none."""
        ...

    def get_by_key(self, key: str) -> T | None:
        """The object under a key, None if there is none."""
        ...


class ThreadSafeStore(Generic[T]):
    """Keys, items and indices under one lock.

    Items are whatever the owner puts in. `present` makes of an item what index functions and readers see.

    Args:
        indexers: index functions by name.
        present: item -> what readers see; None for the item itself.
    """

    def __init__(self, indexers: Indexers[T] | None = None, present: Callable[[Any], T] | None = None) -> None:
        self._present = present
        self._lock = threading.Lock()
        self._items: dict[str, Any] = {}
        self._indices: Indices[T] = {}
        #: Indices that are being filled: kept up to date as the others are, and not to be asked yet.
        self._unfinished: Indices[T] = {}
        self.resource_version = ""
        #: Given the items when the store is gone.
        self.on_release: Callable[[dict[str, Any]], None] | None = None
        if indexers:
            self.add_indexers(indexers)

    def __del__(self) -> None:
        if self.on_release is not None:
            self.on_release(self._items)

    # Writing.

    def put(self, key: str, item: Any) -> Any:
        """Adds or replaces an item; returns the item that was there, None if none was."""
        known = key in self._items
        values = [
            (index, index.evaluate(key, item))
            for index in (*self._indices.values(), *self._unfinished.values())
            if not (known and index.is_settled(item))
        ]
        with self._lock:
            old = self._items.get(key)
            self._items[key] = item
            for index, new in values:
                index.put(key, item, new)
        return old

    def exchange(self, key: str, old: Any, new: Any) -> None:
        """Puts another form of the same object in its place, if it is still there; its indices stay as they are."""
        with self._lock:
            if self._items.get(key) is old:
                self._items[key] = new

    def delete(self, key: str) -> Any:
        """Removes an item; returns it, None if there was none."""
        with self._lock:
            old = self._items.pop(key, None)
            if old is not None:
                for index in (*self._indices.values(), *self._unfinished.values()):
                    index.remove(key, old)
        return old

    def replace(self, items: Mapping[str, Any]) -> None:
        """These are all items there are; what is not among them is gone."""
        built = [
            (indices, {name: self._built(name, index.function, items.items()) for name, index in indices.items()})
            for indices in (self._indices, self._unfinished)
        ]
        with self._lock:
            self._items = dict(items)
            for indices, rebuilt in built:
                indices.update(rebuilt)

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
        made = {name: Index(name, function, self._present) for name, function in index_functions(indexers).items()}
        self._unfinished.update(made)
        try:
            for key in self.all_keys():
                self._index_again(key, made)
                yield
            with self._lock:
                self._indices.update((name, self._unfinished[name]) for name in made)
        finally:
            for name in made:
                del self._unfinished[name]

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
        index = Index(name, function, self._present)
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


class Indexer(Generic[T]):
    """A store with indices: what informers keep, and what can be filled by hand.

    Reads are plain calls, never wait, may come from any thread, and are each answered from one state. Objects that
    informers keep are immutable; what is put in by hand is handed out as it is.

    Args:
        key_func: object -> key.
        indexers: index functions by name: object -> values.
        present: item as stored -> what readers see (for informers; by default the item itself).
    """

    def __init__(
        self,
        key_func: KeyFunc = deletion_handling_meta_namespace_key_func,
        indexers: Indexers[T] | None = None,
        *,
        present: Callable[[Any], T] | None = None,
    ) -> None:
        self._key_func = key_func
        self._present = present
        self.cells: ThreadSafeStore[T] = ThreadSafeStore(indexers, present)

    # Writing. An informer's store is written by the informer alone.

    def add(self, obj: Any) -> None:
        """Puts an object in; one with the same key is replaced.

        Raises:
            KeyFuncError: the object has no key.
        """
        self.cells.put(self._key(obj), obj)
        self._advance(obj)

    def update(self, obj: Any) -> None:
        """The same as `add` (STO-01)."""
        self.add(obj)

    def delete(self, obj: Any) -> None:
        """Takes an object out, by its key; a tombstone will do. Nothing happens if it is not there."""
        self.cells.delete(self._key(obj))
        self._advance(obj)

    def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """These are all objects there are, as of this version."""
        self.cells.replace({self._key(obj): obj for obj in objects})
        self.cells.resource_version = resource_version

    def resync(self) -> None:
        """Nothing: a store has nothing to be brought in line with (STO-01)."""

    def bookmark(self, resource_version: str) -> None:
        """Everything up to this version has been put in."""
        if resource_version:
            self.cells.resource_version = resource_version

    # Reading.

    def list(self) -> builtins.list[T]:
        """All objects, in no order."""
        return self.presented(self.cells.items())

    def list_keys(self) -> builtins.list[str]:
        """All keys, in no order."""
        return self.cells.all_keys()

    def get(self, obj: Any) -> T | None:
        """The object with the key of this one, None if there is none."""
        return self.get_by_key(self._key(obj))

    def get_by_key(self, key: str) -> T | None:
        """The object under a key, None if there is none."""
        item = self.cells.item(key)
        return self._present(item) if item is not None and self._present else cast("T | None", item)

    def __len__(self) -> int:
        return len(self.cells)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.cells.item(key) is not None

    def __iter__(self) -> Iterator[T]:
        return iter(self.list())

    def last_store_sync_resource_version(self) -> str:
        """The version up to which everything has been put in; "" if that is not known (STO-13)."""
        return self.cells.resource_version

    def index(self, name: str, obj: Any) -> builtins.list[T]:
        """Objects that share any value of the index `name` with this one.

        Raises:
            IndexNotFound: no such index.
        """
        return self.presented(self.cells.sharing(name, obj))

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Sorted keys of the objects that have `value` in the index `name`.

        Raises:
            IndexNotFound: no such index.
        """
        return self.cells.indexed_keys(name, value)

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """Objects that have `value` in the index `name`; costs what it returns, not what the store holds.

        Raises:
            IndexNotFound: no such index.
        """
        return self.presented(self.cells.indexed(name, value))

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """All values in the index `name`; empty if there is no such index (STO-05)."""
        return self.cells.values(name)

    def get_indexers(self) -> dict[str, IndexFunc[T]]:
        """The index functions by name: a copy, which is the caller's."""
        return self.cells.indexers()

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Adds index functions; objects that are there are indexed before this returns (STO-09).

        Raises:
            UsageError: a name is taken; nothing is changed then.
        """
        self.cells.add_indexers(indexers)

    def presented(self, items: Iterable[Any]) -> builtins.list[T]:
        """What readers see of items as they are stored."""
        present = self._present
        return [present(item) for item in items] if present else list(items)

    def _key(self, obj: Any) -> str:
        if isinstance(obj, ExplicitKey):
            return str(obj)
        if isinstance(obj, DeletedFinalStateUnknown):
            return obj.key
        try:
            return self._key_func(obj)
        except KeyFuncError:
            raise
        except Exception as error:
            raise KeyFuncError(f"key_func raised {type(error).__name__} for {type(obj).__name__}") from error

    def _advance(self, obj: Any) -> None:
        try:
            version = _field(_metadata_of(obj), "resource_version", "resourceVersion")
        except KeyFuncError:
            return
        if isinstance(version, str) and version:
            self.cells.resource_version = version
