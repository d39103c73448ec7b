"""Objects whose bodies failed to decode when a reader looked into them.

Views decode a body when it is first read, in any thread, long after the informer has cached the object; nothing leads
from a view to its informer, which would cost every object a reference. So a failed read is announced here, and each
informer that has the object in its cache counts it until a new version of the object arrives.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record

#: Reentrant: a finalizer that runs while it is held may read, and fail.
_lock = threading.RLock()
_caches: WeakSet[ReadFailures] = WeakSet()


def announce(record: Record, reason: str) -> None:
    """Count a failed read in every cache that holds the record. Any thread may call it.

    Args:
        record: whose body does not decode.
        reason: why, without any of its content.
    """
    with _lock:
        caches = list(_caches)
    for cache in caches:
        cache.note(record, reason)


class ReadFailures:
    """The failed reads of one cache.

    The event loop releases keys; any thread may add them and ask for them.

    Args:
        cached: key -> the record in the cache.
        on_first: called by the thread that adds a key where there was none.

    Attributes:
        reasons: key -> why the body does not decode.
        total: the number of failures so far, one a version.
    """

    def __init__(self, cached: Callable[[str], Record | None], on_first: Callable[[], None] = lambda: None) -> None:
        self.reasons: dict[str, str] = {}
        self.total = 0
        self._cached = cached
        self._on_first = on_first
        with _lock:
            _caches.add(self)

    def note(self, record: Record, reason: str) -> None:
        """Count a record whose body does not decode, if it is the one in the cache."""
        if not self._holds(record):
            return
        self.add(record.key, reason.removeprefix(f"{record.key}: "))
        if not self._holds(record):  # the loop has put another version in its place meanwhile
            self.reasons.pop(record.key, None)

    def add(self, key: str, reason: str) -> None:
        """Count the last version of an object."""
        if key in self.reasons:
            return
        first = not self.reasons
        self.total += 1
        self.reasons[key] = reason
        if first:
            self._on_first()

    def _holds(self, record: Record) -> bool:
        cached = self._cached(record.key)
        # A compressed record takes the place of the one that it was made of.
        return cached is record or (cached is not None and cached.same_version(record))
