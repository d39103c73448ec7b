"""The requests of a controller on the event loop: a `Schedule` with a clock, one timer, and workers that wait."""

from __future__ import annotations

import asyncio
import random as _random
import time
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from aioinformer.concurrency import Slicer
from aioinformer.controller.queue.causes import LOW_PRIORITY, Cause
from aioinformer.controller.queue.outcomes import Failing, Outcome, Parked, QueueOptions, Run
from aioinformer.controller.queue.schedule import Schedule
from aioinformer.metrics import DURATION_BOUNDS, DurationCounter, QueueStatistics
from aioinformer.workqueue.queue import QueueShutDown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.metrics import MetricsProvider
    from aioinformer.resources.keys import ObjectName

_TAKEOVER = Cause("takeover")


class QueueSnapshot(msgspec.Struct, frozen=True):
    """The state of a queue of requests, for people.

    Attributes:
        name: of the queue.
        time: when the snapshot was made, on the queue's clock, as all times in it.
        ready: requests that wait for a worker.
        delayed: requests whose time has not come.
        running: the runs that are not finished.
        parked: keys that do not run before a change.
        failing: keys whose last attempt did not succeed.
        shutting_down: the queue accepts no more requests.
    """

    name: str
    time: float
    ready: int
    delayed: int
    running: tuple[Run, ...]
    parked: dict[ObjectName, Parked]
    failing: dict[ObjectName, Failing]
    shutting_down: bool


class RequestQueue:
    """The requests of a controller. `Schedule` states what it guarantees about order, merging, delays and retries.

    Only `get` and `drain` wait. The other methods are plain calls on the thread of the event loop: the handler of an
    informer calls `add`. A batch of adds, which is all adds without an await in between, wakes one worker; it wakes the
    next one if more is ready. A worker that is cancelled in `get` loses no request.

    Args:
        name: for statistics and error messages.
        options: the parameters.
        random: returns numbers in [0, 1), for jitter.
        metrics: reads the statistics of the queue. A queue without a name is not registered.

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
        self._getters: deque[asyncio.Future[None]] = deque()
        #: The worker that has been woken and has not run since.
        self._woken: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._drains: set[asyncio.Future[bool]] = set()
        #: Taking a run that is ready does not suspend: without pauses, one worker could block the event loop.
        self._slicer = Slicer()
        self._waited = DurationCounter(DURATION_BOUNDS)
        self._worked = DurationCounter(DURATION_BOUNDS)
        if metrics is not None and name:
            metrics.register(self)

    def add(self, key: ObjectName, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Request a run of a key. Once the queue is shutting down, the call has no effect.

        Args:
            key: of the object.
            cause: why. A parked key only runs again after a change of an input, not after an initial list or a resync.
            priority: higher ones first.
            after: seconds before the run may start.

        Raises:
            UsageError: `after` is negative or no number.
        """
        self._schedule.add(key, cause, self._now(), priority=priority, after=after)
        self._update()

    def take_over(self, keys: Iterable[ObjectName]) -> None:
        """Request runs of all known keys at low priority, at the begin of a term of leadership."""
        now = self._now()
        for key in keys:
            self._schedule.add(key, _TAKEOVER, now, priority=LOW_PRIORITY)
        self._update()

    def take(self) -> Run | None:
        """Start the next run, if there is one now."""
        now = self._now()
        run = self._schedule.take(now)
        if run is not None:
            self._waited.observe(now - run.due)
        return run

    async def get(self) -> Run:
        """Wait for the next run and start it. Call `finish` at its end. If the call is cancelled, no run is started.

        Raises:
            QueueShutDown: the queue was shut down, or is drained; the worker can end.
        """
        await self._slicer.pause()
        while (run := self.take()) is None:
            if self._schedule.draining and self._schedule.idle:
                raise QueueShutDown(f"{self._title} was shut down")
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except BaseException:
                if getter is self._woken:
                    self._woken = None
                    self._update()  # wake another worker instead
                elif getter in self._getters:
                    self._getters.remove(getter)
                raise
            if getter is self._woken:
                self._woken = None
        self._update()
        return run

    def release(self, run: Run) -> None:
        """Free the worker of a run that is not finished yet, such as one that waits until caches have its writes.

        It no longer counts for the limit of its group, nor as work in statistics. The key is not handed out before
        `finish`. May be repeated.

        Raises:
            UsageError: the run is finished.
        """
        if self._schedule.release(run):
            self._worked.observe(self._now() - run.started)
            self._update()

    def finish(self, run: Run, outcome: Outcome) -> Parked | float | None:
        """End a run.

        Returns:
            Why the key is parked; or the earliest time of its next run, in seconds of the event loop's clock; or None
            if nothing is requested.

        Raises:
            UsageError: the run is finished.
        """
        now = self._now()
        self.release(run)
        following = self._schedule.finish(run, outcome, now)
        self._update()
        return following

    def parked(self) -> dict[ObjectName, Parked]:
        """Return the keys that are parked, and why."""
        return dict(self._schedule.parked)

    def retry_parked(self, keys: Iterable[ObjectName] | None = None) -> int:
        """Request runs of parked keys; their attempts count from 1 again.

        Args:
            keys: which ones; None for all. Keys that are not parked are ignored.

        Returns:
            How many keys were parked.
        """
        retried = self._schedule.retry_parked(keys, self._now())
        self._update()
        return retried

    def shut_down(self) -> None:
        """Accept no more requests, and drop those that have not started: workers in `get` end. Idempotent.

        Runs can still be finished; `drain` waits for them. Another `drain` that waits already returns False.
        """
        self._schedule.shut_down()
        self._end_drains(False)
        self._update()

    async def drain(self) -> bool:
        """Accept no more requests, drop delayed ones, and wait until all others are handed out and finished.

        Without workers this waits for ever; use `asyncio.timeout` to set a limit. After `shut_down` it waits for the
        runs that have started.

        Returns:
            True if all are finished; False if `shut_down` was called in the meantime.
        """
        self._schedule.drain()
        drain: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._drains.add(drain)
        self._update()
        try:
            return await drain
        finally:
            self._drains.discard(drain)

    def statistics(self) -> QueueStatistics:
        """Return figures for metrics, in client-go's terms, computed on each call. Thread-safe."""
        at = self._now()
        working = [at - run.started for run in tuple(self._schedule.running.values()) if not run.released]
        return QueueStatistics(
            name=self.name,
            depth=self._schedule.ready,
            processing=len(working),
            delayed=self._schedule.delayed,
            adds=self._schedule.adds,
            retries=self._schedule.retries,
            waited=self._waited.snapshot(),
            worked=self._worked.snapshot(),
            unfinished_work=sum(working),
            longest_running=max(working, default=0.0),
            shutting_down=self._schedule.draining,
        )

    def snapshot(self, limit: int = 100) -> QueueSnapshot:
        """Return what runs, waits, fails and is parked.

        Args:
            limit: the number of failing keys to name.
        """
        return QueueSnapshot(
            name=self.name,
            time=self._now(),
            ready=self._schedule.ready,
            delayed=self._schedule.delayed,
            running=tuple(self._schedule.running.values()),
            parked=self.parked(),
            failing=self._schedule.failing(limit),
            shutting_down=self._schedule.draining,
        )

    def __len__(self) -> int:
        """Return the number of requests that wait for a worker."""
        return self._schedule.ready

    def __repr__(self) -> str:
        state = ", shutting down" if self._schedule.draining else ""
        return f"<{self._title}: {len(self)} ready, {len(self._schedule.running)} running{state}>"

    @property
    def _title(self) -> str:
        return f"request queue {self.name!r}" if self.name else "the request queue"

    def _update(self) -> None:
        """Wake a worker if a run is available, end drains that are done, and set the timer."""
        schedule = self._schedule
        if schedule.draining and schedule.idle:
            self._end_drains(True)
            while self._getters:
                self._wake_getter()
        elif self._getters and self._woken is None and schedule.available():
            self._wake_getter()
        due = schedule.next_time()
        if self._timer is not None:
            if self._timer.when() == due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._on_time, due)

    def _on_time(self, due: float) -> None:
        self._timer = None
        # Event loops may call a timer slightly early.
        self._schedule.advance(max(due, self._now()))
        self._update()

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                self._woken = getter
                return

    def _end_drains(self, drained: bool) -> None:
        for drain in self._drains:
            if not drain.done():
                drain.set_result(drained)

    @staticmethod
    def _now() -> float:
        """Return the time of the event loop; without a running loop, of the clock that event loops use."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return time.monotonic()
