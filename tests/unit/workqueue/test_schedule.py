"""Which request starts next: priorities, groups, overdue requests. `test_schedule_model` has when a key runs again."""

from __future__ import annotations

import gc
import math
from collections import defaultdict
from random import Random
from weakref import WeakSet

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import QueueOptions
from aioinformer.errors import OptionError, UsageError
from aioinformer.resources import ObjectName
from aioinformer.workqueue import LOW_PRIORITY, Cause, Finished, Unfinished
from aioinformer.workqueue.requests.lanes import AGEING
from aioinformer.workqueue.requests.schedule import Schedule

UPDATED = Cause("updated")


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


@pytest.mark.behaviour("C-07")
@pytest.mark.parametrize("end", ["starts", "is raised", "is forgotten"])
def test_turns_of_an_overdue_request_end_with_it(end: str) -> None:
    queue = schedule()
    for name, since in ("old", 0.0), ("late-1", 20.0), ("late-2", 20.0):
        queue.add(ObjectName("a", name), Cause("initial"), since, priority=LOW_PRIORITY)
    for number in range(4):
        queue.add(ObjectName("a", f"change-{number}"), UPDATED, 31.0)
    started = [take(queue, 31.0)]
    if end == "starts":
        started.append(take(queue, 31.0))
    elif end == "is raised":
        queue.add(key("a/old"), UPDATED, 31.0)
    else:
        queue.forget(key("a/old"), 31.0)
    started += take_all(queue, 31.0)
    changes = [f"a/change-{number}" for number in range(4)]
    expected = {
        "starts": [changes[0], "a/old", *changes[1:]],
        "is raised": [*changes, "a/old"],
        "is forgotten": changes,
    }
    assert started == [*expected[end], "a/late-1", "a/late-2"]


class Team:
    """A group of requests, known by weak references."""


@pytest.mark.parametrize("group_limit", [None, 1])
@pytest.mark.parametrize(("taken", "finished"), [(0.0, 0.0), (31.0, 31.0), (0.0, 40.0)], ids=["soon", "late", "long"])
def test_group_is_forgotten_with_its_last_request(taken: float, finished: float, group_limit: int | None) -> None:
    teams: WeakSet[Team] = WeakSet()

    def new_team(key: ObjectName) -> Team:
        team = Team()
        teams.add(team)
        return team

    def look(now: float) -> None:
        """Ask for a run, often enough to look at the age of each lane."""
        for _ in range(100):
            assert queue.take(now) is None

    queue = schedule(group=new_team, group_limit=group_limit)
    for name in range(100):
        queue.add(ObjectName("a", str(name)), UPDATED, 0.0)
    runs = [queue.take(taken) for _ in range(100)]
    assert len(teams) == 100
    look(finished)
    for run in runs:
        assert run is not None
        queue.finish(run, Finished(), finished)
    look(finished + AGEING)
    del runs, run
    gc.collect()
    assert len(teams) == 0


@pytest.mark.behaviour("C-09", "C-13")
@pytest.mark.parametrize(("soon", "delay"), [(False, 1.5), (True, 0.03)], ids=["failure", "conflict"])
def test_retries_have_jitter(soon: bool, delay: float) -> None:
    options = QueueOptions(backoff=BackoffOptions(initial=1.0, factor=2.0, cap=10.0, jitter=1.0))
    queue = Schedule(options, lambda: 0.5)
    queue.add(key("a/1"), UPDATED, 0.0)
    run = queue.take(0.0)
    assert run is not None
    queue.finish(run, Unfinished(ValueError("no"), counted=not soon, soon=soon), 3.0)
    assert queue.next_time() == pytest.approx(3.0 + delay)


def test_misuse_is_refused_with_a_reason() -> None:
    for after in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="add\\(a/1\\): after must be seconds, 0 or more"):
            schedule().add(key("a/1"), UPDATED, 0.0, after=after)
    for options in {"max_attempts": 0}, {"group_limit": 0}, {"min_interval": -1.0}:
        with pytest.raises(OptionError, match=f"QueueOptions: {next(iter(options))} must be"):
            QueueOptions(**options)


@pytest.mark.parametrize("number", [1, 200])
def test_time_of_a_rest_that_has_ended_is_not_due_again(number: int) -> None:
    queue = schedule(min_interval=3.0)
    long, short = [key(f"a/{each}") for each in range(number)], key("a/short")
    for each in (*long, short):
        queue.add(each, UPDATED, 1000.0)
    runs = [queue.take(1000.0) for _ in long]
    last = queue.take(1001.0)
    for run in (last, *runs):  # the one that began last ends first
        assert run is not None
        queue.finish(run, Finished(), 1002.0)
    queue.advance(1003.0)
    queue.add(short, UPDATED, 1003.0)
    assert queue.next_time() == 1004.0
