"""Writes Events to a sink, in the background: whoever records one never waits, whatever the sink does.

The rules (EV-01, EV-03, EV-12):

- What becomes of an Event is decided when it is recorded. What is to be written waits by key, one place for each: a
  patch that waits behind another one, or behind the Event that it is about, takes its place. So repetitions of a few
  Events need little room, however long the sink is away.
- There is room for 1000 keys. What comes when all of it is taken is dropped, counted, and the log is told of the first.
- Eight workers write; two of them never the same key, so an Event is there before it is patched.
- A patch of something that the server does not know (any more) becomes a new Event.
- What fails without an answer, or with one that cannot be read, is tried again after ten seconds and a little, twelve
  times altogether. It waits for that in its place: no worker does. A refusal is final, unless the server says when it
  wants to be asked again. That an Event exists already means that it was written, and that the answer got lost.
- At the end, what waits has a grace: it is written, at once and once. What is left then is counted as lost.

Where client-go is not followed: its core/v1 sink writes one after the other, and sleeps between two tries of one while
all others wait; a series is written by whichever worker comes first.
"""

from __future__ import annotations

import asyncio
import random as random_module
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.concurrency import running_loop
from aioinformer.errors import ApiError, DecodeError, TransportError
from aioinformer.logs import get_logger
from aioinformer.workqueue.delaying import DelayingQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from aioinformer.events.correlator import Correlator, EventCorrelateResult
    from aioinformer.events.event import Event
    from aioinformer.events.sink import EventSink

_log = get_logger("aioinformer.events")


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """How Events are written to a sink; times in seconds.

    Attributes:
        queue_size: so many Events wait at most; what is more is dropped.
        workers: so many are written at a time.
        tries: for each, the first included.
        retry_period: between two tries.
        retry_jitter: each period is longer by a random share, up to this one.
    """

    queue_size: int = 1000
    workers: int = 8
    tries: int = 12
    retry_period: float = 10.0
    retry_jitter: float = 0.25

    def __post_init__(self) -> None:
        for name in ("queue_size", "workers", "tries"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        for name in ("retry_period", "retry_jitter"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, not {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class RecordingStatistics:
    """What became of what was recorded, so far.

    Attributes:
        recorded: Events that came.
        skipped: of them, those that the correlation held back; they are counted in others, or were too many.
        written: writes that came through, patches included.
        retries: tries after the first.
        refused: given up because the sink did not want them, or after the last try.
        dropped: nowhere written because too many waited, or the grace of the end was over.
        waiting: not yet written.
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
    """What is recorded, on its way to one sink.

    Args:
        sink: where to.
        correlator: what is written of it; by default, what the sink says.
        options: how.
        name: for tasks and logs.
        random: for the jitter, gives numbers in [0, 1).

    Attributes:
        sink: as given.
    """

    def __init__(
        self,
        sink: EventSink,
        correlator: Correlator | None = None,
        options: RecordingOptions | None = None,
        *,
        name: str = "event recording",
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self.name = name
        self.sink = sink
        self._correlator = correlator or sink.new_correlator()
        self._options = options or RecordingOptions()
        self._random = random
        self._queue: DelayingQueue[Hashable] = DelayingQueue(name)
        self._waiting: dict[Hashable, _Waiting] = {}
        self._under_way = 0
        self._recorded = self._skipped = self._written = self._retries = self._refused = self._dropped = 0

    def record(self, event: Event) -> None:
        """Takes an Event. A plain call that never waits."""
        self._recorded += 1
        result = self._correlator.event_correlate(event, running_loop("an event is recorded").time())
        if result.skip:
            self._skipped += 1
        else:
            self._put(result)

    async def run(self) -> None:
        """Writes, until cancelled or `drain()`ed."""
        async with asyncio.TaskGroup() as tasks:
            period = tasks.create_task(self._periodically(), name=f"{self.name}: series")
            workers = [
                tasks.create_task(self._work(), name=f"{self.name}: worker {number}")
                for number in range(self._options.workers)
            ]
            await asyncio.wait(workers)
            period.cancel()

    async def drain(self) -> None:
        """Takes nothing in any more, and returns when everything was written or given up; `run()` ends with it."""
        for result in self._correlator.finish():
            self._put(result)
        await self._queue.shut_down_with_drain(delayed="now")

    def statistics(self) -> RecordingStatistics:
        """What became of what was recorded."""
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
        """Nothing is written any more: what still waits is lost."""
        lost = len(self._waiting) + self._under_way
        if lost:
            _log.warning("%s: %d events were not written before the end", self.name, lost)
        self._dropped += lost
        self._waiting.clear()
        self._under_way = 0
        self._queue.shut_down()

    # What waits.

    def _put(self, result: EventCorrelateResult) -> None:
        key = result.key, result.event.name  # what one says must not take the place of what another one of it said
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.event = result.event
        elif self._queue.shutting_down or len(self._waiting) >= self._options.queue_size:
            if not self._dropped:
                _log.warning("%s: events are dropped, because too many wait or it has ended", self.name)
            self._dropped += 1
        else:
            self._waiting[key] = _Waiting(result.event, is_new=result.event.count == 1)
            self._queue.add(key)

    async def _periodically(self) -> None:
        loop = asyncio.get_running_loop()
        while self._correlator.period:
            await asyncio.sleep(self._correlator.period)
            for result in self._correlator.due(loop.time()):
                self._put(result)

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
                self._put_back(key, waiting, delay)

    async def _write(self, waiting: _Waiting) -> float | None:
        """One try; returns the seconds until the next one, None if there is none to be."""
        waiting.tries += 1
        failure: Exception
        try:
            await self._send(waiting.event, is_new=waiting.is_new)
        except ApiError as error:
            # To be patched it was not there, and to be created it was: the next try finds out.
            failure, worth_another = error, error.reason == "AlreadyExists" or error.retry_after is not None
        except (TransportError, DecodeError, OSError) as error:
            failure, worth_another = error, True
        except Exception as error:
            failure, worth_another = error, False
        else:
            self._written += 1
            return None
        if worth_another and waiting.tries < self._options.tries and not self._queue.shutting_down:
            return self._delay(waiting, failure)
        self._refused += 1
        event = waiting.event
        _log.warning("%s: event %s/%s was not written: %s", self.name, event.namespace, event.name, failure)
        return None

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

    def _delay(self, waiting: _Waiting, failure: Exception) -> float:
        options = self._options
        # The first pause is of any length up to the whole: many that fail at the same time do not come back together.
        share = self._random() if waiting.tries == 1 else 1 + options.retry_jitter * self._random()
        return max(share * options.retry_period, getattr(failure, "retry_after", None) or 0.0)

    def _put_back(self, key: Hashable, waiting: _Waiting, delay: float) -> None:
        self._retries += 1
        newer = self._waiting.get(key)
        if newer is not None:
            waiting.event = newer.event
        waiting.not_before = asyncio.get_running_loop().time() + delay
        self._waiting[key] = waiting
        self._queue.add_after(key, delay)
