"""Random sequences of calls, compared with a model of the schedule: one dictionary of keys, searched from end to end.

The test fails if a key has two runs at a time, if an add is not followed by a run that starts after it, if a run starts
too early or is withheld, if causes, times or priorities are merged wrongly, or if attempts are miscounted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import QueueOptions
from aioinformer.errors import UsageError
from aioinformer.resources import ObjectName
from aioinformer.workqueue import Again, Cause, Finished, Outcome, Park, Parked, Run, Unfinished
from aioinformer.workqueue.requests.schedule import Schedule

if TYPE_CHECKING:
    from aioinformer.workqueue.requests.causes import Trigger

#: Often the same one, so that much happens to it.
KEYS = st.sampled_from([ObjectName("a", "1")] * 4 + [ObjectName("a", "2"), ObjectName("b", "1"), ObjectName("c", "1")])
TRIGGERS: tuple[Trigger, ...] = ("initial", "resync", "takeover", "added", "updated", "deleted", "source", "requested")
CHANGES = TRIGGERS[3:]
BACKOFF = BackoffOptions(initial=1.0, factor=2.0, cap=8.0, jitter=1.0)
PROBLEM = RuntimeError("it does not work")
RETRY = Cause("retry")
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.just(Finished()),
    st.just(Park("it cannot work")),
    st.builds(Again, st.integers(-1, 9).map(float), st.sampled_from([None, -100, 5])),
    st.just(Unfinished(PROBLEM)),
    st.just(Unfinished(PROBLEM, least_delay=6.0)),
    st.just(Unfinished(PROBLEM, counted=False, soon=True)),
    st.builds(
        Unfinished,
        st.just(PROBLEM),
        st.sampled_from([None, 0.0, 3.0]),
        counted=st.booleans(),
        soon=st.booleans(),
        least_delay=st.sampled_from([0.0, 0.0, 6.0]),
    ),
)


@dataclass
class Wanted:
    """A request of the model."""

    at: float
    priority: int
    enqueued: float
    causes: list[Cause]
    left_out: int = 0
    changed: bool = False


@dataclass
class Known:
    """A key of the model."""

    wanted: Wanted | None = None
    run: Run | None = None
    started: float = -math.inf
    attempts: int = 0
    delay: float = 0.0
    until: float = -math.inf
    least: float = -math.inf
    bypassed: bool = False
    conflicts: int = 0
    parked: Parked | None = None

    def succeed(self) -> None:
        self.attempts, self.delay, self.until, self.bypassed, self.conflicts = 0, 0.0, -math.inf, False, 0
        self.least = -math.inf


@dataclass
class Model:
    """What the schedule promises, without its structures."""

    options: QueueOptions
    known: dict[ObjectName, Known] = field(default_factory=dict)
    draining: bool = False
    shut_down: bool = False

    def add(self, key: ObjectName, cause: Cause, now: float, priority: int, after: float) -> None:
        known = self.known.setdefault(key, Known())
        changed = cause.trigger in CHANGES
        if self.draining or (known.parked and not changed):
            return
        known.parked = None
        at = now + after
        if known.wanted is None:
            known.wanted = Wanted(at, priority, now, [cause], changed=changed)
        else:
            if not known.run and known.wanted.at > now:
                at = self.allowed(known, at, changed)
            self.merge(known.wanted, Wanted(at, priority, now, [cause], changed=changed))
        self.hold(known)

    def allowed(self, known: Known, at: float, changed: bool) -> float:
        at = max(at, known.started + self.options.min_interval, known.least)
        if at < known.until and changed and not known.bypassed:
            known.bypassed = True
            return at
        return max(at, known.until)

    def merge(self, first: Wanted, other: Wanted) -> None:
        first.at = min(first.at, other.at)
        first.priority = max(first.priority, other.priority)
        first.enqueued = min(first.enqueued, other.enqueued)
        first.changed |= other.changed
        first.left_out += other.left_out
        for cause in other.causes:
            if cause not in first.causes:
                first.causes.append(cause)
        first.left_out += len(first.causes[8:])
        del first.causes[8:]

    def hold(self, known: Known) -> None:
        if known.wanted and not known.run:
            known.wanted.at = max(known.wanted.at, known.started + self.options.min_interval)

    def finish(self, known: Known, run: Run, outcome: Outcome, now: float) -> None:
        known.run = None
        again, reason = None, None
        if isinstance(outcome, Unfinished):
            known.conflicts = known.conflicts + 1 if outcome.soon else 0
            if known.conflicts >= 5:
                outcome = replace(outcome, counted=True, soon=False)
            if outcome.counted and not run.early:
                known.attempts += 1
                known.delay = min(8.0, 2 * known.delay or 1.0)
                known.bypassed = False
                if known.attempts == self.options.max_attempts:
                    reason = f"{known.attempts} attempts failed, the last with RuntimeError: it does not work"
            if reason is None:
                at = now + (known.delay or 1.0)
                if outcome.delay is not None:
                    at = now + outcome.delay
                elif outcome.soon:
                    at = now + min(8.0, 0.02 * 2 ** (known.conflicts - 1))
                elif known.until > now:
                    at = known.until
                known.least = now + outcome.least_delay
                at = max(at, known.least)
                if outcome.counted and not outcome.soon:
                    known.until = max(known.until, at)
                again = Wanted(at, run.priority, run.enqueued, [RETRY], run.causes_left_out)
                self.merge(again, Wanted(at, run.priority, run.enqueued, list(run.causes)))
        if isinstance(outcome, Park):
            reason = outcome.reason
        if isinstance(outcome, Again):
            priority = run.priority if outcome.priority is None else outcome.priority
            again = Wanted(outcome.at, priority, now, [Cause("result")])
        if not isinstance(outcome, Unfinished) or reason:
            known.succeed()
        if reason and not (known.wanted and known.wanted.changed):
            kind = outcome.kind if isinstance(outcome, Park) else "attempts"
            cause = "RuntimeError" if kind == "attempts" else ""
            known.parked, known.wanted = Parked(reason, now, run.attempt, kind, cause), None
        elif again is not None:
            if known.wanted is not None:
                known.wanted.at = self.allowed(known, known.wanted.at, known.wanted.changed)
                again.changed = known.wanted.changed
                self.merge(again, known.wanted)
            known.wanted = again
        self.hold(known)
        if self.shut_down or (self.draining and known.wanted and known.wanted.at > now):
            known.wanted = None

    def waiting(self, now: float) -> dict[ObjectName, Wanted]:
        return {
            key: known.wanted
            for key, known in self.known.items()
            if known.wanted and not known.run and known.wanted.at <= now
        }

    def has_place(self, namespace: str) -> bool:
        runs = [k for k, known in self.known.items() if known.run and not known.run.released and k[0] == namespace]
        return self.options.group_limit is None or len(runs) < self.options.group_limit

    def drain(self, now: float, *, shut_down: bool) -> None:
        self.draining = True
        self.shut_down |= shut_down
        for known in self.known.values():
            if known.wanted and not known.run and (shut_down or known.wanted.at > now):
                known.wanted = None


class ScheduleMachine(RuleBasedStateMachine):
    """The schedule, its runs, and the model."""

    @initialize(
        group_limit=st.sampled_from([None, 1, 2]),
        min_interval=st.sampled_from([0.0, 0.0, 3.0]),
        max_attempts=st.sampled_from([None, None, 2]),
    )
    def begin(self, group_limit: int | None, min_interval: float, max_attempts: int | None) -> None:
        options = QueueOptions(
            backoff=BACKOFF,
            group_limit=group_limit,
            min_interval=min_interval,
            max_attempts=max_attempts,
        )
        self.now = 1000.0
        self.numbers = count()
        self.runs: list[Run] = []
        self.model = Model(options)
        self.schedule = Schedule(options, lambda: 0.0)

    @rule(
        key=KEYS,
        trigger=st.sampled_from(TRIGGERS),
        different=st.booleans(),
        priority=st.sampled_from([-100, 0, 7]),
        after=st.sampled_from([0.0, 0.0, 0.0, 4.0]),
        times=st.sampled_from([1, 1, 10]),
    )
    def add(self, key: ObjectName, trigger: Trigger, different: bool, priority: int, after: float, times: int) -> None:
        for _ in range(times):
            cause = Cause(trigger, key=str(next(self.numbers)) if different else "same")
            self.schedule.add(key, cause, self.now, priority=priority, after=after)
            self.model.add(key, cause, self.now, priority, after)

    @rule(seconds=st.integers(1, 5))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.schedule.advance(self.now)

    @rule()
    def take(self) -> None:
        waiting = {
            key: wanted for key, wanted in self.model.waiting(self.now).items() if self.model.has_place(key.namespace)
        }
        assert self.schedule.lanes.available() == bool(waiting)
        run = self.schedule.take(self.now)
        if run is None:
            assert not waiting, "a run is withheld"
            return
        known = self.model.known[run.key]
        assert known.run is None, "two runs of a key"
        assert run.key in waiting, "a run without a request, too early, or beyond the limit of its group"
        wanted = waiting[run.key]
        assert (list(run.causes), run.causes_left_out) == (wanted.causes, wanted.left_out)
        assert (run.priority, run.enqueued, run.due) == (wanted.priority, wanted.enqueued, wanted.at)
        assert run.attempt == known.attempts + 1
        assert run.early == (self.now < known.until)
        known.run, known.wanted, known.started = run, None, self.now
        self.runs.append(run)

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 3))
    def release(self, which: int) -> None:
        run = self.runs[which % len(self.runs)]
        released = run.released
        assert self.schedule.release(run, self.now) != released

    @precondition(lambda self: self.runs)
    @rule(which=st.integers(0, 3), outcome=OUTCOMES)
    def finish(self, which: int, outcome: Outcome) -> None:
        run = self.runs.pop(which % len(self.runs))
        if isinstance(outcome, Again):
            outcome = Again(self.now + outcome.at, outcome.priority)
        following = self.schedule.finish(run, outcome, self.now)
        known = self.model.known[run.key]
        self.model.finish(known, run, outcome, self.now)
        if known.parked:
            assert following == known.parked
        else:
            assert following == (known.wanted.at if known.wanted else None)
        with pytest.raises(UsageError, match="is finished already"):
            self.schedule.finish(run, outcome, self.now)

    @rule(outcome=OUTCOMES, times=st.sampled_from([1, 1, 3, 6]), changes=st.booleans())
    def run_when_due(self, outcome: Outcome, times: int, changes: bool) -> None:
        """Let the next runs end alike, each as soon as it is due, with or without a change after each."""
        for _ in range(times):
            due = self.schedule.next_time()
            if not len(self.schedule.lanes) and due is not None:
                self.now = due
                self.schedule.advance(due)
            before = len(self.runs)
            self.take()
            if len(self.runs) > before:
                key = self.runs[before].key
                self.finish(before, outcome)
                if changes:
                    self.add(key, "updated", False, 0, 0.0, 1)

    @rule(key=st.none() | KEYS)
    def retry_parked(self, key: ObjectName | None) -> None:
        parked = {each for each, known in self.model.known.items() if known.parked and key in (None, each)}
        assert self.schedule.retry_parked(None if key is None else [key], self.now) == len(parked)
        for each in parked:
            self.model.add(each, Cause("requested"), self.now, 0, 0.0)

    @rule(shut_down=st.booleans(), sure=st.integers(0, 9))
    def drain(self, shut_down: bool, sure: int) -> None:
        if not sure:
            self.schedule.drain(self.now, shut_down=shut_down)
            self.model.drain(self.now, shut_down=shut_down)

    @invariant()
    def counts_match_the_model(self) -> None:
        known = self.model.known
        requested = {key: each.wanted for key, each in known.items() if each.wanted and not each.run}
        delayed = [each.at for each in requested.values() if each.at > self.now]
        assert self.schedule.parked == {key: each.parked for key, each in known.items() if each.parked}
        assert self.schedule.running == {key: each.run for key, each in known.items() if each.run}
        assert self.schedule.delayed == len(delayed)
        assert len(self.schedule.lanes) == len(requested) - len(delayed)
        assert self.schedule.idle == (not len(self.schedule.lanes) and not self.schedule.running)
        due = self.schedule.next_time()
        assert due is None or self.now < due <= min(delayed, default=math.inf)
        assert due is not None or not delayed

    def teardown(self) -> None:
        """Finish all that runs and all that is requested: nothing is kept but parked keys."""
        if not hasattr(self, "schedule"):
            return
        for _ in range(1000):
            self.take()
            while self.runs:
                self.finish(0, Finished())
            if not len(self.schedule.lanes) and self.schedule.next_time() is None:
                break
            self.time_passes(5)
        assert not any(known.wanted for known in self.model.known.values()), "an add was lost"
        assert self.schedule._entries.keys() == self.schedule.parked.keys()
        if not self.model.draining:
            assert not self.schedule.failing
            for _ in range(10):
                self.now += 10
                self.schedule.take(self.now)
            assert not self.schedule.lanes._groups


@pytest.mark.behaviour("C-01", "C-02", "C-04", "C-08", "C-09", "C-10", "C-11", "C-12", "C-13", "C-14", "C-18")
def test_schedule_does_what_its_model_does() -> None:
    run_state_machine_as_test(ScheduleMachine, settings=settings(max_examples=150, stateful_step_count=50))
