"""Who waits for the cache to reach a version, or for an object to become something; only they are woken."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aioinformer.errors import USER_ERRORS
from aioinformer.latch import Failure
from aioinformer.versions import covers, version_number

if TYPE_CHECKING:
    from collections.abc import Callable, KeysView

T = TypeVar("T")


class VersionWaiters:
    """Waits for the version of the cache, which reads the future from bookmarks and lists as well as from events."""

    def __init__(self) -> None:
        self.version = ""
        self._order = count()
        self._waiters: list[tuple[int, int, str, asyncio.Future[None]]] = []
        #: Versions that are no numbers have no order: who waits for one waits for just that one.
        self._opaque: dict[str, set[asyncio.Future[None]]] = {}
        self._failure: Failure | None = None

    def reached(self, version: str) -> None:
        """Everything up to this version is in the cache."""
        if not version:
            return
        self.version = version
        waiters = self._waiters
        reached = list(self._opaque.get(version, ()))
        while waiters and covers(version, waiters[0][2]):
            reached.append(heapq.heappop(waiters)[3])
        for future in reached:
            if not future.done():
                future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """No further version will be reached."""
        self._failure = Failure(error)
        opaque = [future for futures in self._opaque.values() for future in futures]
        for future in [*(future for *_, future in self._waiters), *opaque]:
            if not future.done():
                future.set_exception(error)
        self._waiters.clear()

    async def wait(self, version: str) -> None:
        """Returns once the cache has this version, or a later one."""
        if self.version and covers(self.version, version):
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
        futures = self._opaque.setdefault(version, set())
        futures.add(future)
        try:
            await future
        finally:
            futures.discard(future)
            if not futures:
                self._opaque.pop(version, None)


class KeyWaiters(Generic[T]):
    """Waits for single objects."""

    def __init__(self) -> None:
        self._waiters: dict[str, list[tuple[Callable[[T | None], Any], asyncio.Future[T | None]]]] = {}
        self._failure: Failure | None = None

    def awaited(self) -> KeysView[str]:
        """The keys of what is waited for, as they are whenever one looks."""
        return self._waiters.keys()

    def changed(self, key: str, obj: T | None) -> None:
        """The object under a key is now this one, or gone."""
        for predicate, future in self._waiters.get(key, ()):
            if future.done():
                continue
            try:
                if predicate(obj):
                    future.set_result(obj)
            except StopIteration as error:  # which futures refuse, as coroutines do: next() of nothing raises it
                failure = RuntimeError("the predicate raised StopIteration")
                failure.__cause__ = error
                future.set_exception(failure)
            except USER_ERRORS as error:
                future.set_exception(error)

    def fail(self, error: BaseException) -> None:
        """Nothing will change any more."""
        self._failure = Failure(error)
        for waiters in self._waiters.values():
            for _, future in waiters:
                if not future.done():
                    future.set_exception(error)

    async def wait(self, key: str, predicate: Callable[[T | None], Any]) -> T | None:
        """Returns the object under a key, None if it is gone, once the predicate is true of it."""
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
