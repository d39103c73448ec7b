"""The interface of stores: objects by key, by index, or all of them. Any thread may read.

`thread_safe_store` contains the objects and states the guarantees for readers.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from aioinformer.cache.indices import Indexers, IndexFunc
from aioinformer.cache.thread_safe_store import NAMESPACE_INDEX, Indices, ThreadSafeStore
from aioinformer.errors import USER_ERRORS, KeyFuncError
from aioinformer.functions import LogError, Timed, log_each, untimed
from aioinformer.resources.keys import (
    DeletedFinalStateUnknown,
    ExplicitKey,
    deletion_handling_meta_namespace_key_func,
    metadata_field,
    metadata_of,
)

__all__ = ["NAMESPACE_INDEX", "Indexer", "Indices", "KeyFunc", "Store", "ThreadSafeStore"]

T = TypeVar("T")

KeyFunc: TypeAlias = Callable[[Any], str]


class Store(Protocol[T]):
    """The methods that every store has."""

    def list(self) -> builtins.list[T]:
        """Return all objects, in no order."""

    def list_keys(self) -> builtins.list[str]:
        """Return all keys, in no order."""

    def get(self, obj: Any) -> T | None:
        """Return the object with the same key as this one, or None."""

    def get_by_key(self, key: str) -> T | None:
        """Return the object of a key, or None."""


class Indexer(Generic[T]):
    """A store with indices. Informers have one each; you can also fill one yourself.

    Reads are plain calls that never wait. Any thread may read, and each call is answered from one state. The objects of
    informers are immutable. Objects that you add yourself are returned as they are.

    Args:
        key_func: object -> key.
        indexers: index functions by name: object -> values.
        to_view: stored item -> what readers see (for informers; by default, the item itself).
        record_of: object that a user adds -> stored item (for informers; by default, the object itself).
        timed: wraps index functions, to time their calls (for informers).
        log_error: logs the errors of index functions (for informers).
    """

    def __init__(
        self,
        key_func: KeyFunc = deletion_handling_meta_namespace_key_func,
        indexers: Indexers[T] | None = None,
        *,
        to_view: Callable[[Any], T] | None = None,
        record_of: Callable[[Any], Any] = lambda obj: obj,
        timed: Timed = untimed,
        log_error: LogError = log_each,
    ) -> None:
        self._key_func = key_func
        self._to_view = to_view
        self._record_of = record_of
        self.store: ThreadSafeStore[T] = ThreadSafeStore(indexers, to_view, timed, log_error)

    # Writing. An informer's store is written by the informer alone.

    def add(self, obj: Any) -> None:
        """Add an object, or replace the one with the same key.

        Raises:
            KeyFuncError: the object has no key.
        """
        self.store.put(self._key(obj), self._record_of(obj))
        self._advance(obj)

    def update(self, obj: Any) -> None:
        """Do the same as `add`.

        Raises:
            KeyFuncError: the object has no key.
        """
        self.add(obj)

    def delete(self, obj: Any) -> None:
        """Delete the object with the key of this object or tombstone. Do nothing if there is none."""
        self.store.delete(self._key(obj))
        self._advance(obj)

    def replace(self, objects: Iterable[Any], resource_version: str = "") -> None:
        """Replace all objects with these, as of this version."""
        self.store.replace({self._key(obj): self._record_of(obj) for obj in objects})
        self.store.resource_version = resource_version

    def resync(self) -> None:
        """Do nothing; client-go's stores have this method."""

    def bookmark(self, resource_version: str) -> None:
        """Note that the store contains everything up to this version."""
        if resource_version:
            self.store.resource_version = resource_version

    # Reading.

    def list(self) -> builtins.list[T]:
        """Return all objects, in no order."""
        return self.to_views(self.store.items())

    def list_keys(self) -> builtins.list[str]:
        """Return all keys, in no order."""
        return self.store.all_keys()

    def get(self, obj: Any) -> T | None:
        """Return the object with the same key as this one, or None."""
        return self.get_by_key(self._key(obj))

    def get_by_key(self, key: str) -> T | None:
        """Return the object of a key, or None."""
        item = self.store.item(key)
        if item is not None and self._to_view:
            return self._to_view(item)
        return cast("T | None", item)

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
        """Return the version up to which the store contains everything; "" if that is unknown."""
        return self.store.resource_version

    def index(self, name: str, obj: Any) -> builtins.list[T]:
        """Return the objects that share any value of the index `name` with this one.

        Raises:
            IndexNotFound: no such index.
        """
        return self.to_views(self.store.sharing(name, obj))

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Return the sorted keys of the objects that have `value` in the index `name`.

        Raises:
            IndexNotFound: no such index.
        """
        return self.store.indexed_keys(name, value)

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """Return the objects that have `value` in the index `name`; the cost depends on their number alone.

        Raises:
            IndexNotFound: no such index.
        """
        return self.to_views(self.store.indexed(name, value))

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """Return all values in the index `name`; empty if there is no such index."""
        return self.store.values(name)

    def get_indexers(self) -> dict[str, IndexFunc[T]]:
        """Return the index functions by name, as a copy."""
        return self.store.indexers()

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add index functions; all objects are indexed when this returns.

        Raises:
            UsageError: a name is taken; nothing has changed then.
        """
        self.store.add_indexers(indexers)

    def to_views(self, items: Iterable[Any]) -> builtins.list[T]:
        """Return what readers see of stored items."""
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
