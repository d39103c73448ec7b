"""The schedule of requests: which key runs next, when, and why. It has no event loop and no clock.

Guarantees:

- A key has at most one run at a time.
- Each `add` is followed by a run that starts after it, unless the key is parked or the schedule is shut down. Adds of a
  key that has not started are merged: the earliest time, the highest priority, the first 8 different causes, and the
  number of the others. Adds of a key that runs cause one more run.
- Of the requests that are ready, those of the highest priority are handed out first. Among equal priorities, groups
  take turns, and the requests of a group are first in, first out. A request whose priority rises goes to the end of
  its new lane. A lane is one group and priority.
- Nothing starves. A request that has waited `ageing` seconds in its lane is overdue. While there are overdue requests,
  every second one that is handed out is overdue, whatever its priority, and their lanes take turns. So an overdue
  request at place p of its lane, with n lanes in all, starts within about 2pn runs. Groups at their limit are skipped.
- A failed attempt is followed by a delay that grows with each one. The first change of an input after the failure, or
  during the failed attempt, starts one early run: a fix need not wait. If that run fails, it does not count, the end of
  the backoff stays, and further changes wait for it. Initial lists, resyncs and takeovers always wait.
- `min_interval` holds for every run, retries and early runs included.
- A record of failures exists only while a retry waits or runs. It is dropped on success and when the key is parked.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from aioinformer.controller.queue.causes import NORMAL_PRIORITY, Cause
from aioinformer.controller.queue.lanes import Entry, Lanes
from aioinformer.controller.queue.outcomes import Again, Failing, Park, Parked, QueueOptions, Retry, Run
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.controller.queue.outcomes import Outcome
    from aioinformer.resources.keys import ObjectName

#: The triggers that say that an input changed.
CHANGES: Final = frozenset({"added", "updated", "deleted", "source", "requested"})

_CAUSES: Final = 8
#: Due keys that `advance` makes ready at a time: more would block the event loop.
_SLICE: Final = 1000
_CONFLICT_DELAY: Final = 0.02
_RESULT: Final = Cause("result")
_RETRY: Final = Cause("retry")
_REQUESTED: Final = Cause("requested")

# The states of an entry. While a key runs, another run of it can be requested: then the entry has causes.
_NEW, _DELAYED, _READY, _RUNNING, _PARKED, _RESTING = range(6)


class _Record:
    """The failures of a key since its last success."""

    __slots__ = ("bypassed", "conflicts", "delay", "error", "failures", "until")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.failures = 0
        self.conflicts = 0
        #: The latest delay without jitter, and the end of the backoff.
        self.delay = 0.0
        self.until = float("-inf")
        #: Whether a change has started a run before the end of this backoff.
        self.bypassed = False


class Schedule:
    """The state machine of a queue of requests. The caller passes the time, which must not go back.

    Each operation takes O(log n) on average, except `shut_down` and snapshots.

    Args:
        options: the parameters.
        random: returns numbers in [0, 1), for jitter.

    Attributes:
        adds: requests that became ready so far.
        retries: requests with a delay so far.
    """

    def __init__(self, options: QueueOptions, random: Callable[[], float]) -> None:
        self._options = options
        self._random = random
        self._entries: dict[ObjectName, Entry] = {}
        self._lanes = Lanes(options.ageing, options.group_limit)
        #: (time, number, entry) of entries that are delayed or resting. Valid if the entry still has that time.
        self._times: list[tuple[float, int, Entry]] = []
        self._numbers = count()
        self._delayed = self._resting = 0
        self._running: dict[ObjectName, Run] = {}
        self._failing: dict[ObjectName, _Record] = {}
        self._parked: dict[ObjectName, Parked] = {}
        self._draining = self._shut_down = False
        self.adds = 0
        self.retries = 0

    def add(self, key: ObjectName, cause: Cause, now: float, *, priority: int = 0, after: float = 0.0) -> None:
        """Request a run of a key, as the guarantees describe. Once it drains or is shut down, do nothing.

        Args:
            key: of the object.
            cause: why. A parked key only runs again after a change: one of the triggers in `CHANGES`.
            now: the time.
            priority: higher ones first.
            after: seconds before the run may start.

        Raises:
            UsageError: `after` is negative or no number.
        """
        if not after >= 0:
            raise UsageError(f"add({key}): after must be seconds, 0 or more, not {after!r}")
        if self._draining:
            return
        changed = cause.trigger in CHANGES
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = Entry(key, self._options.group(key))
        elif entry.state == _PARKED:
            if not changed:
                return
            self._unpark(entry)
        at = now
        if after:
            at += after
            self.retries += 1
        if not entry.causes:
            entry.causes, entry.changed, entry.priority = (cause,), changed, priority
            entry.enqueued, entry.at = now, at
            if entry.state == _RESTING:
                self._resting -= 1
            if entry.state != _RUNNING:
                self._place(entry, now)
            return
        _merge_causes(entry, (cause,))
        entry.changed = entry.changed or changed
        if entry.state == _DELAYED:
            at = self._earliest(entry, at, changed)
            if at < entry.at:
                self._delayed -= 1
                entry.at, entry.priority = at, max(entry.priority, priority)
                self._place(entry, now)
                return
        if priority > entry.priority:
            if entry.state == _READY:
                self._lanes.remove(entry)
                entry.priority = priority
                self._lanes.push(entry, now)
            entry.priority = priority
        entry.at = min(entry.at, at)

    def take(self, now: float) -> Run | None:
        """Start the next run; return None if no request is ready, or all groups with requests are at their limit."""
        self.advance(now)
        entry = self._lanes.pop(now)
        if entry is None:
            return None
        record = self._failing.get(entry.key)
        run = Run(
            entry.key,
            entry.causes,
            entry.left_out,
            1 if record is None else record.failures + 1,
            entry.enqueued,
            entry.priority,
            due=entry.at,
            started=now,
            early=record is not None and record.until > max(now, entry.at),
        )
        entry.causes, entry.left_out, entry.changed = (), 0, False
        entry.state, entry.run, entry.started = _RUNNING, run, now
        self._running[entry.key] = run
        return run

    def release(self, run: Run) -> bool:
        """Stop counting a run for its group. The key is not handed out before `finish`.

        Returns:
            False if the run was released before.

        Raises:
            UsageError: the run is finished.
        """
        entry = self._entry_of(run)
        if run.released:
            return False
        run.released = True
        self._lanes.end_run(entry.group)
        return True

    def finish(self, run: Run, outcome: Outcome, now: float) -> Parked | float | None:
        """End a run. What was requested during the run, and what the outcome requests, become one request.

        A change that arrived during the run keeps the key from being parked.

        Returns:
            Why the key is parked; or the earliest time of its next run; or None if nothing is requested.

        Raises:
            UsageError: the run is finished.
        """
        entry = self._entry_of(run)
        self.release(run)
        del self._running[run.key]
        entry.run, entry.state = None, _NEW
        at, reason, priority = None, "", run.priority
        if isinstance(outcome, Retry):
            at, reason = self._count_retry(run, outcome, now)
        else:
            self._failing.pop(run.key, None)
            if isinstance(outcome, Again):
                at = outcome.at
                priority = run.priority if outcome.priority is None else outcome.priority
            elif isinstance(outcome, Park):
                reason = outcome.reason or "no reason given"
        if reason:
            self._failing.pop(run.key, None)
            if not entry.changed:
                return self._park(entry, Parked(reason, now, run.attempt))
        elif at is not None:
            self._request_again(entry, run, isinstance(outcome, Retry), at, priority, now)
        if entry.causes:
            self._place(entry, now)
        elif entry.started + self._options.min_interval > now and not self._draining:
            entry.state, entry.at = _RESTING, entry.started + self._options.min_interval
            self._resting += 1
            self._push_time(entry)
        else:
            del self._entries[run.key]
        return entry.at if entry.causes else None

    def advance(self, now: float) -> None:
        """Make requests ready whose time has come, but not more than a slice of them; see `next_time`."""
        for _ in range(_SLICE):
            if not self._times or self._times[0][0] > now:
                return
            at, _, entry = heappop(self._times)
            if entry.at != at:
                continue
            if entry.state == _DELAYED:
                self._delayed -= 1
                self._place(entry, now)
            elif entry.state == _RESTING:
                self._resting -= 1
                entry.state = _NEW
                del self._entries[entry.key]

    def next_time(self) -> float | None:
        """Return when `advance` must be called next; None if nothing is delayed."""
        while self._times:
            at, _, entry = self._times[0]
            if entry.at == at and entry.state in (_DELAYED, _RESTING):
                return at
            heappop(self._times)
        return None

    def available(self) -> bool:
        """Return whether `take` has a run, of what `advance` has made ready."""
        return self._lanes.available()

    # Parked keys, the end, and inspection.

    def retry_parked(self, keys: Iterable[ObjectName] | None, now: float) -> int:
        """Request runs of these parked keys, or of all; return how many there are."""
        chosen = [key for key in (list(self._parked) if keys is None else keys) if key in self._parked]
        for key in chosen:
            self.add(key, _REQUESTED, now, priority=NORMAL_PRIORITY)
        return len(chosen)

    def drain(self) -> None:
        """Accept no more requests, and drop those that are delayed."""
        self._draining = True
        self._drop_requests((_DELAYED, _RESTING))

    def shut_down(self) -> None:
        """Accept no more requests, and drop all that have not started. Runs can still be finished."""
        self._draining = self._shut_down = True
        self._drop_requests((_DELAYED, _RESTING, _READY))

    @property
    def draining(self) -> bool:
        """Whether `drain` or `shut_down` was called."""
        return self._draining

    @property
    def idle(self) -> bool:
        """Whether no request is ready and none runs."""
        return not self._running and not len(self._lanes)

    @property
    def ready(self) -> int:
        """The number of requests that are ready, at a limit of their group or not."""
        return len(self._lanes)

    @property
    def delayed(self) -> int:
        """The number of requests whose time has not come."""
        return self._delayed

    @property
    def running(self) -> Mapping[ObjectName, Run]:
        """The runs that are not finished."""
        return self._running

    @property
    def parked(self) -> Mapping[ObjectName, Parked]:
        """The keys that are parked."""
        return self._parked

    def failing(self, limit: int) -> dict[ObjectName, Failing]:
        """Return keys whose last attempt did not succeed, those that have failed for the longest time first."""
        return {
            key: Failing(record.failures, record.error, record.until)
            for key, record in islice(self._failing.items(), limit)
        }

    # Steps.

    def _entry_of(self, run: Run) -> Entry:
        entry = self._entries.get(run.key)
        if entry is None or entry.run is not run:
            raise UsageError(f"the run of {run.key} is finished already; call finish once for each run")
        return entry

    def _count_retry(self, run: Run, outcome: Retry, now: float) -> tuple[float, str]:
        """Count a run that did not succeed; return when the next one may start, or the reason to park the key."""
        backoff = self._options.backoff
        record = self._failing.get(run.key)
        if record is None:
            record = self._failing[run.key] = _Record(outcome.error)
        record.error = outcome.error
        if outcome.counted and not run.early:
            record.failures += 1
            record.bypassed = False
            record.delay = min(record.delay * backoff.factor or backoff.initial, backoff.cap)
            if record.failures == self._options.max_attempts:
                error = type(outcome.error).__name__
                return now, f"gave up after {record.failures} failed attempts, the last with {error}: {outcome.error}"
        record.conflicts = min(record.conflicts + 1, 30) if outcome.soon else 0
        self.retries += 1
        if outcome.delay is not None:
            at = now + outcome.delay
        elif outcome.soon:
            at = now + min(_CONFLICT_DELAY * 2 ** (record.conflicts - 1), backoff.cap) * (1 + self._random())
        elif record.until > now:
            at = record.until
        else:
            at = now + (record.delay or backoff.initial) * (1 + backoff.jitter * self._random())
        if outcome.counted and not outcome.soon:
            record.until = max(record.until, at)
        return at, ""

    def _request_again(self, entry: Entry, run: Run, retry: bool, at: float, priority: int, now: float) -> None:
        """Merge what the outcome of a run requests with what was requested during the run."""
        causes, left_out = entry.causes, entry.left_out
        if causes:
            at = min(at, self._earliest(entry, entry.at, entry.changed))
            priority = max(priority, entry.priority)
        entry.at, entry.priority = at, priority
        if retry:
            entry.causes, entry.left_out, entry.enqueued = (_RETRY,), run.causes_left_out, run.enqueued
            _merge_causes(entry, run.causes)
        else:
            entry.causes, entry.left_out, entry.enqueued = (_RESULT,), 0, entry.enqueued if causes else now
        _merge_causes(entry, causes)
        entry.left_out += left_out

    def _earliest(self, entry: Entry, at: float, changed: bool) -> float:
        """Return when a cause may start a run. During a backoff, the first change may; others wait for its end."""
        at = max(at, entry.started + self._options.min_interval)
        record = self._failing.get(entry.key)
        if record is None or record.until <= at:
            return at
        if changed and not record.bypassed:
            record.bypassed = True
            return at
        return record.until

    def _place(self, entry: Entry, now: float) -> None:
        """Put a request into its lane, or let it wait for its time."""
        at = entry.at = max(entry.at, entry.started + self._options.min_interval)
        if self._shut_down or (self._draining and at > now):
            entry.causes, entry.state = (), _NEW
            del self._entries[entry.key]
        elif at <= now:
            entry.state = _READY
            self.adds += 1
            self._lanes.push(entry, now)
        else:
            entry.state = _DELAYED
            self._delayed += 1
            self._push_time(entry)

    def _push_time(self, entry: Entry) -> None:
        heappush(self._times, (entry.at, next(self._numbers), entry))
        if len(self._times) > 2 * (self._delayed + self._resting) + 16:
            states = (_DELAYED, _RESTING)
            self._times = [time for time in self._times if time[0] == time[2].at and time[2].state in states]
            heapify(self._times)

    def _park(self, entry: Entry, parked: Parked) -> Parked:
        entry.causes, entry.left_out, entry.state = (), 0, _PARKED
        self._parked[entry.key] = parked
        return parked

    def _unpark(self, entry: Entry) -> None:
        entry.state = _NEW
        del self._parked[entry.key]

    def _drop_requests(self, states: tuple[int, ...]) -> None:
        for entry in [each for each in self._entries.values() if each.state in states]:
            if entry.state == _READY:
                self._lanes.remove(entry)
            entry.state = _NEW
            del self._entries[entry.key]
        self._delayed = self._resting = 0
        self._times.clear()


def _merge_causes(entry: Entry, causes: tuple[Cause, ...]) -> None:
    """Add causes to those of an entry: each different one once, the first 8; the others are counted."""
    for cause in causes:
        if cause in entry.causes:
            continue
        if len(entry.causes) < _CAUSES:
            entry.causes += (cause,)
        else:
            entry.left_out += 1
