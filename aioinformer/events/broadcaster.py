"""From recorders to sinks, logs and functions: client-go's EventBroadcaster (EV-01, EV-09).

    async with EventBroadcaster() as broadcaster:
        broadcaster.start_recording_to_sink(await discover_event_sink(transport))
        recorder = broadcaster.new_recorder("my-controller")
        recorder.event(pod, "Normal", "Started", "it runs")

Recording never waits. Everybody who takes Events has a bounded queue of their own, so nobody waits for another.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from aioinformer.concurrency import Owner, Root, is_ending
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.events.recorder import EventRecorder
from aioinformer.events.writer import EventRecording
from aioinformer.logs import get_logger, visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from aioinformer.events.correlator import Correlator
    from aioinformer.events.event import Event
    from aioinformer.events.sink import EventSink
    from aioinformer.events.writer import RecordingOptions

T = TypeVar("T", bound="EventRecording | EventWatch")

_log = get_logger("aioinformer.events")


class EventWatch:
    """A function that is told of each Event, one at a time and in order.

    Args:
        handler: (event), sync or async; what it raises is logged and counted, and that is all.
        size: so many Events wait for it at most; what is more is dropped.

    Attributes:
        errors: how often the handler raised.
        dropped: how many Events it was not told of.
    """

    def __init__(self, handler: Callable[[Event], Any], size: int) -> None:
        self.name = f"event watcher {getattr(handler, '__qualname__', type(handler).__name__)}"
        self.errors = 0
        self.dropped = 0
        self._handler = handler
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(size)
        self._stopped = False
        self._finished = asyncio.Event()

    def record(self, event: Event) -> None:
        """Takes an Event, if there is room for it."""
        if self._stopped:
            return
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1

    def stop(self) -> None:
        """Tells it of nothing more but what waits already. Idempotent."""
        self._stopped = True
        if self._events.empty():
            self._events.put_nowait(None)

    async def run(self) -> None:
        """Calls the handler, until stopped and told of all that waits."""
        try:
            while not (self._stopped and self._events.empty()):
                event = await self._events.get()
                if event is not None:
                    await self._call(event)
        finally:
            self._finished.set()

    async def drain(self) -> None:
        """Stops, and returns when the handler was told of all that waits."""
        self.stop()
        await self._finished.wait()

    def close(self) -> None:
        """Counts what it was not told of before the end."""
        while not self._events.empty():
            self.dropped += self._events.get_nowait() is not None

    async def _call(self, event: Event) -> None:
        task = asyncio.current_task()
        try:
            result = self._handler(event)
            if inspect.isawaitable(result):
                await result
        except (*USER_ERRORS, asyncio.CancelledError) as error:
            if is_ending(error, task):
                raise
            self.errors += 1
            _log.exception("%s raised for event %s/%s", self.name, event.namespace, event.name)


class EventBroadcaster:
    """Hands what recorders record to sinks, logs and functions.

    Use it as `async with EventBroadcaster() as broadcaster`: what stands in the block may record. On leaving, what
    waits has `grace` seconds to be written; after that it is dropped, and the log says how much. It runs once.

    Args:
        grace: in seconds.
        queue_size: so many Events wait for each function or log at most.
        wall: nanoseconds since 1970, for the times of Events.
    """

    def __init__(self, *, grace: float = 5.0, queue_size: int = 1000, wall: Callable[[], int] = time.time_ns) -> None:
        self._grace = grace
        self._queue_size = queue_size
        self._wall = wall
        self._takers: list[EventRecording | EventWatch] = []
        self._tasks: asyncio.TaskGroup | None = None
        self._started = self._closed = False
        self._dropped = 0
        self._owner = Owner()

    # Who records.

    def new_recorder(self, component: str, instance: str | None = None) -> EventRecorder:
        """A recorder for one component.

        Args:
            component: who says it.
            instance: which one of those; by default, the name of the host.

        Raises:
            UsageError: the component is empty.
        """
        return EventRecorder(self.record, component, instance, wall=self._wall)

    def record(self, event: Event) -> None:
        """Hands an Event to all who take them. A plain call that never waits; after the end, it is dropped."""
        if self._closed:
            self._dropped += 1
            return
        for taker in self._takers:
            taker.record(event)

    @property
    def dropped(self) -> int:
        """How many Events came after the end."""
        return self._dropped

    # Who takes.

    def start_recording_to_sink(
        self, sink: EventSink, correlator: Correlator | None = None, options: RecordingOptions | None = None
    ) -> EventRecording:
        """Writes what is recorded from now on to a sink, once the broadcaster runs.

        Args:
            sink: such as `CoreEventSink(transport)`, or what `discover_event_sink(transport)` finds.
            correlator: what decides which Events are written; each sink has its own.
            options: how they are written.

        Returns:
            Whose `statistics()` say what becomes of them.

        Raises:
            UsageError: the broadcaster has ended, or writes to this sink already.
        """
        self._check_open()
        if not all(callable(getattr(sink, method, None)) for method in ("create", "patch")):
            given: Any = sink
            hint = ""
            if inspect.iscoroutine(given):
                hint = f"; write `await {given.__name__}(...)`"
                given.close()  # or it would warn that it was never awaited, which this says better
            raise UsageError(f"sink: expected a sink such as CoreEventSink(transport), not {type(sink).__name__}{hint}")
        name = f"event recording to {type(sink).__name__}"
        if any(isinstance(taker, EventRecording) and taker.sink is sink for taker in self._takers):
            raise UsageError(f"{name} was started already; a second one would write every event twice")
        return self._take(EventRecording(sink, correlator, options, name=name))

    def start_event_watcher(self, handler: Callable[[Event], Any]) -> EventWatch:
        """Tells a function of each Event that is recorded from now on, as it was recorded, once the broadcaster runs.

        Args:
            handler: (event), sync or async.

        Returns:
            Whose `stop()` ends it.

        Raises:
            UsageError: the broadcaster has ended.
        """
        self._check_open()
        if not callable(handler):
            raise UsageError(f"handler: expected a function of an Event, not {type(handler).__name__}")
        return self._take(EventWatch(handler, self._queue_size))

    def start_logging(self, logger: logging.Logger = _log, level: int = logging.INFO) -> EventWatch:
        """Logs each Event that is recorded from now on, messages included.

        Args:
            logger: where to.
            level: as which.

        Returns:
            Whose `stop()` ends it.

        Raises:
            UsageError: the broadcaster has ended.
        """

        def log(event: Event) -> None:
            about = event.regarding
            key = f"{about.namespace}/{about.name}" if about.namespace else about.name
            line = f"{about.kind} {key}: {event.type} {event.reason}: {event.note}"
            logger.log(level, "%s", visible(line))

        return self.start_event_watcher(log)

    # Life.

    async def __aenter__(self) -> Self:
        if self._started:
            raise UsageError("an event broadcaster runs once; make another one")
        self._owner.start(self._run, "event broadcaster")
        self._started = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed = True
        try:
            # A scope that was cancelled around this must not cost what the grace is for.
            with anyio.move_on_after(self._grace, shield=True):
                await self._drain()  # each recording says what it has not written
        finally:
            takers, self._takers = self._takers, []
            try:
                await self._owner.stop()
            finally:
                for taker in takers:
                    taker.close()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for taker in self._takers:
                self._start(taker, tasks)
            await asyncio.get_running_loop().create_future()

    def _take(self, taker: T) -> T:
        self._takers.append(taker)
        if self._tasks is not None:
            self._start(taker, self._tasks)
        return taker

    def _start(self, taker: EventRecording | EventWatch, tasks: asyncio.TaskGroup) -> None:
        task: asyncio.Task[None] = tasks.create_task(Root(taker.run()), name=taker.name)
        task.add_done_callback(lambda _: self._takers.remove(taker) if taker in self._takers else None)

    async def _drain(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for taker in self._takers:
                tasks.create_task(taker.drain(), name=f"{taker.name}: drain")

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the event broadcaster has ended; nothing takes its events any more")
