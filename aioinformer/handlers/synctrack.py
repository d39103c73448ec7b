"""Who has seen all of an initial list, when it passes through hands that the informer does not know.

An informer knows when a handler was called for everything of the first list. If the handler only passes it on, to a
queue with workers for one, these trackers know when the work on it is done (client-go's synctrack, ST-01 to ST-04).
Trackers and informers alike can be given to `aioinformer.informer.sync.wait_for_cache_sync`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

from aioinformer.concurrency import Latch
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

T = TypeVar("T")
K = TypeVar("K", bound="Hashable")


class SingleFileTracker:
    """For those who work in the order of arrival: how many are under way is all there is to know (ST-01).

    Args:
        name: for logs.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._under_way = 0
        self._upstream_synced = False
        self._synced = Latch()

    def start(self) -> None:
        """One more of the initial list is under way; to be called before `upstream_has_synced` for each of them."""
        self._under_way += 1

    def finished(self) -> None:
        """One less.

        Raises:
            UsageError: none was under way.
        """
        if self._under_way == 0:
            raise UsageError(f"{self.name or 'tracker'}: finished() was called more often than start()")
        self._under_way -= 1
        self._check()

    def upstream_has_synced(self) -> None:
        """All of the initial list was started (ST-03)."""
        self._upstream_synced = True
        self._check()

    def has_synced(self) -> bool:
        """Whether all of the initial list was started and finished. Once true, it stays true."""
        return bool(self._synced)

    async def wait_for_sync(self) -> None:
        """Returns once `has_synced()`."""
        await self._synced.wait()

    def _check(self) -> None:
        if self._upstream_synced and self._under_way == 0:
            self._synced.set()


class AsyncTracker(Generic[K]):
    """For those who work on several things at a time, in any order (ST-02).

    Args:
        name: for logs.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._under_way: set[K] = set()
        self._upstream_synced = False
        self._synced = Latch()

    def start(self, key: K) -> None:
        """One of the initial list is under way; the same key twice is one."""
        if not self._synced:
            self._under_way.add(key)

    def finished(self, key: K) -> None:
        """It is done; harmless if it was not started."""
        self._under_way.discard(key)
        self._check()

    def upstream_has_synced(self) -> None:
        """All of the initial list was started (ST-03)."""
        self._upstream_synced = True
        self._check()

    def has_synced(self) -> bool:
        """Whether all of the initial list was started and finished. Once true, it stays true."""
        return bool(self._synced)

    async def wait_for_sync(self) -> None:
        """Returns once `has_synced()`."""
        await self._synced.wait()

    def _check(self) -> None:
        if self._upstream_synced and not self._under_way:
            self._synced.set()


class Lazy(Generic[T]):
    """A value that is worked out when asked for, and again only after something changed (ST-04).

    Who asks at the same time shares one evaluation. A value whose evaluation began before the last `notify` is handed
    to nobody who asks after that. Errors are raised, and not kept.

    Args:
        evaluate: a coroutine function that works out the value.
    """

    def __init__(self, evaluate: Callable[[], Awaitable[T]]) -> None:
        self._evaluate = evaluate
        self._changes = 0
        self._evaluating = asyncio.Lock()
        #: What was worked out, and the number of changes before that.
        self._kept: tuple[T, int] | None = None

    def notify(self) -> None:
        """Something changed: what is kept is not true any more."""
        self._changes += 1

    async def get(self) -> T:
        """The value, as of some moment since this was called, or since the last `notify` before that.

        Raises:
            Exception: what the evaluation raised.
        """
        asked = self._changes
        while True:
            if self._kept is not None and self._kept[1] >= asked:
                return self._kept[0]
            async with self._evaluating:
                if self._kept is not None and self._kept[1] >= asked:
                    continue
                began = self._changes
                self._kept = await self._evaluate(), began
