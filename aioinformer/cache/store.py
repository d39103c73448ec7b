"""What readers and writers see of a store: objects by key, by index, or all of them. Readers may be in any thread.

What holds for every reader at any time is said of `thread_safe_store`, which keeps the objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from aioinformer.cache.thread_safe_store import NAMESPACE_INDEX, Indices, ThreadSafeStore
from aioinformer.errors import USER_ERRORS, KeyFuncError
from aioinformer.functions import Timed, untimed
from aioinformer.resources.keys import (
    DeletedFinalStateUnknown,
    ExplicitKey,
    deletion_handling_meta_namespace_key_func,
    metadata_field,
    metadata_of,
)

if TYPE_CHECKING:
    import builtins

    from aioinformer.cache.indices import Indexers, IndexFunc

__all__ = ["NAMESPACE_INDEX", "Indexer", "Indices", "KeyFunc", "Store", "ThreadSafeStore"]

T = TypeVar("T")

KeyFunc: TypeAlias = Callable[[Any], str]


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


class Indexer(Generic[T]):
    """A store with indices: what informers keep, and what can be filled by hand.

    Reads are plain calls, never wait, may come from any thread, and are each answered from one state. Objects that
    informers keep are immutable; what is put in by hand is handed out as it is.

    Args:
        key_func: object -> key.
        indexers: index functions by name: object -> values.
        to_view: item as stored -> what readers see (for informers; by default the item itself).
        record_of: what is put in by hand -> item as stored (for informers; by default the item itself).
        timed: wraps index functions, so that their calls are timed (for informers).
    """

    def __init__(
        self,
        key_func: KeyFunc = deletion_handling_meta_namespace_key_func,
        indexers: Indexers[T] | None = None,
        *,
        to_view: Callable[[Any], T] | None = None,
        record_of: Callable[[Any], Any] = lambda obj: obj,
        timed: Timed = untimed,
    ) -> None:
        self._key_func = key_func
        self._to_view = to_view
        self._record_of = record_of
        self.store: ThreadSafeStore[T] = ThreadSafeStore(indexers, to_view, timed)

    # Writing. An informer's store is written by the informer alone.

    def add(self, obj: Any) -> None:
        """Puts an object in; one with the same key is replaced.

        Raises:
            KeyFuncError: the object has no key.
        """
        self.store.put(self._key(obj), self._record_of(obj))
        self._advance(obj)

    def update(self, obj: Any) -> None:
        """The same as `add` (STO-01)."""
        self.add(obj)

    def delete(self, obj: Any) -> None:
        """Takes an object out, by its key; a tombstone will do. Nothing happens if it is not there."""
        self.store.delete(self._key(obj))
        self._advance(obj)

    def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """These are all objects there are, as of this version."""
        self.store.replace({self._key(obj): self._record_of(obj) for obj in objects})
        self.store.resource_version = resource_version

    def resync(self) -> None:
        """Nothing: a store has nothing to be brought in line with (STO-01)."""

    def bookmark(self, resource_version: str) -> None:
        """Everything up to this version has been put in."""
        if resource_version:
            self.store.resource_version = resource_version

    # Reading.

    def list(self) -> builtins.list[T]:
        """All objects, in no order."""
        return self.to_views(self.store.items())

    def list_keys(self) -> builtins.list[str]:
        """All keys, in no order."""
        return self.store.all_keys()

    def get(self, obj: Any) -> T | None:
        """The object with the key of this one, None if there is none."""
        return self.get_by_key(self._key(obj))

    def get_by_key(self, key: str) -> T | None:
        """The object under a key, None if there is none."""
        item = self.store.item(key)
        return self._to_view(item) if item is not None and self._to_view else cast("T | None", item)

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.store.item(key) is not None

    def __repr__(self) -> str:
        indices = ", ".join(sorted(self.get_indexers())) or "none"
        return f"<{type(self).__name__}, {len(self)} objects, indices: {indices}>"

    def __iter__(self) -> Iterator[T]:
        return iter(self.list())

    def last_store_sync_resource_version(self) -> str:
        """The version up to which everything has been put in; "" if that is not known (STO-13)."""
        return self.store.resource_version

    def index(self, name: str, obj: Any) -> builtins.list[T]:
        """Objects that share any value of the index `name` with this one.

        Raises:
            IndexNotFound: no such index.
        """
        return self.to_views(self.store.sharing(name, obj))

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Sorted keys of the objects that have `value` in the index `name`.

        Raises:
            IndexNotFound: no such index.
        """
        return self.store.indexed_keys(name, value)

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """Objects that have `value` in the index `name`; costs what it returns, not what the store holds.

        Raises:
            IndexNotFound: no such index.
        """
        return self.to_views(self.store.indexed(name, value))

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """All values in the index `name`; empty if there is no such index (STO-05)."""
        return self.store.values(name)

    def get_indexers(self) -> dict[str, IndexFunc[T]]:
        """The index functions by name: a copy, which is the caller's."""
        return self.store.indexers()

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Adds index functions; objects that are there are indexed before this returns (STO-09).

        Raises:
            UsageError: a name is taken; nothing is changed then.
        """
        self.store.add_indexers(indexers)

    def to_views(self, items: Iterable[Any]) -> builtins.list[T]:
        """What readers see of items as they are stored."""
        to_view = self._to_view
        return [to_view(item) for item in items] if to_view else list(items)

    def _key(self, obj: Any) -> str:
        if isinstance(obj, ExplicitKey):
            return str(obj)
        if isinstance(obj, DeletedFinalStateUnknown):
            return obj.key
        try:
            return self._key_func(obj)
        except KeyFuncError:
            raise
        except USER_ERRORS as error:
            raise KeyFuncError(f"key_func raised {type(error).__name__} for {type(obj).__name__}") from error

    def _advance(self, obj: Any) -> None:
        try:
            version = metadata_field(metadata_of(obj), "resource_version", "resourceVersion")
        except KeyFuncError:
            return
        if isinstance(version, str) and version:
            self.store.resource_version = version
