"""Deliver Events from recorders to sinks, logs and functions, as client-go's EventBroadcaster does.

    async with EventBroadcaster() as broadcaster:
        broadcaster.start_recording_to_sink(await discover_event_sink(transport))
        recorder = broadcaster.new_recorder("my-controller")
        recorder.event(pod, "Normal", "Started", "it runs")

Recording never waits. Each receiver has its own bounded queue, so a slow receiver does not delay the others.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from aioinformer.concurrency import Owner, Root, TaskGroup, is_ending
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.events.correlator import Correlator
from aioinformer.events.event import Event
from aioinformer.events.recorder import EventRecorder
from aioinformer.events.writer import EventRecording
from aioinformer.exports import lazy_type
from aioinformer.logs import get_logger, visible

if TYPE_CHECKING:
    from aioinformer.events.sink import EventSink
else:
    EventSink = lazy_type("aioinformer.events.sink", "EventSink")

T = TypeVar("T", bound="EventRecording | EventWatch")

_log = get_logger("aioinformer.events")


class EventWatch:
    """Calls a handler with each Event, one at a time and in order.

    Args:
        handler: a function of an Event, sync or async. Its exceptions are logged and counted.
        size: how many Events may wait for the handler; further Events are dropped.

    Attributes:
        errors: how often the handler raised.
        dropped: how many Events were not delivered.
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
        """Enqueue an Event, or drop it if the queue is full."""
        if self._stopped:
            return
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1

    def stop(self) -> None:
        """Accept no more Events; queued ones are still delivered. Idempotent."""
        self._stopped = True
        if self._events.empty():
            self._events.put_nowait(None)

    async def run(self) -> None:
        """Call the handler until stopped and the queue is empty."""
        try:
            while not (self._stopped and self._events.empty()):
                event = await self._events.get()
                if event is not None:
                    await self._call(event)
        finally:
            self._finished.set()

    async def drain(self) -> None:
        """Stop, and wait until all queued Events have been delivered."""
        self.stop()
        await self._finished.wait()

    def close(self) -> None:
        """Drop and count the Events that are still queued."""
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
    """Delivers recorded Events to sinks, logs and functions.

    Use it as `async with EventBroadcaster() as broadcaster` around the code that records. On leaving the block, queued
    Events have `grace` seconds to be written; the rest is dropped, and the log says how many. It runs once.

    Args:
        grace: seconds for writing queued Events at the end.
        queue_size: how many Events may wait for each function or log.
        wall: returns nanoseconds since 1970, for the times of Events.
    """

    def __init__(self, *, grace: float = 5.0, queue_size: int = 1000, wall: Callable[[], int] = time.time_ns) -> None:
        self._grace = grace
        self._queue_size = queue_size
        self._wall = wall
        self._receivers: list[EventRecording | EventWatch] = []
        self._tasks: asyncio.TaskGroup | None = None
        self._started = False
        self._closed = False
        self._dropped = 0
        self._owner = Owner()

    # Recording.

    def new_recorder(self, component: str, instance: str | None = None) -> EventRecorder:
        """Return a recorder for one component.

        Args:
            component: the name of the component that reports the Events.
            instance: the name of its instance; the host name by default.

        Raises:
            UsageError: the component is empty.
        """
        return EventRecorder(self.record, component, instance, wall=self._wall)

    def record(self, event: Event) -> None:
        """Enqueue an Event for all receivers, without waiting. After the end, the Event is dropped."""
        if self._closed:
            self._dropped += 1
            return
        for receiver in self._receivers:
            receiver.record(event)

    @property
    def dropped(self) -> int:
        """How many Events were recorded after the end."""
        return self._dropped

    # Receivers.

    def start_recording_to_sink(self, sink: EventSink, correlator: Correlator | None = None) -> EventRecording:
        """Write the Events that are recorded from now on to a sink, once the broadcaster runs.

        Args:
            sink: such as `CoreEventSink(transport)` or `await discover_event_sink(transport)`.
            correlator: decides which Events are written; by default, a new one of the sink's kind.

        Returns:
            The recording; its `statistics()` count what happened to the Events.

        Raises:
            UsageError: the broadcaster has ended, or already writes to this sink.
        """
        self._check_open()
        if not all(callable(getattr(sink, method, None)) for method in ("create", "patch")):
            given: Any = sink
            hint = ""
            if inspect.iscoroutine(given):
                hint = f"; write `await {given.__name__}(...)`"
                given.close()  # otherwise Python warns that it was never awaited; the hint is clearer
            raise UsageError(f"sink: expected a sink such as CoreEventSink(transport), not {type(sink).__name__}{hint}")
        name = f"event recording to {type(sink).__name__}"
        if any(isinstance(receiver, EventRecording) and receiver.sink is sink for receiver in self._receivers):
            raise UsageError(f"{name} was started already; a second one would write every event twice")
        return self._add_receiver(EventRecording(sink, correlator, name=name))

    def start_event_watcher(self, handler: Callable[[Event], Any]) -> EventWatch:
        """Call a function with each Event that is recorded from now on, uncorrelated, once the broadcaster runs.

        Args:
            handler: a function of an Event, sync or async.

        Returns:
            The watch; its `stop()` ends the calls.

        Raises:
            UsageError: the broadcaster has ended.
        """
        self._check_open()
        if not callable(handler):
            raise UsageError(f"handler: expected a function of an Event, not {type(handler).__name__}")
        return self._add_receiver(EventWatch(handler, self._queue_size))

    def start_logging(self, logger: logging.Logger = _log, level: int = logging.INFO) -> EventWatch:
        """Log each Event that is recorded from now on, messages included.

        Args:
            logger: the logger to use.
            level: the level of the log lines.

        Returns:
            The watch; its `stop()` ends the logging.

        Raises:
            UsageError: the broadcaster has ended.
        """

        def log(event: Event) -> None:
            about = event.regarding
            key = f"{about.namespace}/{about.name}" if about.namespace else about.name
            line = f"{about.kind} {key}: {event.type} {event.reason}: {event.note}"
            logger.log(level, "%s", visible(line))

        return self.start_event_watcher(log)

    # Running.

    async def __aenter__(self) -> Self:
        if self._started:
            raise UsageError("an event broadcaster runs once; make another one for another block")
        self._owner.start(self._run, "event broadcaster")
        self._started = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        try:
            # Shielded: queued Events are written even if a scope around the block was cancelled.
            with anyio.move_on_after(self._grace, shield=True):
                await self._drain()
        finally:
            receivers = self._receivers
            self._receivers = []
            try:
                await self._owner.stop()
            finally:
                for receiver in receivers:
                    receiver.close()  # counts and logs what was not written

    async def _run(self) -> None:
        async with TaskGroup() as tasks:
            self._tasks = tasks
            for receiver in self._receivers:
                self._start(receiver, tasks)
            await asyncio.get_running_loop().create_future()

    def _add_receiver(self, receiver: T) -> T:
        self._receivers.append(receiver)
        if self._tasks is not None:
            self._start(receiver, self._tasks)
        return receiver

    def _start(self, receiver: EventRecording | EventWatch, tasks: asyncio.TaskGroup) -> None:
        task: asyncio.Task[None] = tasks.create_task(Root(receiver.run()), name=receiver.name)
        task.add_done_callback(lambda _: self._receivers.remove(receiver) if receiver in self._receivers else None)

    async def _drain(self) -> None:
        async with TaskGroup() as tasks:
            for receiver in self._receivers:
                tasks.create_task(receiver.drain(), name=f"{receiver.name}: drain")

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the event broadcaster has ended and delivers no more events; make another one")
