"""The schedule of requests: which key runs next, when, and why. It has no event loop and no clock.

Guarantees:

- A key has at most one run at a time.
- Each `add` is followed by a run that starts after it, unless the key is parked or forgotten, or the schedule is shut
  down. Adds of a key that has not started are merged: the earliest time, the highest priority, the first 8 different
  causes, and the number of the others. Adds of a key that runs cause one more run.
- Of the requests that are ready, those of the highest priority are handed out first. Among equal priorities, groups
  take turns, and the requests of a group are first in, first out. A request whose priority rises goes to the end of
  its new lane. A lane is one group and priority.
- Nothing starves. A request that has waited 30 seconds in its lane is overdue. While there are overdue requests,
  every second one that is handed out is overdue, of any priority, and their lanes take turns. So an overdue
  request at place p of its lane, with n lanes in all, starts within about 2pn runs. Groups at their limit are skipped.
- A failed attempt is followed by a delay that grows with each one. The first change of an input after the failure, or
  during the failed attempt, starts one early run: a fix need not wait. If that run fails, it does not count, the end of
  the backoff stays, and further changes wait for it. Initial lists, resyncs and takeovers always wait.
- Conflicts in a row are retried soon, and are no failed attempts. From the fifth one on, they are.
- `min_interval` holds for every run, retries and early runs included.
- A record of failures exists only while a retry waits or runs. It is dropped on success and when the key is parked.
- Each operation takes O(log n) on average, except `drain` and `shut_down`.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush, nsmallest
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from aioinformer.errors import UsageError
from aioinformer.functions import cause_of, described
from aioinformer.workqueue.requests.causes import Cause
from aioinformer.workqueue.requests.lanes import Entry, Lanes
from aioinformer.workqueue.requests.outcomes import (
    LASTING_CONFLICT,
    Again,
    Failing,
    Finished,
    Park,
    Parked,
    QueueOptions,
    Run,
    Unfinished,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.resources.keys import ObjectName
    from aioinformer.workqueue.requests.outcomes import Outcome

#: The triggers that say that an input changed.
CHANGES: Final = frozenset({"added", "updated", "deleted", "source", "requested"})

_CAUSES: Final = 8
#: How many due requests `advance` makes ready at a time: more would block the event loop.
_SLICE: Final = 1000
_CONFLICT_DELAY: Final = 0.02
_RESULT: Final = Cause("result")
_RETRY: Final = Cause("retry")
_REQUESTED: Final = Cause("requested")

# The states of an entry. A key that runs can have a request too.
_NEW, _DELAYED, _READY, _RUNNING, _PARKED = range(5)
_STATES: Final = ("idle", "delayed", "ready", "running", "parked")


class Schedule:
    """The state machine of a queue of requests. The caller passes the time."""

    def __init__(self, options: QueueOptions, random: Callable[[], float]) -> None:
        self._options = options
        self._group = options.group
        self._min_interval = options.min_interval
        self._random = random
        self._entries: dict[ObjectName, Entry] = {}
        #: When the last runs of keys without a request began, for `min_interval`, in the order of their ends. There may
        #: be very many, so they have no entry. The first one is dropped in time, others at the latest after it.
        self._resting: OrderedDict[ObjectName, float] = OrderedDict()  # a dict looks for its first item in O(n)
        #: (time, number, entry) of delayed entries, valid if the entry still has that time.
        self._times: list[tuple[float, int, Entry]] = []
        self._numbers = count()
        self._shut_down = False
        # For the queue to read: the requests that are ready, runs that are not finished, and keys with problems.
        self.lanes = Lanes(options.group_limit)
        self.running: dict[ObjectName, Run] = {}
        self.failing: dict[ObjectName, Failing] = {}
        self.parked: dict[ObjectName, Parked] = {}
        #: How many requests became ready, how many had a delay, and how many wait for their time.
        self.adds = 0
        self.retries = 0
        self.delayed = 0
        #: No more requests are accepted.
        self.draining = False

    @property
    def idle(self) -> bool:
        """Whether no request is ready and none runs."""
        return not self.running and not len(self.lanes)

    def add(self, key: ObjectName, cause: Cause, now: float, *, priority: int = 0, after: float = 0.0) -> None:
        """Request a run of a key, as `RequestQueue.add` describes.

        Raises:
            UsageError: `after` is negative or no number.
        """
        if not after >= 0:
            raise UsageError(f"add({key}): after must be seconds, 0 or more, not {after!r}")
        if self.draining:
            return
        changed = cause.trigger in CHANGES
        entry = self._entries.get(key)
        if entry is None:
            entry = Entry(key, self._group(key))
            self._entries[key] = entry
            if self._resting:
                entry.started = self._resting.pop(key, entry.started)
                self._end_rests(now)
        elif entry.state == _PARKED:
            if not changed:
                return
            del self.parked[key]
            entry.state = _NEW
        at = now
        if after:
            at += after
            self.retries += 1
        if not entry.causes:
            entry.causes = (cause,)
            entry.changed = now if changed else None
            entry.priority = priority
            entry.enqueued = now
            entry.at = at
            if entry.state != _RUNNING:
                self._place(entry, now)
            return
        _merge_causes(entry, (cause,))
        if changed and entry.changed is None:
            entry.changed = now
        if priority > entry.priority:
            if entry.state == _READY:
                self.lanes.remove(entry, now)
                entry.priority = priority
                self.lanes.push(entry, now)
            entry.priority = priority
        if entry.state == _DELAYED:
            at = self._earliest(entry, at, changed)
            if at < entry.at:
                entry.at = at
                self.delayed -= 1
                self._place(entry, now)
        else:
            entry.at = min(entry.at, at)

    def take(self, now: float) -> Run | None:
        """Start the next run; return None if no request is ready, or all groups with requests are at their limit."""
        if self._times or self._resting:
            self.advance(now)
        entry = self.lanes.pop(now)
        if entry is None:
            return None
        request = (entry.key, entry.causes, entry.left_out, 1, entry.enqueued, entry.priority, entry.at, now)
        run = Run(*request, changed=entry.changed)
        if self.failing and (record := self.failing.get(entry.key)) is not None:
            run.attempt = record.attempts + 1
            run.conflicts = record.conflicts
            # A timer may be called slightly early: a run that was due at the end of the backoff is not.
            run.early = record.until > max(now, entry.at)
        entry.causes = ()
        entry.left_out = 0
        entry.changed = None
        entry.state = _RUNNING
        entry.run = run
        entry.started = now
        self.running[entry.key] = run
        return run

    def release(self, run: Run, now: float) -> bool:
        """Stop counting a run for its group; return False if it was released before.

        Raises:
            UsageError: the run is finished.
        """
        entry = self._entry_of(run)
        if run.released:
            return False
        run.released = True
        self.lanes.end_run(entry.group, now)
        return True

    def finish(self, run: Run, outcome: Outcome, now: float) -> Parked | float | None:
        """End a run. What was requested during the run, and what the outcome requests, become one request.

        Raises:
            UsageError: the run is finished.
        """
        entry = self._entry_of(run)
        if not run.released:
            run.released = True
            self.lanes.end_run(entry.group, now)
        del self.running[run.key]
        entry.run = None
        entry.state = _NEW
        if not isinstance(outcome, Finished):
            if (parked := self._follow(entry, run, outcome, now)) is not None:
                return parked
        elif self.failing:
            self.failing.pop(run.key, None)
        if entry.causes:
            self._place(entry, now)
            return entry.at if entry.causes else None
        if self._min_interval and entry.started + self._min_interval > now and not self.draining:
            self._resting[run.key] = entry.started
        del self._entries[run.key]
        return None

    def _follow(self, entry: Entry, run: Run, outcome: Outcome, now: float) -> Parked | None:
        """Request what an outcome requests, or park the key and return why."""
        reason = None
        cause = ""
        if isinstance(outcome, Park):
            reason = outcome.reason
            cause = "" if outcome.error is None else cause_of(outcome.error)
        if isinstance(outcome, Unfinished):
            outcome = self._count_conflict(run, outcome, now)
            reason = self._count(run, outcome)
            cause = self.failing[run.key].cause
        if isinstance(outcome, Unfinished) and reason is None:
            at = self._retry_time(self.failing[run.key], outcome, now)
            self._request_again(entry, (_RETRY, *run.causes), at, run.priority, run.enqueued)
            entry.left_out += run.causes_left_out
            if run.changed is not None:
                entry.changed = run.changed
        else:
            self.failing.pop(run.key, None)
        if isinstance(outcome, Again):
            priority = run.priority if outcome.priority is None else outcome.priority
            self._request_again(entry, (_RESULT,), outcome.at, priority, now)
        if reason is None or entry.changed is not None:
            return None
        entry.causes = ()
        entry.left_out = 0
        entry.state = _PARKED
        kind = outcome.kind if isinstance(outcome, Park) else "attempts"
        parked = Parked(reason, now, run.attempt, kind, cause)
        self.parked[run.key] = parked
        return parked

    def advance(self, now: float) -> None:
        """Make requests ready whose time has come, a slice of them at most; then `next_time` is not later than now."""
        self._end_rests(now)
        for _ in range(_SLICE):
            if not self._times or self._times[0][0] > now:
                return
            at, _, entry = heappop(self._times)
            if entry.at == at and entry.state == _DELAYED:
                self.delayed -= 1
                self._place(entry, now)

    def next_time(self) -> float | None:
        """Return when `advance` must be called next; None if nothing waits for its time."""
        if not self._times and not self._resting:
            return None  # the most frequent case
        while self._times and not _is_valid(self._times[0]):
            heappop(self._times)
        due = [self._times[0][0]] if self._times else []
        return min([*due, self._end_of_rest()] if self._resting else due, default=None)

    def _end_rests(self, now: float) -> None:
        """Forget keys whose rest has ended, a slice of them at most."""
        for _ in range(_SLICE):
            if not self._resting or self._end_of_rest() > now:
                break
            self._resting.popitem(last=False)

    def _end_of_rest(self) -> float:
        return next(iter(self._resting.values())) + self._min_interval

    def waiting(self) -> list[Entry]:
        """Return the entries with requests."""
        return [each for each in self._entries.values() if each.causes]

    def oldest(self) -> float | None:
        """Return when the oldest request that is ready became due; None for none. Any thread may call this."""
        return min((each.at for each in list(self._entries.values()) if each.state == _READY), default=None)

    def longest_ready(self, limit: int) -> list[ObjectName]:
        """Return the keys whose requests have been ready for the longest time."""
        ready = (each for each in self._entries.values() if each.state == _READY)
        return [each.key for each in nsmallest(limit, ready, key=attrgetter("at"))]

    def state(self, key: ObjectName) -> tuple[str, Entry | None]:
        """Return the name of the state of a key, and its entry; None if it rests."""
        entry = self._entries.get(key)
        return ("idle", None) if entry is None else (_STATES[entry.state], entry)

    def forget(self, key: ObjectName, now: float) -> bool:
        """Drop the request of a key whose object is gone, its failures, and why it is parked; return whether it can go.

        It cannot if it runs, or if a source or a caller has requested it.
        """
        entry = self._entries.get(key)
        if entry is None:
            self._resting.pop(key, None)
            return True
        if entry.state == _RUNNING or any(cause.trigger in ("source", "requested") for cause in entry.causes):
            return False
        if entry.state == _READY:
            self.lanes.remove(entry, now)
        self.delayed -= entry.state == _DELAYED
        self.failing.pop(key, None)
        self.parked.pop(key, None)
        self._drop(entry)
        return True

    def retry_parked(self, keys: Iterable[ObjectName] | None, now: float) -> int:
        """Request runs of these parked keys, or of all; return how many of them are parked."""
        chosen = [key for key in (list(self.parked) if keys is None else keys) if key in self.parked]
        for key in chosen:
            self.add(key, _REQUESTED, now)
        return len(chosen)

    def drain(self, now: float, *, shut_down: bool = False) -> None:
        """Accept no more requests, and drop those that are delayed; to shut down, drop those that are ready, too."""
        self.draining = True
        self._shut_down = self._shut_down or shut_down
        dropped = (_DELAYED, _READY) if shut_down else (_DELAYED,)
        for entry in [each for each in self._entries.values() if each.state in dropped]:
            if entry.state == _READY:
                self.lanes.remove(entry, now)
            self._drop(entry)
        self.delayed = 0
        self._times.clear()
        self._resting.clear()

    def _entry_of(self, run: Run) -> Entry:
        entry = self._entries.get(run.key)
        if entry is None or entry.run is not run:
            raise UsageError(f"the run of {run.key} is finished already; call finish once for each run")
        return entry

    def _count_conflict(self, run: Run, outcome: Unfinished, now: float) -> Unfinished:
        """Count conflicts in a row; return the outcome, as that of a failed attempt if there are too many of them."""
        record = self.failing.setdefault(run.key, Failing(since=now))
        record.conflicts = record.conflicts + 1 if outcome.soon else 0
        if record.conflicts >= LASTING_CONFLICT:
            return replace(outcome, counted=True, soon=False)
        return outcome

    def _count(self, run: Run, outcome: Unfinished) -> str | None:
        """Count a run that did not succeed; return a reason to park the key, or None."""
        backoff = self._options.backoff
        record = self.failing[run.key]
        if outcome.counted or outcome.reason or not record.error:  # a run that was cut says nothing of the key
            record.error = outcome.reason or described(outcome.error)
            record.cause = cause_of(outcome.error)
        if not outcome.counted or run.early:
            return None
        record.attempts += 1
        record.bypassed = False
        record.delay = min(record.delay * backoff.factor or backoff.initial, backoff.cap)
        if record.attempts == self._options.max_attempts:
            return f"{record.attempts} attempts failed, the last with {record.error}"
        return None

    def _retry_time(self, record: Failing, outcome: Unfinished, now: float) -> float:
        """Return when the key runs again, and extend its backoff."""
        backoff = self._options.backoff
        self.retries += 1
        if outcome.delay is not None:
            at = now + outcome.delay
        elif outcome.soon:
            at = now + min(_CONFLICT_DELAY * 2 ** (record.conflicts - 1), backoff.cap) * (1 + self._random())
        elif record.until > now:
            at = record.until
        else:
            at = now + (record.delay or backoff.initial) * (1 + backoff.jitter * self._random())
        record.least = now + outcome.least_delay
        at = max(at, record.least)
        if outcome.counted and not outcome.soon:
            record.until = max(record.until, at)
        return at

    def _request_again(
        self, entry: Entry, causes: tuple[Cause, ...], at: float, priority: int, enqueued: float
    ) -> None:
        """Merge what the outcome of a run requests with what was requested during the run."""
        later = entry.causes
        if later:
            at = min(at, self._earliest(entry, entry.at, entry.changed is not None))
            priority = max(priority, entry.priority)
            enqueued = min(enqueued, entry.enqueued)
        entry.causes = ()
        entry.at = at
        entry.priority = priority
        entry.enqueued = enqueued
        _merge_causes(entry, (*causes, *later))

    def _earliest(self, entry: Entry, at: float, changed: bool) -> float:
        """Return when a cause may start a run. During a backoff, the first change may; others wait for its end."""
        at = max(at, entry.started + self._min_interval)
        record = self.failing.get(entry.key)
        at = at if record is None else max(at, record.least)
        if record is None or record.until <= at:
            return at
        if changed and not record.bypassed:
            record.bypassed = True
            return at
        return record.until

    def _place(self, entry: Entry, now: float) -> None:
        """Put a request into its lane, or let it wait for its time."""
        at = max(entry.at, entry.started + self._min_interval)
        entry.at = at
        if at <= now and not self._shut_down:
            entry.state = _READY
            self.adds += 1
            self.lanes.push(entry, now)
        elif self.draining:
            self._drop(entry)
        else:
            entry.state = _DELAYED
            self.delayed += 1
            self._push_time(entry)

    def _push_time(self, entry: Entry) -> None:
        heappush(self._times, (entry.at, next(self._numbers), entry))
        if len(self._times) > 2 * len(self._entries) + 16:
            self._times = list(filter(_is_valid, self._times))
            heapify(self._times)

    def _drop(self, entry: Entry) -> None:
        entry.state = _NEW
        entry.causes = ()
        del self._entries[entry.key]


def _is_valid(time: tuple[float, int, Entry]) -> bool:
    return time[0] == time[2].at and time[2].state == _DELAYED


def _merge_causes(entry: Entry, causes: tuple[Cause, ...]) -> None:
    """Add causes to those of an entry: each different one once, the first 8; the others are counted."""
    for cause in causes:
        if cause in entry.causes:
            continue
        if len(entry.causes) < _CAUSES:
            entry.causes += (cause,)
        else:
            entry.left_out += 1
