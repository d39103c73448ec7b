"""Trackers of the initial list, and lazy values."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

from aioinformer.errors import UsageError
from aioinformer.handlers import AsyncTracker, Lazy, SingleFileTracker


@pytest.mark.conformance("ST-01", "ST-03")
@pytest.mark.parametrize("order", [each for each in permutations("sfu") if each.index("s") < each.index("f")])
def test_tracker_syncs_after_upstream_and_all_objects(order: tuple[str, ...]) -> None:
    tracker = SingleFileTracker()
    tracker.start()
    do = {"s": tracker.start, "f": tracker.finished, "u": tracker.upstream_has_synced}
    for step in order:
        do[step]()
        assert not tracker.has_synced()
    tracker.finished()
    assert tracker.has_synced()


@pytest.mark.conformance("ST-01")
def test_empty_list_syncs_at_once() -> None:
    tracker = SingleFileTracker()
    assert not tracker.has_synced()
    tracker.upstream_has_synced()
    assert tracker.has_synced()


@pytest.mark.conformance("ST-01", "ST-02")
def test_tracker_stays_synced() -> None:
    tracker, keyed = SingleFileTracker(), AsyncTracker[str]()
    tracker.upstream_has_synced()
    keyed.upstream_has_synced()
    tracker.start()
    keyed.start("a")
    assert tracker.has_synced()
    assert keyed.has_synced()


@pytest.mark.conformance("ST-01")
def test_finishing_more_than_was_started_raises() -> None:
    tracker = SingleFileTracker("pods")
    tracker.start()
    tracker.finished()
    with pytest.raises(UsageError, match="pods: finished"):
        tracker.finished()


@pytest.mark.conformance("ST-02")
def test_keys_finish_in_any_order() -> None:
    tracker = AsyncTracker[str]()
    for key in ("a", "b", "a"):
        tracker.start(key)
    tracker.upstream_has_synced()
    tracker.finished("never started")
    tracker.finished("b")
    assert not tracker.has_synced()
    tracker.finished("a")
    assert tracker.has_synced()


@pytest.mark.conformance("ST-01", "ST-02")
async def test_trackers_can_be_waited_for() -> None:
    tracker, keyed = SingleFileTracker(), AsyncTracker[str]()
    both = asyncio.gather(tracker.wait_for_sync(), keyed.wait_for_sync())
    await asyncio.sleep(1)
    tracker.upstream_has_synced()
    await asyncio.sleep(1)
    assert not both.done()
    keyed.upstream_has_synced()
    await both
    tracker = SingleFileTracker()
    waiting = asyncio.create_task(tracker.wait_for_sync())
    await asyncio.sleep(1)
    assert not waiting.done()
    tracker.upstream_has_synced()
    await waiting


class Slow:
    """Counts evaluations; each takes a second."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> int:
        self.times += 1
        times = self.times
        await asyncio.sleep(1)
        return times


@pytest.mark.conformance("ST-04")
async def test_concurrent_gets_share_one_evaluation() -> None:
    slow = Slow()
    lazy = Lazy(slow)
    assert await asyncio.gather(*(lazy.get() for _ in range(20))) == [1] * 20
    assert await lazy.get() == 1
    assert slow.times == 1


@pytest.mark.conformance("ST-04")
async def test_value_is_evaluated_on_demand_after_a_change() -> None:
    slow = Slow()
    lazy = Lazy(slow)
    await lazy.get()
    lazy.notify()
    lazy.notify()
    assert slow.times == 1
    assert await lazy.get() == 2


@pytest.mark.conformance("ST-04")
async def test_get_after_a_change_returns_a_later_evaluation() -> None:
    slow = Slow()
    lazy = Lazy(slow)
    before = asyncio.create_task(lazy.get())
    await asyncio.sleep(0.5)
    lazy.notify()
    after = asyncio.create_task(lazy.get())
    assert (await before, await after) == (1, 2)
    assert await lazy.get() == 2


@pytest.mark.conformance("ST-04")
async def test_error_is_raised_and_not_cached() -> None:
    divisors = [0, 1]

    async def evaluate() -> int:
        return 7 // divisors.pop(0)

    lazy = Lazy(evaluate)
    with pytest.raises(ZeroDivisionError):
        await lazy.get()
    assert await lazy.get() == 7


@pytest.mark.conformance("ST-04")
async def test_cancelled_evaluation_is_left_to_the_next_get() -> None:
    lazy = Lazy(Slow())
    first, second = (asyncio.create_task(lazy.get()) for _ in range(2))
    await asyncio.sleep(0.5)
    first.cancel()
    assert await second == 2
