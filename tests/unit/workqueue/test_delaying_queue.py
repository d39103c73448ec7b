"""The delaying and the rate-limiting queue: when items are dequeued."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal
from weakref import WeakSet

import pytest

from aioinformer.errors import UsageError
from aioinformer.workqueue.delaying import DelayingQueue
from aioinformer.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from aioinformer.workqueue.rate_limiting import RateLimitingQueue
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.workqueue.queue import WorkQueue


async def times(queue: WorkQueue[str], count: int) -> list[tuple[str, float]]:
    """Dequeue and finish `count` items; return each with its time, in seconds from now."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    came = []
    for _ in range(count):
        async with queue.processing() as item:
            came.append((item, round(loop.time() - start, 3)))
    return came


async def work(queue: WorkQueue[str]) -> list[tuple[str, float]]:
    """Process items until the queue ends, one second each; return each with its time, in seconds from now."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    came = []
    async for item in queue:
        came.append((item, round(loop.time() - start, 3)))
        await asyncio.sleep(1)
    return came


@pytest.mark.conformance("WQ-09")
async def test_item_is_added_after_its_delay() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add_after("a", 0.5)
    assert len(queue) == 0
    assert await times(queue, 1) == [("a", 0.5)]


@pytest.mark.conformance("WQ-09")
@pytest.mark.parametrize("delay", [0.0, -1.0])
async def test_item_without_delay_is_added_at_once(delay: float) -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add_after("a", delay)
    assert len(queue) == 1


@pytest.mark.conformance("WQ-09")
async def test_earliest_of_several_delays_applies() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add_after("a", 1.0)
    queue.add_after("a", 2.0)
    queue.add_after("b", 4.0)
    queue.add_after("b", 3.0)
    assert await times(queue, 2) == [("a", 1.0), ("b", 3.0)]
    await asyncio.sleep(10)
    assert len(queue) == 0


@pytest.mark.conformance("WQ-09")
async def test_delayed_items_come_in_order_of_time() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    for item, delay in ("c", 3.0), ("a", 1.0), ("d", 4.0), ("b", 2.0):
        queue.add_after(item, delay)
    await asyncio.sleep(3.5)
    assert len(queue) == 3
    assert [item for item, _ in await times(queue, 4)] == ["a", "b", "c", "d"]


@pytest.mark.conformance("WQ-09")
async def test_item_added_during_its_delay_comes_again_after_it() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add_after("a", 1.0)
    queue.add("a")
    assert await times(queue, 2) == [("a", 0.0), ("a", 1.0)]


async def test_item_can_be_delayed_again_after_its_delay() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    for _ in range(3):
        queue.add_after("a", 1.0)
        assert await times(queue, 1) == [("a", 1.0)]


@pytest.mark.conformance("WQ-10")
async def test_thousands_of_items_can_be_delayed_without_waiting() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    for number in range(5000):
        queue.add_after(str(number), 1.0)
    assert queue.statistics().delayed == 5000
    await asyncio.sleep(1.1)
    assert len(queue) == 5000


class Key:
    """An item that can be weakly referenced."""


@pytest.mark.conformance("WQ-08")
async def test_superseded_delay_keeps_no_finished_item_in_memory() -> None:
    queue: DelayingQueue[Key] = DelayingQueue()
    queue.add_after(Key(), 500.0)
    keys: WeakSet[Key] = WeakSet()
    for _ in range(1000):
        key = Key()
        keys.add(key)
        queue.add_after(key, 1000.0)
        queue.add_after(key, 0.1)
        del key
        async with queue.processing():
            pass
    assert len(keys) < 50


async def test_nan_delay_is_refused() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    with pytest.raises(UsageError, match="delay must be"):
        queue.add_after("a", float("nan"))


@pytest.mark.conformance("WQ-09", "WQ-10")
async def test_shut_down_drops_delayed_items() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add_after("a", 1.0)
    queue.shut_down()
    queue.add_after("b", 1.0)
    queue.add_after("c", 0.0)
    assert await work(queue) == []
    assert queue.statistics().delayed == 0


@pytest.mark.conformance("WQ-10", "WEAK-25")
@pytest.mark.parametrize(
    ("delayed", "came"),
    [
        ("drop", [("a", 0.0)]),
        ("now", [("a", 0.0), ("b", 1.0), ("c", 2.0)]),
        ("wait", [("a", 0.0), ("b", 5.0), ("c", 9.0)]),
    ],
)
async def test_drain_drops_adds_or_awaits_delayed_items(
    delayed: Literal["drop", "now", "wait"], came: list[tuple[str, float]]
) -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add("a")
    queue.add_after("c", 9.0)
    queue.add_after("b", 5.0)
    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work(queue)), tasks.create_task(work(queue))]
        assert await queue.shut_down_with_drain(delayed) is True
    if delayed == "now":  # two workers share them
        came = [("a", 0.0), ("b", 0.0), ("c", 1.0)]
    assert sorted(workers[0].result() + workers[1].result()) == came


async def test_shut_down_ends_a_drain_that_waits_for_delayed_items() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    queue.add_after("a", 100.0)
    async with asyncio.TaskGroup() as tasks:
        worker = tasks.create_task(work(queue))
        drain = tasks.create_task(queue.shut_down_with_drain("wait"))
        await settled()
        assert not worker.done()
        queue.shut_down()
    assert drain.result() is False
    assert worker.result() == []


async def test_unknown_drain_mode_is_refused() -> None:
    queue: DelayingQueue[str] = DelayingQueue()
    with pytest.raises(UsageError, match="delayed must be"):
        await queue.shut_down_with_drain("later")  # type: ignore[arg-type]


@pytest.mark.conformance("WQ-11")
async def test_retry_delay_grows_until_the_item_is_forgotten() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(ItemExponentialFailureRateLimiter(1.0, 100.0))
    waits = []
    for _ in range(4):
        queue.add_rate_limited("a")
        waits += await times(queue, 1)
    assert queue.num_requeues("a") == 4
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    queue.add_rate_limited("a")
    waits += await times(queue, 1)
    assert waits == [("a", 1), ("a", 2), ("a", 4), ("a", 8), ("a", 1)]


@pytest.mark.conformance("WQ-11")
async def test_forget_does_not_finish_the_item() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    queue.add("a")
    await queue.get()
    queue.forget("a")
    assert queue.statistics().processing == 1


@pytest.mark.conformance("WQ-13")
async def test_default_limiter_retries_first_after_5_ms() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    queue.add_rate_limited("a")
    assert await times(queue, 1) == [("a", 0.005)]


@pytest.mark.conformance("WQ-14")
async def test_statistics_count_delayed_items_and_retries() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(name="pods")
    queue.add("a")
    queue.add_rate_limited("b")
    queue.add_after("c", 10.0)
    statistics = queue.statistics()
    assert (statistics.adds, statistics.retries, statistics.delayed, statistics.depth) == (1, 2, 2, 1)
