"""Waits for a version of the cache, or for a condition of one object. A change wakes only the waits that it ends."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.concurrency import Failure
from aioinformer.errors import USER_ERRORS
from aioinformer.resources.versions import covers, version_number

if TYPE_CHECKING:
    from collections.abc import Callable, KeysView

T = TypeVar("T")


#: How many versions that are not numbers are remembered.
_REMEMBERED = 1000


class VersionWaiters:
    """Waits for the version of the cache, which events, bookmarks and lists advance.

    Versions that are numbers have an order: a wait for a number ends with any later one. Other versions have no order:
    a wait ends once exactly this version has been seen. The last 1000 of them are remembered.

    Attributes:
        version: of the cache.
        opaque: some version is not a number, so the versions of all objects must be recorded.
    """

    def __init__(self) -> None:
        self.version = ""
        self.opaque = False
        self._order = count()
        self._waiters: list[tuple[int, int, str, asyncio.Future[None]]] = []
        self._opaque_waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._seen: dict[str, None] = {}
        self._failure: Failure | None = None

    def reached(self, version: str) -> None:
        """Note that everything up to this version is in the cache."""
        self.version = version
        if not self._waiters and version.isdigit() and version.isascii() and len(version) < 32:
            return  # the most frequent case: `version_number` would say so, too
        if version_number(version) < 0:
            self.opaque = True
            self.saw(version)
            return
        waiters = self._waiters
        while waiters and covers(version, waiters[0][2]):
            _wake(heapq.heappop(waiters)[3])

    def saw(self, version: str) -> None:
        """Record a version without order, of an object or a collection that is in the cache."""
        self._seen.pop(version, None)
        self._seen[version] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        for future in self._opaque_waiters.get(version, ()):
            _wake(future)

    def fail(self, error: BaseException) -> None:
        """Fail all waits: no further version will be reached."""
        self._failure = Failure(error)
        opaque = [future for futures in self._opaque_waiters.values() for future in futures]
        for future in [*(future for *_, future in self._waiters), *opaque]:
            if not future.done():
                future.set_exception(error)
        self._waiters.clear()

    async def wait(self, version: str) -> None:
        """Return once the cache has this version or a later one; if it is not a number, once exactly it was seen."""
        if version in self._seen or (self.version and covers(self.version, version)):
            return
        if self._failure is not None:
            raise self._failure.error
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        number = version_number(version)
        if number < 0:
            await self._wait_for_just(version, future)
            return
        entry = (number, next(self._order), version, future)
        heapq.heappush(self._waiters, entry)
        try:
            await future
        except asyncio.CancelledError:
            if entry in self._waiters:
                self._waiters.remove(entry)
                heapq.heapify(self._waiters)
            raise

    async def _wait_for_just(self, version: str, future: asyncio.Future[None]) -> None:
        self.opaque = True
        futures = self._opaque_waiters.setdefault(version, set())
        futures.add(future)
        try:
            await future
        finally:
            futures.discard(future)
            if not futures:
                self._opaque_waiters.pop(version, None)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class KeyWaiters(Generic[T]):
    """Waits for conditions of single objects.

    Args:
        versions: the waits for versions of the same cache.
    """

    def __init__(self, versions: VersionWaiters | None = None) -> None:
        self.versions = versions or VersionWaiters()
        self._waiters: dict[str, list[tuple[Callable[[T | None], Any], asyncio.Future[T | None]]]] = {}
        self._failure: Failure | None = None

    def awaited(self) -> KeysView[str]:
        """Return a live view of the keys that have waits."""
        return self._waiters.keys()

    def changed(self, key: str, obj: T | None) -> None:
        """End the waits for a key whose condition holds for its new object, or for None after a deletion."""
        for predicate, future in self._waiters.get(key, ()):
            if future.done():
                continue
            try:
                if predicate(obj):
                    future.set_result(obj)
            except StopIteration as error:  # which futures refuse, as coroutines do; an unguarded next() raises it
                failure = RuntimeError("the predicate raised StopIteration")
                failure.__cause__ = error
                future.set_exception(failure)
            except USER_ERRORS as error:
                future.set_exception(error)

    def fail(self, error: BaseException) -> None:
        """Fail all waits: no object will change."""
        self._failure = Failure(error)
        for waiters in self._waiters.values():
            for _, future in waiters:
                if not future.done():
                    future.set_exception(error)

    async def wait(self, key: str, predicate: Callable[[T | None], Any]) -> T | None:
        """Return the object of a key, or None if it is deleted, once the predicate holds for it."""
        if self._failure is not None:
            raise self._failure.error
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(key, [])
        entry = (predicate, future)
        waiters.append(entry)
        try:
            return await future
        finally:
            waiters.remove(entry)
            if not waiters:
                del self._waiters[key]
