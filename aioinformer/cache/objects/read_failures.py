"""Failed reads: objects whose bodies did not decode when they were first read.

Views decode a body on first access, in any thread, and long after the informer has cached the object. Views have no
reference to their informer, which would cost memory for every object. So a view announces a failed read here, and each
informer that has the object in its cache counts it until a new version of the object arrives.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record

#: Re-entrant: a finalizer may run while the lock is held, and read an object that does not decode.
_lock = threading.RLock()
_caches: WeakSet[ReadFailures] = WeakSet()


def count_failed_read(record: Record, reason: str) -> None:
    """Count a failed read in every cache that holds the record. Any thread may call it. `reason` has no content."""
    with _lock:
        caches = list(_caches)
    for cache in caches:
        cache.note(record, reason)


class ReadFailures:
    """Counts the failed reads of one cache.

    Any thread may add keys and read them; the event loop removes them.

    Args:
        on_first: called when the first key is added, in the thread that adds it.

    Attributes:
        reasons: key -> why the body does not decode.
        total: the number of failures so far, at most one for each version of an object.
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
        if not self._holds(record):  # the event loop has cached another version meanwhile
            self.reasons.pop(record.key, None)

    def add(self, key: str, reason: str) -> None:
        """Count a failure for the cached version of an object, unless it is counted already."""
        if key in self.reasons:
            return
        first = not self.reasons
        self.total += 1
        self.reasons[key] = reason
        if first:
            self._on_first()

    def _holds(self, record: Record) -> bool:
        cached = self._cached(record.key)
        # A compressed record may have replaced the one from which it was made.
        return cached is record or (cached is not None and cached.same_version(record))
