"""Which request starts next, and when a key runs again: priorities, groups, failures, conflicts and parked keys."""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.errors import OptionError, UsageError
from aioinformer.resources.keys import ObjectName
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, Cause
from aioinformer.workqueue.requests.lanes import AGEING
from aioinformer.workqueue.requests.outcomes import (
    Again,
    Finished,
    Outcome,
    Park,
    Parked,
    QueueOptions,
    Run,
    Unfinished,
)
from aioinformer.workqueue.requests.schedule import Schedule

UPDATED, RESYNC = Cause("updated"), Cause("resync")


def schedule(**options: object) -> Schedule:
    return Schedule(QueueOptions(**options), lambda: 0.0)  # type: ignore[arg-type]


def key(text: str) -> ObjectName:
    return ObjectName(*text.split("/"))


def take(queue: Schedule, now: float = 0.0) -> str:
    """Take a run, and finish it; return its key."""
    run = queue.take(now)
    assert run is not None
    queue.finish(run, Finished(), now)
    return str(run.key)


def take_all(queue: Schedule, now: float = 0.0) -> list[str]:
    return [take(queue, now) for _ in range(len(queue.lanes))]


@pytest.mark.behaviour("C-05")
def test_higher_priorities_start_first_and_equal_ones_in_order() -> None:
    queue = schedule()
    for name, priority in ("low", -100), ("one", 0), ("high", 10), ("two", 0), ("three", 0):
        queue.add(ObjectName("a", name), UPDATED, 0.0, priority=priority)
    assert take_all(queue) == ["a/high", "a/one", "a/two", "a/three", "a/low"]


@pytest.mark.behaviour("C-05")
def test_raised_request_goes_behind_those_of_its_new_priority() -> None:
    queue = schedule()
    for name in "1", "2", "3":
        queue.add(ObjectName("a", name), Cause("initial"), 0.0, priority=LOW_PRIORITY)
    queue.add(key("a/new"), UPDATED, 0.0)
    queue.add(key("a/2"), UPDATED, 0.0)
    queue.add(key("a/2"), Cause("resync"), 0.0, priority=LOW_PRIORITY)  # does not lower it
    assert take_all(queue) == ["a/new", "a/2", "a/1", "a/3"]


@pytest.mark.behaviour("C-06")
def test_groups_take_turns_within_a_priority() -> None:
    queue = schedule()
    for name in range(100):
        queue.add(ObjectName("busy", str(name)), UPDATED, 0.0)
    for text in "calm/1", "calm/2", "quiet/1":
        queue.add(key(text), UPDATED, 0.0)
    assert take_all(queue)[:7] == ["busy/0", "calm/1", "quiet/1", "busy/1", "calm/2", "busy/2", "busy/3"]


@pytest.mark.behaviour("C-06")
def test_function_of_the_options_defines_the_groups() -> None:
    queue = schedule(group=lambda key: key.name[0])
    for text in "a/x1", "b/x2", "c/y1":
        queue.add(key(text), UPDATED, 0.0)
    assert take_all(queue) == ["a/x1", "c/y1", "b/x2"]


@pytest.mark.behaviour("C-07")
@pytest.mark.parametrize("seed", range(5))
def test_overdue_request_starts_within_the_stated_bound(seed: int) -> None:
    """Two requests arrive for each one that starts: without ageing, the lower priorities would never start."""
    random = Random(seed)
    queue = schedule()
    lanes: defaultdict[tuple[str, int], list[tuple[ObjectName, float]]] = defaultdict(list)
    #: For each overdue request: the number of the last run that may come before it.
    limits: dict[ObjectName, float] = {}
    started_low = 0
    for number in range(3000):
        now = float(number)
        for part in range(2):
            urgent = number > 200  # then a flood
            group, priority = random.choice("abcde"), random.choice([0, 10] if urgent else [-100, -50, 0, 10])
            name = ObjectName(group, f"{number}-{part}")
            queue.add(name, UPDATED, now, priority=priority)
            lanes[group, priority].append((name, now))
        for lane in lanes.values():
            for place, (name, since) in enumerate(lane, 1):
                if now < since + AGEING:
                    break
                limits.setdefault(name, number + 2 * place * 20)  # 5 groups, 4 priorities
        run = queue.take(now)
        assert run is not None
        queue.finish(run, Finished(), now)
        started_low += urgent and run.priority < 0
        assert lanes[run.key.namespace, run.priority].pop(0)[0] == run.key
        limits.pop(run.key, None)
        assert number <= min(limits.values(), default=math.inf)
    assert started_low > 100
    assert not any(lane for (_, priority), lane in lanes.items() if priority < 0), "a request of low priority is left"


@pytest.mark.behaviour("C-07")
def test_overdue_backlog_leaves_every_second_run_to_changes() -> None:
    queue = schedule()
    for name in range(1000):
        queue.add(ObjectName("a", str(name)), Cause("initial"), 0.0, priority=LOW_PRIORITY)
    for name in range(5):
        queue.add(ObjectName("a", f"change-{name}"), UPDATED, 31.0)
    started = [take(queue, 31.0) for _ in range(10)]
    assert started == [text for name in range(5) for text in (f"a/change-{name}", f"a/{name}")]


@pytest.mark.behaviour("C-08")
def test_group_at_its_limit_is_passed_over() -> None:
    queue = schedule(group_limit=2)
    for text in "a/1", "a/2", "a/3", "a/4", "b/1":
        queue.add(key(text), UPDATED, 0.0, priority=-100 if text == "b/1" else 0)
    runs = [queue.take(0.0) for _ in range(4)]
    assert [run and str(run.key) for run in runs] == ["a/1", "a/2", "b/1", None]
    assert not queue.lanes.available()
    assert runs[0] is not None
    queue.finish(runs[0], Finished(), 0.0)
    assert take(queue) == "a/3"


KEY = ObjectName("a", "1")
FAILED = Unfinished(ValueError("no"))
CONFLICT = Unfinished(ValueError("conflict"), counted=False, soon=True)


class Key:
    """A schedule with one key, and its clock."""

    def __init__(self, *, random: float = 0.0, **options: object) -> None:
        backoff = BackoffOptions(initial=1.0, factor=2.0, cap=10.0, jitter=1.0)
        self.queue = Schedule(QueueOptions(**{"backoff": backoff, **options}), lambda: random)  # type: ignore[arg-type]
        self.now = 0.0

    def add(self, cause: Cause = UPDATED, after: float = 0.0) -> None:
        self.queue.add(KEY, cause, self.now, after=after, priority=LOW_PRIORITY if cause is RESYNC else 0)

    def take(self) -> Run | None:
        return self.queue.take(self.now)

    def run(self, outcome: Outcome) -> Run:
        """Run the key when it is due, with this outcome."""
        self.now = max(self.now, self.queue.next_time() or 0.0)
        run = self.take()
        assert run is not None
        self.queue.finish(run, outcome, self.now)
        return run

    @property
    def rests(self) -> float | None:
        """Seconds until the key runs; None if nothing is requested."""
        return 0.0 if len(self.queue.lanes) else None if (at := self.queue.next_time()) is None else at - self.now


@pytest.mark.behaviour("C-09")
def test_delays_grow_with_failures_until_a_success() -> None:
    key = Key()
    key.add()
    attempts, delays = [], []
    for _ in range(6):
        attempts.append(key.run(FAILED).attempt)
        delays.append(key.rests)
    assert (attempts, delays) == ([1, 2, 3, 4, 5, 6], [1.0, 2.0, 4.0, 8.0, 10.0, 10.0])
    key.run(Finished())
    key.add()
    assert key.run(FAILED).attempt == 1
    assert key.rests == 1.0


@pytest.mark.behaviour("C-09")
def test_retry_has_jitter_and_the_causes_of_the_failed_run() -> None:
    key = Key(random=0.5)
    key.add()
    key.now = 3.0
    key.run(FAILED)
    assert key.rests == 1.5
    key.add(RESYNC)
    run = key.run(Finished())
    assert (run.causes, run.enqueued, run.priority) == ((Cause("retry"), UPDATED, RESYNC), 0.0, 0)


@pytest.mark.behaviour("C-10")
def test_first_change_after_a_failure_starts_one_early_run() -> None:
    key = Key()
    key.add()
    for _ in range(4):
        key.run(FAILED)
    key.now += 3.0
    key.add()
    assert key.rests == 0.0
    early = key.run(FAILED)
    assert (early.early, early.attempt) == (True, 5)
    key.add()
    assert key.rests == 5.0, "the second change waits for the end of the backoff"
    counted = key.run(FAILED)
    assert (counted.early, counted.attempt) == (False, 5), "the early run has not counted"
    key.add()
    assert key.rests == 0.0, "this backoff has an early run of its own"
    assert key.run(Finished()).attempt == 6


@pytest.mark.behaviour("C-10")
def test_change_does_not_start_before_the_time_the_server_asked_for() -> None:
    key = Key()
    key.add()
    key.run(Unfinished(ValueError("busy"), least_delay=30.0))
    assert key.rests == 30.0
    key.add()
    assert key.rests == 30.0
    run = key.take()
    assert run is None
    key.run(FAILED)
    assert key.rests == 2.0, "the backoff goes on as usual"
    key.add()
    assert key.rests == 0.0


@pytest.mark.behaviour("C-11")
def test_key_is_parked_after_max_attempts_until_a_change() -> None:
    key = Key(max_attempts=3)
    key.add()
    for _ in range(3):
        assert not key.queue.parked
        key.run(FAILED)
    assert key.queue.parked == {KEY: Parked("3 attempts failed, the last with ValueError", 3.0, 3)}
    key.add(RESYNC)
    key.add(Cause("takeover"))
    assert not len(key.queue.lanes)
    key.add()
    assert not key.queue.parked
    assert key.rests == 0.0
    assert key.run(Finished()).attempt == 1


@pytest.mark.behaviour("C-13")
def test_conflicts_are_retried_soon_and_not_counted() -> None:
    key = Key(random=0.5)
    key.add()
    delays = []
    for _ in range(4):
        assert key.run(CONFLICT).attempt == 1
        delays.append(key.rests)
    assert delays == pytest.approx([0.03, 0.06, 0.12, 0.24])
    key.run(FAILED)
    key.run(CONFLICT)
    assert key.rests == pytest.approx(0.03), "not one of several in a row"
    key.add()
    assert key.rests == 0.0, "the change is probably what the conflict was about"


@pytest.mark.behaviour("C-14")
def test_min_interval_separates_the_starts_of_all_runs() -> None:
    key = Key(min_interval=5.0)
    for outcome in Finished(), Again(0.0), FAILED, CONFLICT, Park("no"), Finished():
        key.add()
        assert key.rests in (0.0, 5.0)
        before = key.now
        key.run(outcome)
        assert key.now - before in (0.0, 5.0)
    key.add()
    assert key.rests == 5.0
    key.now += 4.0
    key.add(after=0.5)
    assert key.rests == 1.0


def test_misuse_is_refused_with_a_reason() -> None:
    key = Key()
    for after in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="add\\(a/1\\): after must be seconds, 0 or more"):
            key.add(after=after)
    for options in {"max_attempts": 0}, {"group_limit": 0}, {"min_interval": -1.0}:
        with pytest.raises(OptionError, match=f"QueueOptions: {next(iter(options))} must be"):
            QueueOptions(**options)
