"""`MutationCache`: read your own writes before the informer has received them.

The rules are those of client-go's MutationCache:

- `mutation` records a write beside the store. Reads return it while the store's version is older; as soon as the store
  has this version or a newer one, the write is dropped.
- Objects that are not in the store do not exist; with `include_adds`, objects that you have created do.
- A late `mutation` must not restore a deleted object. So the cache is also a handler: a newer version drops the write,
  and a deletion leaves a tombstone, which refuses writes of the deleted object.

Versions are compared as numbers. `mutation` refuses an object whose version is not a number; if the version in the
store is not a number, the store's object is returned.
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
    """Reads the newer of your own write and the store's object. Any thread may use it.

    Register it as a handler of the informer, too: `informer.add_event_handler(cache)`. Otherwise, reads may return an
    object that was deleted meanwhile, until its write expires.

    Args:
        store: the informer's indexer.
        include_adds: whether reads also find objects that are not in the store yet.
        ttl: how long to keep a write, in seconds.
        max_size: how many writes to keep; the least recently used one is dropped first.
        key_func: object -> key.
        clock: returns monotonic seconds.
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
            raise UsageError(f"max_size={max_size} must be at least 1")
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
        """Return the newest known version of an object; None if there is no such object."""
        stored = self._store.get_by_key(key)
        with self._lock:
            return self._newest(key, stored)

    def by_index(self, name: str, value: str) -> list[T]:
        """Return the newest known versions of the objects that have `value` in the index `name` of the store.

        Your writes are indexed by their own values.

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
        """Record a write: the object as the server returned it. Ignored if a newer version is known.

        Raises:
            KeyFuncError: the object has no key.
            UsageError: its version is not a number.
        """
        key = self._key_func(obj)
        version, uid = _identity(obj)
        if version < 0:
            raise UsageError(
                f"{key}: metadata.resourceVersion is not a number; pass the object that the server has returned"
            )
        with self._lock:
            known = self._entry(key)
            if known is not None and known.version > version:
                return
            if known is not None and known.deleted and (known.version == version or known.uid == uid):
                return
            self._put(key, obj, version, uid)

    # The methods of a handler.

    def on_add(self, obj: T) -> None:
        """Drop the write of an object if the store has the same or a newer version."""
        key = self._key_func(obj)
        version, _ = _identity(obj)
        with self._lock:
            known = self._entry(key)
            if known is not None and version >= known.version:
                del self._entries[key]

    def on_update(self, old: T, new: T) -> None:
        """Drop the write of an object if the store has the same or a newer version."""
        self.on_add(new)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[T]) -> None:
        """Replace the write of an object by a tombstone, which refuses late writes."""
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        if last is None:
            return
        key = self._key_func(last)
        version, uid = _identity(last)
        with self._lock:
            known = self._entry(key)
            if known is not None and version < known.version and uid != known.uid:
                return  # the write is of a later object with the same name
            self._put(key, last, max(version, known.version if known is not None else version), uid, deleted=True)

    # Call these with the lock held.

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
            return known.obj  # type: ignore[no-any-return]
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
    """Return the version as a number (-1 if it is not one), and the uid."""
    metadata = metadata_of(obj)
    version = metadata_field(metadata, "resource_version", "resourceVersion")
    return version_number(version or ""), metadata_field(metadata, "uid", "uid") or ""
