"""Which of the ready requests starts next: priorities, turns of groups, ageing, and limits of groups."""

from __future__ import annotations

import math
from collections import defaultdict
from random import Random
from weakref import WeakSet

import pytest

from aioinformer.resources.keys import ObjectName
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, Cause
from aioinformer.workqueue.requests.outcomes import Finished, QueueOptions
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
    random, ageing = Random(seed), 30.0
    queue = schedule(ageing=ageing)
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
                if now < since + ageing:
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
    queue = schedule(ageing=30.0)
    for name in range(1000):
        queue.add(ObjectName("a", str(name)), Cause("initial"), 0.0, priority=LOW_PRIORITY)
    for name in range(5):
        queue.add(ObjectName("a", f"change-{name}"), UPDATED, 31.0)
    started = [take(queue, 31.0) for _ in range(10)]
    assert started == [text for name in range(5) for text in (f"a/change-{name}", f"a/{name}")]


@pytest.mark.behaviour("C-07")
def test_ageing_can_be_switched_off() -> None:
    queue = schedule(ageing=math.inf)
    queue.add(key("a/low"), UPDATED, 0.0, priority=LOW_PRIORITY)
    for number in range(100):
        queue.add(ObjectName("a", str(number)), UPDATED, 1e6)
    assert [take(queue, 1e6 + number) for number in range(101)][-1] == "a/low"


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


@pytest.mark.behaviour("C-08")
def test_limit_of_a_group_holds_for_all_priorities() -> None:
    queue = schedule(group_limit=1)
    for text, priority in ("a/1", 10), ("a/2", 0), ("a/3", -100):
        queue.add(key(text), UPDATED, 0.0, priority=priority)
    run = queue.take(0.0)
    assert run is not None
    assert queue.take(100.0) is None
    queue.finish(run, Finished(), 100.0)
    assert take_all(queue, 100.0) == ["a/2", "a/3"]


@pytest.mark.behaviour("C-08")
def test_released_run_counts_for_no_limit_but_keeps_its_key() -> None:
    queue = schedule(group_limit=1)
    queue.add(key("a/1"), UPDATED, 0.0)
    run = queue.take(0.0)
    assert run is not None
    for text in "a/1", "a/2":
        queue.add(key(text), UPDATED, 0.0)
    assert queue.take(0.0) is None
    queue.release(run, 0.0)
    assert take(queue) == "a/2"
    assert queue.take(0.0) is None
    queue.finish(run, Finished(), 0.0)
    assert take(queue) == "a/1"


def test_groups_without_requests_leave_nothing() -> None:
    class Group:
        """A group that can be referred to weakly."""

    groups: WeakSet[Group] = WeakSet()

    def group_of(key: ObjectName) -> Group:
        groups.add(group := Group())
        return group

    queue = schedule(group=group_of)
    for number in range(1000):
        queue.add(ObjectName("a", str(number)), UPDATED, 0.0)
    assert len(groups) == 1000
    take_all(queue)
    assert len(groups) < 10
