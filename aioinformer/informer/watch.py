"""`RetryWatcher`, a watch of the server as an async iterator, and `until`, which waits for a sequence of conditions."""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import AsyncIterable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from aioinformer.cache.objects.codec import BodyDecoder, ObjectType
from aioinformer.errors import AioinformerError, ApiError, Expired, TransportError, UsageError
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListerWatcher, check_lister_watcher
from aioinformer.reflector.options import ReflectorOptions, check_options
from aioinformer.reflector.pager import read_watch
from aioinformer.reflector.watch_events import ObjectEvent, RecordDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


T = TypeVar("T")
E = TypeVar("E")

_log = get_logger("aioinformer.informer")

#: Minimum seconds between the starts of two watches.
_PACE = 1.0


class WatchClosed(AioinformerError):
    """The events ended before all conditions of `until` were true."""


class RetryWatcher(Generic[T]):
    """Iterates over the events after a resourceVersion, and reconnects: `async with RetryWatcher(…) as events`.

    Each event is returned exactly once, in the server's order. Iteration ends with an exception: `Expired`, an
    `ApiError` of 401 or 403, or a `DecodeError` for an object that does not decode.

    Args:
        lister_watcher: the collection to watch.
        resource_version: where to begin; not "" or "0".
        decoder: as for `SharedIndexInformer`.
        options: timeouts, and the maximum size of objects.
        random: returns numbers in [0, 1), to randomize the duration of watches.

    Attributes:
        resource_version: the last version received; another watch may begin there.

    Raises:
        UsageError: the version is "" or "0".
    """

    def __init__(
        self,
        lister_watcher: ListerWatcher[T],
        resource_version: str,
        *,
        decoder: BodyDecoder[T] | None = None,
        options: ReflectorOptions | None = None,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        check_lister_watcher(lister_watcher)
        check_options(options)
        if resource_version in ("", "0"):
            raise UsageError(
                f"resource_version={resource_version!r} is not a version to begin at: list first, or use an informer"
            )
        self.resource_version = resource_version
        self._lister_watcher = lister_watcher
        self._objects: ObjectType[T] = ObjectType(lister_watcher.resource, decoder)
        self._options = options or ReflectorOptions()
        self._random = random
        self._events = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObjectEvent[T]:
        return await anext(self._events)

    async def aclose(self) -> None:
        """End the watch. May be called again."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self) -> AsyncGenerator[ObjectEvent[T]]:
        clock = asyncio.get_running_loop().time
        while True:
            next_at = clock() + _PACE
            try:
                async with aclosing(self._watch()) as events:
                    async for event in events:
                        yield event
            except ApiError as error:
                if isinstance(error, Expired) or error.status in (401, 403, 410):
                    raise
                next_at = max(next_at, clock() + (error.retry_after or 0.0))
                _log.debug("the watch failed and is opened again: %s", error)
            except TransportError as error:
                _log.debug("the watch failed and is opened again: %s", error)
            await asyncio.sleep(max(0.0, next_at - clock()))

    async def _watch(self) -> AsyncGenerator[ObjectEvent[T]]:
        options = self._options.watch(self.resource_version, self._random())
        on_arrival = self._objects.on_arrival if self._objects.decodes_early else None
        try:
            async with asyncio.timeout(self._options.idle_timeout):
                response = await self._lister_watcher.request(options)
        except TimeoutError as error:
            raise TransportError(f"the watch got no response for {self._options.idle_timeout:g} s") from error
        async with aclosing(read_watch(response, options, RecordDecoder(on_arrival), self._options)) as events:
            async for event in events:
                record = event.record
                self.resource_version = (event.version if record is None else record.resource_version) or (
                    self.resource_version
                )
                if record is not None:
                    yield ObjectEvent(event.type, self._objects.to_view(record))


async def until(events: AsyncIterable[E], *conditions: Callable[[E], Any]) -> E:
    """Wait until conditions become true one after the other; return the event that satisfied the last one.

    One event may satisfy several conditions. Use `asyncio.timeout` around the call to limit the wait, and
    `informer.wait_for` to wait for the state of one object.

    Args:
        events: a `RetryWatcher`, or any async iterable.
        conditions: event -> whether the condition is true; checked in this order.

    Raises:
        UsageError: there are no conditions.
        WatchClosed: the events ended before the last condition was true.
        Exception: raised by a condition, or by the watch.
    """
    if not conditions:
        raise UsageError("until() needs at least one condition")
    remaining = list(conditions)
    async for event in events:
        while remaining and remaining[0](event):
            del remaining[0]
        if not remaining:
            return event
    raise WatchClosed(f"the events ended before {len(remaining)} of {len(conditions)} conditions were true")
