"""MutationCache: one's own writes, read back before the informer has seen them.

The rules (client-go's, MUT-01 to MUT-05):

- A write that is told of is kept for a while, beside the store. Whoever reads gets it as long as the store is older;
  as soon as the store is not, the write is dropped.
- What the store does not have does not exist, unless `include_adds`: then an object that was created is there, too.
- Writes that arrive late must not bring back what is gone. So what a handler is told of (the cache is a handler) is
  remembered: a newer object drops the write, and a deletion stays as a tombstone, which refuses writes of the object
  that was deleted.

Versions are compared as numbers. An object whose version is none cannot be told of; if the store's is none, the store
is right.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from aioinformer.errors import UsageError
from aioinformer.resources.keys import DeletedFinalStateUnknown, meta_namespace_key_func, metadata_field, metadata_of
from aioinformer.resources.versions import version_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.store import Indexer

T = TypeVar("T")


class _Entry(NamedTuple):
    obj: Any
    version: int
    uid: str
    expires: float
    deleted: bool


class MutationCache(Generic[T]):
    """Own writes over the store of an informer; the newer one is read. May be used from any thread.

    Register it as a handler of the informer, too: `informer.add_event_handler(cache)`. It works without, but an object
    that was deleted meanwhile may then be seen until the write is forgotten.

    Args:
        store: of the informer.
        include_adds: objects that the store does not have yet are found, too.
        ttl: so many seconds a write is kept at most.
        max_size: so many writes are kept at most; those that were not used for the longest time go first.
        key_func: object -> key.
        clock: seconds from any beginning.
    """

    def __init__(
        self,
        store: Indexer[T],
        *,
        include_adds: bool = False,
        ttl: float = 300.0,
        max_size: int = 100,
        key_func: Callable[[Any], str] = meta_namespace_key_func,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if ttl <= 0:
            raise UsageError(f"ttl={ttl} must be a positive number of seconds")
        if max_size < 1:
            raise UsageError(f"max_size={max_size} must be 1 at least")
        self._store = store
        self._include_adds = include_adds
        self._ttl = ttl
        self._max_size = max_size
        self._key_func = key_func
        self._clock = clock
        self._lock = threading.RLock()
        #: Least recently used first.
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    # Reading.

    def get_by_key(self, key: str) -> T | None:
        """The newest version that is known, None if there is no such object."""
        stored = self._store.get_by_key(key)
        with self._lock:
            return self._newest(key, stored)

    def by_index(self, name: str, value: str) -> list[T]:
        """Objects that have `value` in the index `name` of the store, in the newest version that is known.

        A write counts with the values that it has, wherever the store has its object.

        Raises:
            IndexNotFound: the store has no such index.
        """
        function = self._store.get_indexers().get(name)
        stored = {self._key_func(obj): obj for obj in self._store.by_index(name, value)}
        with self._lock:
            newest = {key: self._newest(key, obj) for key, obj in stored.items()}
            elsewhere = [key for key in self._entries if key not in stored]
        newest |= {key: self.get_by_key(key) for key in elsewhere}
        return [
            obj
            for key, obj in newest.items()
            if obj is not None and (obj is stored.get(key) or (function is not None and value in (function(obj) or ())))
        ]

    # Writing.

    def mutation(self, obj: T) -> None:
        """An object was written: this is what the server answered. Ignored if something newer is known (MUT-03).

        Raises:
            KeyFuncError: it has no key.
            UsageError: its version is no number.
        """
        key = self._key_func(obj)
        version, uid = _identity(obj)
        if version < 0:
            raise UsageError(f"{key}: metadata.resourceVersion is no number; give the object as the server answered it")
        with self._lock:
            known = self._entry(key)
            if known is not None and known.version > version:
                return
            if known is not None and known.deleted and (known.version == version or known.uid == uid):
                return
            self._put(key, obj, version, uid)

    # As a handler (MUT-04).

    def on_add(self, obj: T) -> None:
        """The store has this object now."""
        key = self._key_func(obj)
        version, _ = _identity(obj)
        with self._lock:
            known = self._entry(key)
            if known is not None and version >= known.version:
                del self._entries[key]

    def on_update(self, old: T, new: T) -> None:
        """The store has this version now."""
        self.on_add(new)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """The store does not have this object any more."""
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        if last is None:
            return
        key = self._key_func(last)
        version, uid = _identity(last)
        with self._lock:
            known = self._entry(key)
            if known is not None and version < known.version and uid != known.uid:
                return  # of another object of that name, which came after it
            self._put(key, last, max(version, known.version if known is not None else version), uid, deleted=True)

    # Within the lock.

    def _newest(self, key: str, stored: T | None) -> T | None:
        known = self._entry(key)
        if known is None:
            return stored
        if stored is None:
            return known.obj if self._include_adds and not known.deleted else None
        if known.deleted:
            return stored
        if known.version > _identity(stored)[0] >= 0:
            self._entries.move_to_end(key)
            return known.obj  # type: ignore[no-any-return]  # what was put in
        del self._entries[key]
        return stored

    def _entry(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is not None and self._clock() >= entry.expires:
            del self._entries[key]
            return None
        return entry

    def _put(self, key: str, obj: Any, version: int, uid: str, *, deleted: bool = False) -> None:
        self._entries[key] = _Entry(obj, version, uid, self._clock() + self._ttl, deleted)
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_size:
            self._entries.popitem(last=False)


def _identity(obj: Any) -> tuple[int, str]:
    """The version as a number, -1 if it is none, and the uid."""
    metadata = metadata_of(obj)
    version = metadata_field(metadata, "resource_version", "resourceVersion")
    return version_number(version or ""), metadata_field(metadata, "uid", "uid") or ""
