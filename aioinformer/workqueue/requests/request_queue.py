"""The requests of a controller on the event loop: a `Schedule` with a clock, one timer, and workers that wait."""

from __future__ import annotations

import asyncio
import random as _random
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

import msgspec

from aioinformer.concurrency import Slicer
from aioinformer.metrics.counters import DELAY_BOUNDS, DURATION_BOUNDS, WORK_BOUNDS, DurationCounter
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.metrics.statistics import QueueStatistics
from aioinformer.resources.keys import ObjectName
from aioinformer.workqueue.queue import QueueShutDown
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, Cause
from aioinformer.workqueue.requests.outcomes import Failing, Outcome, Parked, QueueOptions, Run, Unfinished
from aioinformer.workqueue.requests.schedule import Schedule
from aioinformer.workqueue.waiting import DueTimer, Getters, loop_time

_TAKEOVER = Cause("takeover")
#: The priority of keys whose objects are gone, at a takeover.
_LAST: Final = LOW_PRIORITY - 1


class QueueSnapshot(msgspec.Struct, frozen=True):
    """The state of a queue of requests at a time of the event loop's clock: counts, runs, and keys with problems.

    `failing_keys` is the number of all failing keys, of which `failing` has some.
    """

    time: float
    ready: int
    delayed: int
    gone: int
    running: tuple[Run, ...]
    parked: dict[ObjectName, Parked]
    failing: dict[ObjectName, Failing]
    failing_keys: int


class KeySnapshot(msgspec.Struct, frozen=True):
    """A key of a queue of requests. Times are those of the event loop's clock.

    Attributes:
        key: of the object.
        state: "running", "parked", "ready" (it waits for a worker), "delayed" (until `at`), or "idle".
        at: when it became ready, or the earliest time of its next run; None without a request.
        causes: of the request; of a key that runs, those of the run.
        causes_left_out: how many further causes were merged.
        parked: why it is parked; None if it is not.
        failing: its failures; None if its last run succeeded.
    """

    key: ObjectName
    state: str
    at: float | None
    causes: tuple[Cause, ...]
    causes_left_out: int
    parked: Parked | None
    failing: Failing | None


class RequestQueue:
    """The requests of a controller. `aioinformer.workqueue.requests.schedule` states the order, and what is merged.

    Only `get` and `drain` wait. The other methods are plain calls on the thread of the event loop: handlers
    call `add`. A batch of adds, without an await in between, wakes one worker, which wakes the next one if more is
    ready. A worker that is cancelled in `get` loses no request.

    Args:
        name: for statistics and error messages.
        metrics: reads the statistics of the queue. A queue without a name is not registered.

    Attributes:
        durations: of the runs.
        answered: the time from a change of an input to the end of the run that answers it.

    Raises:
        UsageError: the metrics already have a queue of this name.
    """

    def __init__(
        self,
        name: str = "",
        options: QueueOptions | None = None,
        *,
        random: Callable[[], float] = _random.random,
        metrics: MetricsProvider | None = None,
    ) -> None:
        self.name = name
        self.options = options or QueueOptions()
        self._schedule = Schedule(self.options, random)
        #: Keys of a standby whose objects are gone: when that was noticed last, and why. The oldest are the first.
        self._gone: OrderedDict[ObjectName, tuple[float, Cause]] = OrderedDict()
        self._getters = Getters(self._on_lost)
        #: Whether a worker has been woken and has not run since.
        self._woken = False
        self._timer = DueTimer(self._on_time)
        self._drained = asyncio.Event()
        #: Taking a run that is ready does not suspend: without pauses, one worker could block the event loop.
        self._slicer = Slicer()
        self._waited = DurationCounter(DURATION_BOUNDS)
        self.durations = DurationCounter(WORK_BOUNDS)
        self.answered = DurationCounter(DELAY_BOUNDS)
        if metrics is not None and name:
            metrics.register(self)

    def add(self, key: ObjectName, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Request a run of a key. Once the queue is shutting down, the call has no effect.

        Args:
            cause: why. A parked key only runs again after a change of an input, not after an initial list or a resync.
            priority: higher ones first.
            after: seconds before the run may start.

        Raises:
            UsageError: `after` is negative or no number.
        """
        self._schedule.add(key, cause, loop_time(), priority=priority, after=after)
        self._update()

    def add_as_standby(self, key: ObjectName, cause: Cause, *, priority: int, gone: bool, seen: float) -> None:
        """Request a run of a key while the leadership is awaited. Keys of gone objects are kept apart for a while.

        What a source or a caller requests stays in the queue, unless it comes after 8 other causes.

        Args:
            gone: whether the object does not exist.
            seen: keys that were gone before this time are dropped.
        """
        now = loop_time()
        if gone and cause.trigger not in ("source", "requested") and self._schedule.forget(key, now):
            self._gone[key] = (now, cause)
            self._gone.move_to_end(key)
            self._update()
        else:
            self._gone.pop(key, None)
            self.add(key, cause, priority=priority)
        self._drop_gone(seen)

    def take_over(self, keys: Iterable[ObjectName], seen: float = float("-inf")) -> None:
        """Request runs of these keys at low priority, and of those that are gone since `seen` after them."""
        now = loop_time()
        for key in keys:
            self._schedule.add(key, _TAKEOVER, now, priority=LOW_PRIORITY)
        self._drop_gone(seen)
        while self._gone:
            key, (_, cause) = self._gone.popitem(last=False)
            self._schedule.add(key, cause, now, priority=_LAST)
        self._update()

    def _drop_gone(self, seen: float) -> None:
        while self._gone and next(iter(self._gone.values()))[0] < seen:
            self._gone.popitem(last=False)

    def waiting(self) -> list[tuple[ObjectName, Cause]]:
        """Return the keys that have requests, and the first cause of each."""
        return [(each.key, each.causes[0]) for each in self._schedule.waiting()]

    def hand_over(self, following: Callable[[], RequestQueue]) -> RequestQueue:
        """Shut down, and return another queue with the requests of this one. What runs here is requested there."""
        now = loop_time()
        requests = [(run.key, run.causes, now, run.priority) for run in self._schedule.running.values()]
        requests += [(each.key, each.causes, each.at, each.priority) for each in self._schedule.waiting()]
        self.shut_down()
        other = following()
        for key, causes, at, priority in requests:
            for cause in causes:
                other._schedule.add(key, cause, now, priority=priority, after=max(0.0, at - now))
        other._gone = self._gone
        other._update()
        return other

    def take(self) -> Run | None:
        """Start the next run, if there is one now."""
        run = self._schedule.take(now := loop_time())
        if run is not None:
            self._waited.observe(now - run.due)
        return run

    async def get(self) -> Run:
        """Wait for the next run and start it. Call `finish` at its end. If the call is cancelled, no run is started.

        Raises:
            QueueShutDown: the queue was shut down, or is drained; the worker can end.
        """
        if self._slicer.count_step():
            await self._slicer.yield_to_loop()
        while (run := self.take()) is None:
            if self._schedule.draining and self._schedule.idle:
                raise QueueShutDown(f"request queue {self.name!r} was shut down")
            await self._getters.wait()
            self._woken = False
        if self._getters:  # otherwise, there is no worker to wake, and the timer is early at most
            self._update()
        return run

    def release(self, run: Run) -> None:
        """Stop counting a run for its group, and as work: its worker is free. May be repeated.

        The key is not handed out before `finish`: a run can wait until the caches have its writes.

        Raises:
            UsageError: the run is finished.
        """
        if self._schedule.release(run, now := loop_time()):
            self.durations.observe(now - run.started)
            self._update()

    def finish(self, run: Run, outcome: Outcome, now: float | None = None) -> Parked | float | None:
        """End a run. A change that arrived during the run keeps its key from being parked.

        Args:
            run: of `get`.
            outcome: what follows it.
            now: the present time by the clock of the event loop, if the caller knows it.

        Returns:
            Why the key is parked; or the earliest time of its next run, in seconds of the event loop's clock; or None
            if nothing is requested.

        Raises:
            UsageError: the run is finished.
        """
        if now is None:
            now = loop_time()
        released = run.released
        following = self._schedule.finish(run, outcome, now)
        if not released:
            self.durations.observe(now - run.started)
        if run.changed is not None and not isinstance(outcome, Unfinished):
            self.answered.observe(now - run.changed)
        self._update()
        return following

    def parked(self) -> dict[ObjectName, Parked]:
        """Return the keys that are parked, and why."""
        return dict(self._schedule.parked)

    def retry_parked(self, keys: Iterable[ObjectName] | None = None) -> int:
        """Request runs of parked keys, whose attempts count from 1 again; return how many there are.

        Args:
            keys: which ones; None for all. Keys that are not parked are ignored.
        """
        retried = self._schedule.retry_parked(keys, loop_time())
        self._update()
        return retried

    def forget(self, key: ObjectName) -> bool:
        """Drop what is requested for a key, its failures, and why it is parked; return whether that is possible.

        It is not if the key runs, or if a source or a caller has requested it.
        """
        dropped = self._schedule.forget(key, loop_time())
        self._update()
        return dropped

    def shut_down(self) -> None:
        """Accept no more requests, and drop those that have not started: workers in `get` end. Runs can be finished."""
        self._schedule.drain(loop_time(), shut_down=True)
        self._update()

    async def drain(self) -> None:
        """Accept no more requests, drop delayed ones, and wait until the others are handed out and finished.

        After `shut_down`, this waits for the runs that have started. Use `asyncio.timeout` to set a limit.
        """
        self._schedule.drain(loop_time())
        self._update()
        await self._drained.wait()

    def statistics(self) -> QueueStatistics:
        """Return figures for metrics, in client-go's terms, computed on each call. Thread-safe."""
        now = loop_time()
        schedule = self._schedule
        working = [now - run.started for run in tuple(schedule.running.values()) if not run.released]
        return QueueStatistics(
            name=self.name,
            depth=len(schedule.lanes),
            processing=len(working),
            delayed=schedule.delayed,
            adds=schedule.adds,
            retries=schedule.retries,
            waited=self._waited.snapshot(),
            worked=self.durations.snapshot().within(DURATION_BOUNDS),
            unfinished_work=sum(working),
            longest_running=max(working, default=0.0),
            shutting_down=schedule.draining,
        )

    def problems(self) -> tuple[dict[str, int], int, float]:
        """Return parked keys by kind, how many keys fail, and how long the oldest ready one waits. Thread-safe."""
        schedule = self._schedule
        parked = Counter(each.kind for each in list(schedule.parked.values()))
        oldest = schedule.oldest()
        return dict(parked), len(schedule.failing), 0.0 if oldest is None else max(0.0, loop_time() - oldest)

    def longest_failure(self) -> float:
        """Return for how long the key that fails longest has had no successful run; 0 for none. Thread-safe."""
        first = min((each.since for each in list(self._schedule.failing.values())), default=None)
        return 0.0 if first is None else max(0.0, loop_time() - first)

    def snapshot(self, limit: int | None = 100) -> QueueSnapshot:
        """Return what runs, waits, fails and is parked; at most `limit` of the failing keys, the oldest ones.

        Thread-safe.
        """
        schedule = self._schedule
        running = tuple(schedule.running.values())
        known = schedule.failing.copy()
        failing = dict(islice(known.items(), limit))
        counts = len(schedule.lanes), schedule.delayed, len(self._gone)
        return QueueSnapshot(loop_time(), *counts, running, self.parked(), failing, len(known))

    def failing(self, key: ObjectName) -> Failing | None:
        """Return the failures of a key in a row; None if its last run succeeded, or the key is parked."""
        return self._schedule.failing.get(key)

    def hasten(self, key: ObjectName) -> None:
        """Let the request of a key start as soon as one that is added now, if there is one."""
        _, entry = self._schedule.state(key)
        if entry is not None and entry.causes:
            self.add(key, entry.causes[0], priority=entry.priority)

    def runs(self, key: ObjectName) -> bool:
        """Return whether a run of a key is not finished."""
        return key in self._schedule.running

    def key(self, key: ObjectName) -> KeySnapshot:
        """Return the state of a key."""
        schedule = self._schedule
        state, entry = schedule.state(key)
        run = schedule.running.get(key)
        requested = None if entry is None or not entry.causes else entry
        source = run or requested
        left_out = 0 if requested is None else requested.left_out
        if run is not None:
            left_out = run.causes_left_out
        return KeySnapshot(
            key,
            state,
            None if requested is None else requested.at,
            () if source is None else source.causes,
            left_out,
            schedule.parked.get(key),
            schedule.failing.get(key),
        )

    def oldest(self, limit: int) -> list[ObjectName]:
        """Return the keys that have waited longest for a worker."""
        return self._schedule.longest_ready(limit)

    def _update(self) -> None:
        """Wake a worker if a run is available, all if the queue is drained, and set the timer."""
        schedule = self._schedule
        if schedule.draining and schedule.idle:
            self._drained.set()
            self._getters.wake_all()
        elif not self._woken and self._getters and schedule.lanes.available():
            self._woken = self._getters.wake()
        due = schedule.next_time()
        if due != self._timer.due:
            self._timer.set(due)

    def _on_time(self, now: float) -> None:
        self._schedule.advance(now)
        self._update()

    def _on_lost(self) -> None:
        self._woken = False
        self._update()
