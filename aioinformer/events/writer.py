"""Write Events to a sink in the background, so that recording never waits for the sink.

The rules:

- An Event is correlated when it is recorded. The resulting writes are queued by key, at most one for each key: a newer
  patch replaces the queued write. So repetitions of a few Events need little memory while the sink is unreachable.
- At most 1000 keys are queued. Further Events are dropped and counted; the first drop is logged.
- Eight workers write. No two of them write the same key, so an Event is created before it is patched.
- If the Event to patch does not exist (any more), it is created.
- A write without an answer, or with an unreadable one, is retried after about ten seconds, up to twelve tries in total.
  Waiting for a retry occupies no worker. A refusal is final unless it has `Retry-After`. `AlreadyExists` means that an
  earlier try succeeded and its answer was lost.
- Writes that fail are logged, a few within a minute, and the others are counted. Without the permission, all fail: that
  is logged once for each namespace.
- At the end, each queued write gets one more try, at once. Writes that do not finish within the grace are counted as
  dropped.

Differences to client-go: its core/v1 sink writes one Event after another, and sleeps between two tries of one Event
while all others wait; its series are written without a fixed order.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aioinformer.concurrency import TaskGroup, running_loop
from aioinformer.errors import ApiError, DecodeError, TransportError
from aioinformer.events.correlator import Correlator
from aioinformer.events.event import Event
from aioinformer.exports import lazy_type
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.workqueue.delaying import DelayingQueue

if TYPE_CHECKING:
    from collections.abc import Hashable

    from aioinformer.events.correlator import EventCorrelateResult
    from aioinformer.events.sink import EventSink
else:
    EventSink = lazy_type("aioinformer.events.sink", "EventSink")

_log = get_logger("aioinformer.events")


#: How many Events may wait; how many are written at a time; how many tries each write gets.
_QUEUE_SIZE: Final = 1000
_WORKERS: Final = 8
_TRIES: Final = 12
#: In how many namespaces a missing permission is logged.
_NAMESPACES: Final = 100
#: Seconds between two tries, and the share of it by which each one is extended at random at most.
_RETRY_PERIOD: Final = 10.0
_RETRY_JITTER: Final = 0.25


@dataclass(frozen=True, slots=True)
class RecordingStatistics:
    """Counts of recorded Events and their writes, so far.

    Attributes:
        recorded: recorded Events.
        skipped: Events that the correlator did not write by themselves: counted in others, or too many.
        written: successful writes, patches included.
        retries: tries after the first.
        refused: writes that failed: refused by the sink, or out of tries.
        dropped: writes dropped because too many waited, or because the grace at the end was over.
        waiting: writes not finished yet.
    """

    recorded: int = 0
    skipped: int = 0
    written: int = 0
    retries: int = 0
    refused: int = 0
    dropped: int = 0
    waiting: int = 0


@dataclass(slots=True)
class _Waiting:
    event: Event
    is_new: bool
    tries: int = 0
    not_before: float = 0.0


class EventRecording:
    """Correlates recorded Events and writes them to one sink.

    Args:
        sink: the sink.
        correlator: decides which Events are written; `sink.new_correlator()` by default.
        name: for tasks and log lines.
        random: returns a number in [0, 1), for the jitter.
    """

    def __init__(
        self,
        sink: EventSink,
        correlator: Correlator | None = None,
        *,
        name: str = "event recording",
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.name = name
        self.sink = sink
        self._correlator = correlator or sink.new_correlator()
        self._random = random
        self._queue: DelayingQueue[Hashable] = DelayingQueue(name)
        self._waiting: dict[Hashable, _Waiting] = {}
        self._under_way = 0
        self._errors = RepeatedErrors(_log)
        #: The namespaces in which a write was forbidden.
        self._forbidden: set[str] = set()
        self._recorded = 0
        self._skipped = 0
        self._written = 0
        self._retries = 0
        self._refused = 0
        self._dropped = 0

    def record(self, event: Event) -> None:
        """Correlate an Event and enqueue the resulting write, without waiting."""
        self._recorded += 1
        result = self._correlator.event_correlate(event, running_loop("an event is recorded").time())
        if result.skip:
            self._skipped += 1
        else:
            self._enqueue(result)

    async def run(self) -> None:
        """Write Events until cancelled or drained."""
        try:
            async with TaskGroup() as tasks:
                due_writes = tasks.create_task(self._enqueue_due_writes(), name=f"{self.name}: series")
                workers = [
                    tasks.create_task(self._work(), name=f"{self.name}: worker {number}") for number in range(_WORKERS)
                ]
                await asyncio.wait(workers)
                due_writes.cancel()
        finally:
            self._errors.close()

    async def drain(self) -> None:
        """Accept no more Events, and wait until each queued write has finished or failed. Then `run()` returns."""
        for result in self._correlator.finish():
            self._enqueue(result)
        await self._queue.shut_down_with_drain(delayed="now")

    def statistics(self) -> RecordingStatistics:
        """Return the counts so far."""
        return RecordingStatistics(
            recorded=self._recorded,
            skipped=self._skipped,
            written=self._written,
            retries=self._retries,
            refused=self._refused,
            dropped=self._dropped,
            waiting=len(self._waiting) + self._under_way,
        )

    def close(self) -> None:
        """Drop the queued writes, and log how many."""
        lost = len(self._waiting) + self._under_way
        if lost:
            _log.warning("%s: %d events were dropped: not written before the end", self.name, lost)
        self._dropped += lost
        self._waiting.clear()
        self._under_way = 0
        self._queue.shut_down()

    # Queueing.

    def _enqueue(self, result: EventCorrelateResult) -> None:
        key = result.key, result.event.name  # the name keeps the last write of an ended series apart
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.event = result.event
        elif self._queue.shutting_down or len(self._waiting) >= _QUEUE_SIZE:
            if not self._dropped:
                if self._queue.shutting_down:
                    reason = "recording has ended"
                else:
                    reason = f"{len(self._waiting)} are waiting"
                _log.warning("%s: events are dropped, because %s", self.name, reason)
            self._dropped += 1
        else:
            self._waiting[key] = _Waiting(result.event, is_new=result.event.count == 1)
            self._queue.add(key)

    async def _enqueue_due_writes(self) -> None:
        loop = asyncio.get_running_loop()
        while self._correlator.period:
            await asyncio.sleep(self._correlator.period)
            for result in self._correlator.due(loop.time()):
                self._enqueue(result)

    # Writing.

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        async for key in self._queue:
            waiting = self._waiting.get(key)
            if waiting is None:
                continue
            early = waiting.not_before - loop.time()
            if early > 0 and not self._queue.shutting_down:
                self._queue.add_after(key, early)
                continue
            del self._waiting[key]
            self._under_way += 1
            delay = await self._write(waiting)
            self._under_way -= 1
            if delay is not None:
                self._requeue(key, waiting, delay)

    async def _write(self, waiting: _Waiting) -> float | None:
        """Try once to write; return the seconds until the next try, or None if there is none."""
        waiting.tries += 1
        failure: Exception
        try:
            await self._send(waiting.event, is_new=waiting.is_new)
        except ApiError as error:
            # AlreadyExists: the patch found no Event, but creating it did; the next try patches it.
            failure = error
            retriable = error.reason == "AlreadyExists" or error.retry_after is not None
        except (TransportError, DecodeError, OSError) as error:
            failure = error
            retriable = True
        except Exception as error:
            failure = error
            retriable = False
        else:
            self._written += 1
            return None
        if retriable and waiting.tries < _TRIES and not self._queue.shutting_down:
            return self._retry_delay(waiting, failure)
        self._refused += 1
        if isinstance(failure, ApiError) and failure.status == 403:
            self._log_forbidden(waiting.event, failure)
            return None
        key = f"{waiting.event.namespace}/{waiting.event.name}"
        line = "%s: event %s was not written: %s"
        self._errors.report(self.name, failure, line, self.name, key, failure, level=logging.WARNING, key=key, lines=2)
        return None

    def _log_forbidden(self, event: Event, failure: ApiError) -> None:
        if event.namespace in self._forbidden or len(self._forbidden) >= _NAMESPACES:
            return
        self._forbidden.add(event.namespace)
        remedy = "grant `create` and `patch` of events; this is logged once for each namespace"
        where = f"event {event.namespace}/{event.name}"
        _log.warning("%s: %s was not written, and others will not be: %s; %s", self.name, where, failure, remedy)

    async def _send(self, event: Event, *, is_new: bool) -> None:
        if is_new:
            try:
                await self.sink.create(event)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
            else:
                return
            if event.count == 1:
                return
        try:
            await self.sink.patch(event)
        except ApiError as error:
            if error.status != 404:
                raise
            await self.sink.create(event)

    def _retry_delay(self, waiting: _Waiting, failure: Exception) -> float:
        # The first delay is a random share of the period: writes that fail together are not retried together.
        share = self._random() if waiting.tries == 1 else 1 + _RETRY_JITTER * self._random()
        return max(share * _RETRY_PERIOD, getattr(failure, "retry_after", None) or 0.0)

    def _requeue(self, key: Hashable, waiting: _Waiting, delay: float) -> None:
        self._retries += 1
        newer = self._waiting.get(key)
        if newer is not None:
            waiting.event = newer.event
        waiting.not_before = asyncio.get_running_loop().time() + delay
        self._waiting[key] = waiting
        self._queue.add_after(key, delay)
