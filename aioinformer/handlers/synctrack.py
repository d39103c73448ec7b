"""Trackers for handlers that only pass objects on: they know when the initial list was processed, like client-go's.

An informer knows when its handlers were called for the initial list. If a handler enqueues objects for workers, the
handler and the workers call a tracker, which knows when the workers are done. `wait_for_cache_sync` accepts trackers.
`Lazy` is a value that is computed on demand after changes.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from aioinformer.concurrency import Latch
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Hashable

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")


class _Tracker(ABC):
    def __init__(self, name: str = "") -> None:
        self.name = name
        self._upstream_synced = False
        self._synced = Latch()

    def upstream_has_synced(self) -> None:
        """Record that `start` was called for all of the initial list."""
        self._upstream_synced = True
        self._check()

    def has_synced(self) -> bool:
        """Return whether all of the initial list was started and finished. Once true, it stays true."""
        return bool(self._synced)

    async def wait_for_sync(self) -> None:
        """Wait until `has_synced()`."""
        await self._synced.wait()

    def _check(self) -> None:
        if self._upstream_synced and not self._in_progress():
            self._synced.set()

    @abstractmethod
    def _in_progress(self) -> int:
        """Return the number of calls that have started and not finished."""


class SingleFileTracker(_Tracker):
    """Tracks objects that are processed in order of arrival: it counts those in progress.

    Args:
        name: for errors.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._count = 0

    def start(self) -> None:
        """Count an object of the initial list. Call it for all of them before `upstream_has_synced`."""
        self._count += 1

    def finished(self) -> None:
        """Record that an object was processed.

        Raises:
            UsageError: no object is in progress.
        """
        if self._count == 0:
            raise UsageError(f"{self.name or 'tracker'}: finished() was called more often than start()")
        self._count -= 1
        self._check()

    def _in_progress(self) -> int:
        return self._count


class AsyncTracker(_Tracker, Generic[K]):
    """Tracks objects that are processed concurrently, in any order: it remembers the keys of those in progress.

    Args:
        name: for errors.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._keys: set[K] = set()

    def start(self, key: K) -> None:
        """Add the key of an object of the initial list. Adding it twice has no further effect."""
        if not self._synced:
            self._keys.add(key)

    def finished(self, key: K) -> None:
        """Record that an object was processed. Has no effect if its key was not started."""
        self._keys.discard(key)
        self._check()

    def _in_progress(self) -> int:
        return len(self._keys)


class Lazy(Generic[T]):
    """A value that is computed on demand, and again only after `notify`.

    Concurrent calls of `get` share one evaluation. A call after `notify` never returns a value whose evaluation began
    before it. Errors are raised, and not cached.

    Args:
        evaluate: a coroutine function that returns the value.
    """

    def __init__(self, evaluate: Callable[[], Awaitable[T]]) -> None:
        self._evaluate = evaluate
        self._changes = 0
        self._evaluating = asyncio.Lock()
        #: The last value, and the number of changes when its evaluation began.
        self._cached: tuple[T, int] | None = None

    def notify(self) -> None:
        """Record a change: the cached value is outdated."""
        self._changes += 1

    async def get(self) -> T:
        """Return the value. Its evaluation began after the last `notify` before this call.

        Raises:
            Exception: raised by the evaluation.
        """
        asked = self._changes
        while True:
            if self._cached is not None and self._cached[1] >= asked:
                return self._cached[0]
            async with self._evaluating:
                if self._cached is not None and self._cached[1] >= asked:
                    continue
                began = self._changes
                self._cached = await self._evaluate(), began
