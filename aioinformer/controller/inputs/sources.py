"""Sources: keys that do not come from informers, but from any async iterable (`Source`) or a timer (`Every`)."""

from __future__ import annotations

import asyncio
import inspect
import random as chance
from collections.abc import AsyncIterable, Callable, Iterable
from itertools import cycle
from typing import Any, Final
from zlib import crc32

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.concurrency import Slicer, is_ending
from aioinformer.controller.inputs.keys import keys_in
from aioinformer.controller.inputs.mapping import Enqueue
from aioinformer.errors import USER_ERRORS, OptionError, UsageError
from aioinformer.functions import function_name
from aioinformer.logs import get_logger
from aioinformer.resources.keys import ObjectName
from aioinformer.resources.resource import Resource
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, NORMAL_PRIORITY, Cause

_log = get_logger("aioinformer.controller")

_BACKOFF: Final = BackoffOptions(initial=1.0, cap=60.0)
#: The keys of a timer are read this often in each period, and in each window run in at most `_TICKS` groups.
_WINDOWS: Final = 8
_TICKS: Final = 64


class Source:
    """Keys from an async iterable. If it raises, it is iterated again after a delay; if it ends, the source has ended.

    Args:
        items: an async iterable of keys, objects, or lists of these; or a function that returns one, such as an async
            generator function. An async generator itself is refused, since it cannot be iterated again.
        name: for logs and causes; by default, the name of the function or class.
        backoff: the delays after failures.
        random: returns numbers in [0, 1), for the delays.

    Attributes:
        name: for logs and causes.
        errors: how often it failed, or delivered something that is no key.

    Raises:
        UsageError: it is not an async iterable.
    """

    def __init__(
        self,
        items: AsyncIterable[Any] | Callable[[], AsyncIterable[Any]],
        *,
        name: str = "",
        backoff: BackoffOptions = _BACKOFF,
        random: Callable[[], float] = chance.random,
    ) -> None:
        if inspect.isasyncgen(items):
            called = items.__name__
            raise UsageError(f"source {called}: pass the function {called}, not {called}(), which cannot be restarted")
        if inspect.iscoroutinefunction(items) or not (hasattr(items, "__aiter__") or callable(items)):
            raise UsageError(f"source: expected an async iterable or an async generator function, not {items!r}")
        self.name = name or function_name(items).partition(" at ")[0]
        self.errors = 0
        self._items = items
        self._backoff = backoff
        self._random = random

    async def run(
        self, enqueue: Enqueue, keys: Callable[[], Iterable[ObjectName]], resource: Resource[Any] | None = None
    ) -> None:
        """Enqueue keys until the iterable ends, or the task is cancelled.

        Args:
            enqueue: called with each key.
            keys: returns the cached keys of the primary.
            resource: the primary; checks the form of the keys.
        """
        backoff = Backoff(self._backoff, random=self._random)
        clock = asyncio.get_running_loop().time
        task = asyncio.current_task()
        while True:
            try:
                await self._follow(enqueue, resource)
            except (*USER_ERRORS, asyncio.CancelledError) as error:
                if is_ending(error, task):
                    raise
                self.errors += 1
                delay = backoff.next(clock())
                _log.error("source %s failed; restarting it in %.1f s", self.name, delay, exc_info=error)
            else:
                _log.info("source %s has ended; it is not restarted", self.name)
                return
            await asyncio.sleep(delay)

    async def _follow(self, enqueue: Enqueue, resource: Resource[Any] | None) -> None:
        items: Any = self._items
        iterator = aiter(items if hasattr(items, "__aiter__") else items())
        cause = Cause("source", self.name)
        slicer = Slicer()
        invalid = 0
        try:
            async for item in iterator:
                try:
                    for key in keys_in(item, resource, "", f"source {self.name}"):
                        enqueue(key, cause, NORMAL_PRIORITY)
                except UsageError as error:
                    self.errors += 1
                    invalid += 1
                    if invalid == 1:
                        _log.error("%s; the item is skipped, and further ones like it without a log line", error)
                await slicer.pause()  # an iterable that never waits must not block the event loop
        finally:
            if iterator is not items and hasattr(iterator, "aclose"):
                await iterator.aclose()


class Every:
    """A timer: each cached object of the primary runs once in each period, with low priority.

    The runs are spread over the period by a hash of the key, so they do not come all at once, and each key keeps its
    place. A change that is missed by no informer needs no timer; use it for what no informer watches.

    Args:
        seconds: the period.
        jitter: each part of the period is up to this share longer, at random, so that several processes do not stay in
            step.
        random: returns numbers in [0, 1).

    Attributes:
        name: for causes, whose trigger is "resync".

    Raises:
        OptionError: a value is out of range.
    """

    def __init__(self, seconds: float, jitter: float = 0.1, *, random: Callable[[], float] = chance.random) -> None:
        if not (0 < seconds < float("inf") and 0 <= jitter < float("inf")):
            raise OptionError(f"Every: expected seconds > 0 and jitter >= 0, not {seconds!r} and {jitter!r}")
        self.name = f"every {seconds:g} s"
        self._seconds = seconds
        self._jitter = jitter
        self._random = random

    async def run(
        self, enqueue: Enqueue, keys: Callable[[], Iterable[ObjectName]], resource: Resource[Any] | None = None
    ) -> None:
        """Enqueue the keys until the task is cancelled; the arguments are those of `Source.run`."""
        clock = asyncio.get_running_loop().time
        slicer = Slicer()
        cause = Cause("resync", self.name)
        begins = clock()
        for window in cycle(range(_WINDOWS)):
            length = self._seconds / _WINDOWS * (1 + self._jitter * self._random())
            due: list[tuple[int, ObjectName]] = []
            for key in list(keys()):
                tick = crc32(str(key).encode()) * _WINDOWS * _TICKS >> 32
                if tick // _TICKS == window:
                    due.append((tick % _TICKS, key))
                await slicer.pause()
            for tick, key in sorted(due):
                if (delay := begins + length * tick / _TICKS - clock()) > 0:
                    await asyncio.sleep(delay)
                enqueue(key, cause, LOW_PRIORITY)
                await slicer.pause()
            begins = max(begins + length, clock())
            await asyncio.sleep(begins - clock())


def source_of(value: Any) -> Source | Every:
    """Return the source that a user declared: itself, or the source of an async iterable.

    Raises:
        UsageError: it is neither.
    """
    return value if isinstance(value, (Source, Every)) else Source(value)
