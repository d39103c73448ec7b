"""`ExpirationStore`: a store whose entries expire, like client-go's ExpirationCache."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimestampedEntry(Generic[T]):
    """An object, and when it was stored, in seconds by the store's clock."""

    obj: T
    timestamp: float


class ExpirationPolicy(Protocol):
    """Decides when entries expire."""

    def is_expired(self, entry: TimestampedEntry[Any], now: float) -> bool: ...


@dataclass(frozen=True, slots=True)
class TTLPolicy:
    """Entries expire once they are older than a time to live.

    Attributes:
        ttl: in seconds; 0 or less: entries never expire.
    """

    ttl: float

    def is_expired(self, entry: TimestampedEntry[Any], now: float) -> bool:
        """Return whether the entry is older than the time to live (and not exactly as old)."""
        return 0 < self.ttl < now - entry.timestamp


class ExpirationStore(Generic[T]):
    """A store that hides expired entries from reads, and drops them then.

    Every write renews its entry. There is no timer: entries that are never read stay. Any thread may use it.

    Args:
        policy: decides when entries expire.
        key_func: object -> key.
        clock: returns monotonic seconds.
    """

    def __init__(
        self,
        policy: ExpirationPolicy,
        key_func: Callable[[Any], str] = deletion_handling_meta_namespace_key_func,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._policy = policy
        self._key_func = key_func
        self._clock = clock
        self._lock = threading.RLock()
        self._entries: dict[str, TimestampedEntry[T]] = {}

    def add(self, obj: T) -> None:
        """Add an object, or replace and renew the one with the same key.

        Raises:
            KeyFuncError: the object has no key.
        """
        key = self._key_func(obj)
        with self._lock:
            self._entries[key] = TimestampedEntry(obj, self._clock())

    def update(self, obj: T) -> None:
        """Do the same as `add`.

        Raises:
            KeyFuncError: the object has no key.
        """
        self.add(obj)

    def delete(self, obj: Any) -> None:
        """Remove an object, or the one that a tombstone names, if it is there."""
        key = self._key_func(obj)
        with self._lock:
            self._entries.pop(key, None)

    def replace(self, objects: Iterable[T], resource_version: str = "") -> None:
        """Replace all objects; the new ones begin a new lifetime."""
        now = self._clock()
        entries = {self._key_func(obj): TimestampedEntry(obj, now) for obj in objects}
        with self._lock:
            self._entries = entries

    def resync(self) -> None:
        """Do nothing, like client-go's stores."""

    def list(self) -> builtins.list[T]:
        """Return all objects that have not expired, in no order; drop the others."""
        with self._lock:
            return [entry.obj for key in list(self._entries) if (entry := self._unexpired(key)) is not None]

    def list_keys(self) -> builtins.list[str]:
        """Return all keys, including those of expired entries that were not read since."""
        with self._lock:
            return list(self._entries)

    def get(self, obj: Any) -> T | None:
        """Return the object with the same key as this one; None if there is none, or it has expired."""
        return self.get_by_key(self._key_func(obj))

    def get_by_key(self, key: str) -> T | None:
        """Return the object with a key; None if there is none, or it has expired."""
        with self._lock:
            entry = self._unexpired(key)
        return entry.obj if entry is not None else None

    def __len__(self) -> int:
        return len(self._entries)

    def _unexpired(self, key: str) -> TimestampedEntry[T] | None:
        entry = self._entries.get(key)
        if entry is not None and self._policy.is_expired(entry, self._clock()):
            del self._entries[key]
            return None
        return entry


def ttl_store(
    ttl: float, key_func: Callable[[Any], str] = deletion_handling_meta_namespace_key_func
) -> ExpirationStore[Any]:
    """Return a store whose entries expire after `ttl` seconds, like client-go's NewTTLStore."""
    return ExpirationStore(TTLPolicy(ttl), key_func)
