"""A watch that survives its connections, for those who need events and no cache (TW-01 to TW-05).

It begins after a version that is known, from a list or a write, and goes on from the last event whenever the connection
ends or the server fails. It ends with an error when it cannot go on without a gap, or never will be allowed to: the
version is lost (410, also when the watch is opened), or the server refuses who is asking (401, 403).

For anything that lasts, use an informer: it lists anew when the version is lost.
"""

from __future__ import annotations

import asyncio
import random as random_module
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from aioinformer.answers import AnswerReader
from aioinformer.errors import (
    AioinformerError,
    ApiError,
    DecodeError,
    Expired,
    FrameTooLarge,
    TransportError,
    UsageError,
)
from aioinformer.listwatch import check_lister_watcher
from aioinformer.logger import get_logger
from aioinformer.object_type import BodyDecoder, ObjectType
from aioinformer.option_checks import check_options
from aioinformer.options import ReflectorOptions
from aioinformer.steps import Failed, Send, Watched
from aioinformer.wire import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, Intake, WatchEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable
    from types import TracebackType

    from aioinformer.listwatch import ListerWatcher

T = TypeVar("T")
E = TypeVar("E")

_log = get_logger(__name__)

#: Seconds between the beginnings of two watches, at least.
_PACE = 1.0


class WatchClosed(AioinformerError):
    """The events ended before what was waited for."""


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """What happened to an object.

    Attributes:
        type: "ADDED", "MODIFIED" or "DELETED".
        object: as informers hand it out; of a deletion, the last state.
    """

    type: str
    object: T


class RetryWatcher(Generic[T]):
    """The events after a version, as an async iterator; use it as `async with RetryWatcher(…) as events`.

    Every event is had once, and in the order of the server. Iterating raises what ends the watch: `Expired`, an
    `ApiError` of 401 or 403, or a `DecodeError` for an object that cannot be read.

    Args:
        lister_watcher: what to watch.
        resource_version: after which to begin; "" and "0" name none.
        decoder: as for `SharedIndexInformer`.
        options: time-outs, and the cap on objects.
        random: gives numbers in [0, 1), for how long a watch lasts.

    Attributes:
        resource_version: the last that is known; a new watch may begin there.

    Raises:
        UsageError: the version is none.
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
            raise UsageError(f"resource_version={resource_version!r} names no version: list first, or use an informer")
        self.resource_version = resource_version
        self._lister_watcher = lister_watcher
        self._objects: ObjectType[T] = ObjectType(lister_watcher.resource, decoder)
        self._options = options or ReflectorOptions()
        self._random = random
        self._events = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T]:
        return await anext(self._events)

    async def aclose(self) -> None:
        """Ends the watch; may be repeated."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self) -> AsyncGenerator[Event[T]]:
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
                _log.debug("the watch is opened again after %s", error)
            except TransportError as error:
                _log.debug("the watch is opened again after %s", error)
            await asyncio.sleep(max(0.0, next_at - clock()))

    async def _watch(self) -> AsyncGenerator[Event[T]]:
        options = self._options.watch(self.resource_version, self._random())
        admit = self._objects.admit if self._objects.decodes_early else None
        try:
            async with asyncio.timeout(self._options.idle_timeout):
                response = await self._lister_watcher.request(options)
        except TimeoutError as error:
            raise TransportError(f"no answer to the watch came for {self._options.idle_timeout:g} s") from error
        reader = AnswerReader(response, Send(options), Intake(admit), self._options)
        try:
            if response.status != 200:
                raise await reader.read_failure()
            async with aclosing(reader.answers(initial=False)) as answers:
                async for answer in answers:
                    if isinstance(answer, Failed):
                        if isinstance(answer.error, FrameTooLarge):
                            raise answer.error
                        # What a broken line should have said is asked for again.
                        raise TransportError(str(answer.error)) from answer.error
                    for event in answer.events if isinstance(answer, Watched) else ():
                        if (happened := self._taken(event)) is not None:
                            yield happened
        finally:
            await reader.close()

    def _taken(self, event: WatchEvent) -> Event[T] | None:
        if event.type == BOOKMARK:
            self.resource_version = event.version or self.resource_version
            return None
        if event.type == ERROR and event.error is not None:
            raise event.error
        if event.type not in (ADDED, MODIFIED, DELETED):
            raise DecodeError(f"the watch brought an event of the unknown type {event.type[:20]!r}")
        record = event.record
        if record is None:
            raise event.error or DecodeError("the watch brought an event without an object")
        if not record.resource_version:
            raise DecodeError("the watch brought an object without resourceVersion", key=record.key)
        self.resource_version = record.resource_version
        return Event(event.type, self._objects.present(record))


async def until(events: AsyncIterable[E], *conditions: Callable[[E], Any]) -> E:
    """Returns the event with which the last of some conditions came true, one after the other.

    One event may make several of them true. Use `asyncio.timeout` around it to limit the wait, and
    `informer.wait_for` to wait for the state of an object.

    Args:
        events: a `RetryWatcher`, or any other.
        conditions: event -> whether it came true; in this order.

    Raises:
        UsageError: there is no condition.
        WatchClosed: the events ended before that.
        Exception: what a condition raised, or what ended the watch.
    """
    if not conditions:
        raise UsageError("until() needs a condition to wait for")
    remaining = list(conditions)
    async for event in events:
        while remaining and remaining[0](event):
            del remaining[0]
        if not remaining:
            return event
    raise WatchClosed(f"the events ended before {len(remaining)} of {len(conditions)} conditions came true")
