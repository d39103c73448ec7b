"""The plain work queue: adding, dequeueing, priorities and statistics."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from aioinformer.errors import UsageError
from aioinformer.workqueue.orders import PriorityOrder
from aioinformer.workqueue.queue import WorkQueue
from aioinformer.workqueue.rate_limiting import RateLimitingQueue
from tests.support.virtual_time import settled


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    """Dequeue `count` items without finishing them."""
    return [await queue.get() for _ in range(count)]


@pytest.mark.conformance("WQ-04")
async def test_items_are_dequeued_in_order_of_adds() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in "cab":
        queue.add(item)
    assert await take(queue, 3) == ["c", "a", "b"]


@pytest.mark.conformance("WQ-01", "WQ-04")
async def test_adds_of_a_queued_item_are_merged() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in "abaaba":
        queue.add(item)
    assert len(queue) == 2
    assert await take(queue, 2) == ["a", "b"]


@pytest.mark.conformance("WQ-01", "WQ-03", "WQ-04")
async def test_adds_during_processing_cause_one_more_run() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    for _ in range(3):
        queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await take(queue, 1) == ["a"]
    queue.done("a")
    assert len(queue) == 0


@pytest.mark.conformance("WQ-03")
async def test_item_added_during_processing_is_queued_last() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.done("a")
    assert await take(queue, 2) == ["b", "a"]


@pytest.mark.conformance("WQ-04")
async def test_item_is_never_processed_twice_at_a_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    second = asyncio.create_task(queue.get())
    await settled()
    assert not second.done()
    queue.done("a")
    assert await second == "a"


@pytest.mark.conformance("WQ-01")
async def test_finished_item_can_be_added_again() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(2):
        queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")


@pytest.mark.conformance("WQ-05")
async def test_length_excludes_processing_items() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.add("a")
    assert len(queue) == 1


@pytest.mark.conformance("WQ-02")
async def test_get_waits_for_an_add() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = asyncio.create_task(queue.get())
    await settled()
    assert not worker.done()
    queue.add("a")
    assert await worker == "a"


async def test_waiting_workers_share_added_items() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settled()
    for item in "abc":
        queue.add(item)
    assert sorted(await asyncio.gather(*workers)) == ["a", "b", "c"]


def test_add_works_without_an_event_loop() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert asyncio.run(queue.get()) == "a"


async def test_done_without_get_raises_with_the_item() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    with pytest.raises(UsageError, match=r"done\('a'\).*'pods'"):
        queue.done("a")
    assert await take(queue, 1) == ["a"]


# Order.


@pytest.mark.conformance("WQ-08", "WEAK-25")
async def test_highest_priority_comes_first() -> None:
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder({"a": 0, "b": 5, "c": 5, "d": 9}.__getitem__))
    for item in "abcd":
        queue.add(item)
    assert await take(queue, 4) == ["d", "b", "c", "a"]


@pytest.mark.conformance("WQ-01", "WQ-08")
async def test_item_added_again_moves_if_its_priority_rose() -> None:
    priority = {"a": 0, "b": 0, "c": 1}
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: priority[item]))
    for item in "abc":
        queue.add(item)
    priority.update(b=2, c=-1)
    queue.add("b")
    queue.add("c")
    assert len(queue) == 3
    assert await take(queue, 3) == ["b", "c", "a"]


async def test_item_with_rising_priority_is_dequeued_once() -> None:
    priority = count()
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: next(priority)))
    for _ in range(1000):
        queue.add("a")
        queue.add("b")
    assert sorted(await take(queue, 2)) == ["a", "b"]
    assert len(queue) == 0


async def test_item_is_not_added_if_priority_raises() -> None:
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder({"a": 0}.__getitem__))
    with pytest.raises(KeyError):
        queue.add("b")
    queue.add("a")
    assert await take(queue, 1) == ["a"]


# Statistics.


@pytest.mark.conformance("WQ-07")
@pytest.mark.parametrize("drain", [False, True])
async def test_shut_down_queue_leaves_no_task(drain: bool) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(name="pods")
    for item in "ab":
        queue.add(item)
        queue.add_after(item, 60)
        queue.done(await queue.get())
    queue.statistics()
    if drain:
        await queue.shut_down_with_drain()
    else:
        queue.shut_down()
    await settled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.conformance("WQ-14")
async def test_statistics_of_depth_waiting_and_processing() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    queue.add("b")
    queue.add("b")
    await asyncio.sleep(2.0)
    await queue.get()
    await asyncio.sleep(3.0)
    await queue.get()
    await asyncio.sleep(0.5)
    running = queue.statistics()
    queue.done("a")
    queue.done("b")
    over = queue.statistics()
    assert (running.name, running.depth, running.processing, running.adds) == ("pods", 0, 2, 2)
    assert (running.unfinished_work, running.longest_running) == pytest.approx((4.0, 3.5))
    assert (running.waited.count, running.waited.total) == pytest.approx((2, 7.0))
    assert running.worked.count == 0
    assert (over.unfinished_work, over.longest_running, over.processing) == (0, 0, 0)
    assert (over.worked.count, over.worked.total) == pytest.approx((2, 4.0))
    assert over.worked.buckets == (0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2)


async def test_repr_shows_counts() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.shut_down()
    assert repr(queue) == "<work queue 'pods': 1 queued, 1 processing, shutting down>"
