"""A store whose entries grow old: client-go's ExpirationCache (EXP-01)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TimestampedEntry(Generic[T]):
    """An object, and when it was put in.

    Attributes:
        obj: the object.
        timestamp: in seconds of the store's clock.
    """

    obj: T
    timestamp: float


class ExpirationPolicy(Protocol):
    """Decides when entries are too old."""

    def is_expired(self, entry: TimestampedEntry[Any], now: float) -> bool: ...


@dataclass(frozen=True, slots=True)
class TTLPolicy:
    """Entries expire once they are older than a time to live.

    Attributes:
        ttl: in seconds; 0 or less for never.
    """

    ttl: float

    def is_expired(self, entry: TimestampedEntry[Any], now: float) -> bool:
        """Whether the entry is older than the time to live; one of exactly that age is not."""
        return 0 < self.ttl < now - entry.timestamp


class ExpirationStore(Generic[T]):
    """A store that forgets: whoever reads an entry that has expired does not find it, and it is dropped then.

    Every put makes an entry new. There is no timer: what nobody reads stays. May be used from any thread.

    Args:
        policy: when entries expire.
        key_func: object -> key.
        clock: seconds from any beginning.
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
        """Puts an object in, as new; one with the same key is replaced.

        Raises:
            KeyFuncError: the object has no key.
        """
        key = self._key_func(obj)
        with self._lock:
            self._entries[key] = TimestampedEntry(obj, self._clock())

    def update(self, obj: T) -> None:
        """The same as `add`."""
        self.add(obj)

    def delete(self, obj: Any) -> None:
        """Takes an object out, by its key; a tombstone will do. Nothing happens if it is not there."""
        key = self._key_func(obj)
        with self._lock:
            self._entries.pop(key, None)

    def replace(self, objects: Iterable[T], resource_version: str = "") -> None:
        """These are all objects there are, and all are new."""
        now = self._clock()
        entries = {self._key_func(obj): TimestampedEntry(obj, now) for obj in objects}
        with self._lock:
            self._entries = entries

    def resync(self) -> None:
        """Nothing: a store has nothing to be brought in line with (STO-01)."""

    def list(self) -> builtins.list[T]:
        """All objects that have not expired, in no order; the others are dropped."""
        with self._lock:
            return [entry.obj for key in list(self._entries) if (entry := self._living(key)) is not None]

    def list_keys(self) -> builtins.list[str]:
        """All keys, those of entries that have expired and were not read since included."""
        with self._lock:
            return list(self._entries)

    def get(self, obj: Any) -> T | None:
        """The object with the key of this one, None if there is none, or it has expired."""
        return self.get_by_key(self._key_func(obj))

    def get_by_key(self, key: str) -> T | None:
        """The object under a key, None if there is none, or it has expired."""
        with self._lock:
            entry = self._living(key)
        return entry.obj if entry is not None else None

    def __len__(self) -> int:
        return len(self._entries)

    def _living(self, key: str) -> TimestampedEntry[T] | None:
        entry = self._entries.get(key)
        if entry is not None and self._policy.is_expired(entry, self._clock()):
            del self._entries[key]
            return None
        return entry


def ttl_store(
    ttl: float, key_func: Callable[[Any], str] = deletion_handling_meta_namespace_key_func
) -> ExpirationStore[Any]:
    """A store whose entries live for `ttl` seconds: client-go's NewTTLStore."""
    return ExpirationStore(TTLPolicy(ttl), key_func)
