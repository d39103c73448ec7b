"""The plain work queue: who gets what, and when."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from aioinformer.errors import UsageError
from aioinformer.workqueue.orders import PriorityOrder
from aioinformer.workqueue.queue import WorkQueue
from aioinformer.workqueue.rate_limiting import RateLimitingQueue
from tests.shell.virtual_time import settled


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    """Gets so many items, and is done with none of them."""
    return [await queue.get() for _ in range(count)]


@pytest.mark.conformance("WQ-04")
async def test_items_are_handed_out_in_the_order_of_their_adds() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in "cab":
        queue.add(item)
    assert await take(queue, 3) == ["c", "a", "b"]


@pytest.mark.conformance("WQ-01", "WQ-04")
async def test_adds_before_the_work_are_one_piece_of_work() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in "abaaba":
        queue.add(item)
    assert len(queue) == 2
    assert await take(queue, 2) == ["a", "b"]


@pytest.mark.conformance("WQ-01", "WQ-03", "WQ-04")
async def test_adds_during_the_work_are_exactly_one_more_after_it() -> None:
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
async def test_what_was_added_during_its_work_is_queued_last() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.done("a")
    assert await take(queue, 2) == ["b", "a"]


@pytest.mark.conformance("WQ-04")
async def test_a_second_worker_waits_for_an_item_until_the_first_is_done() -> None:
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
async def test_what_is_done_can_be_added_again() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(2):
        queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")


@pytest.mark.conformance("WQ-05")
async def test_the_length_is_what_waits_and_not_what_is_worked_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.add("a")
    assert len(queue) == 1


@pytest.mark.conformance("WQ-02")
async def test_a_worker_waits_until_something_is_added() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = asyncio.create_task(queue.get())
    await settled()
    assert not worker.done()
    queue.add("a")
    assert await worker == "a"


async def test_workers_that_wait_share_what_comes() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settled()
    for item in "abc":
        queue.add(item)
    assert sorted(await asyncio.gather(*workers)) == ["a", "b", "c"]


def test_items_may_be_added_before_there_is_a_loop() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert asyncio.run(queue.get()) == "a"


async def test_done_without_a_get_is_an_error_that_names_the_item() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    with pytest.raises(UsageError, match=r"done\('a'\).*'pods'"):
        queue.done("a")
    assert await take(queue, 1) == ["a"]


# Order.


@pytest.mark.conformance("WQ-08", "WEAK-25")
async def test_the_most_urgent_item_comes_first() -> None:
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder({"a": 0, "b": 5, "c": 5, "d": 9}.__getitem__))
    for item in "abcd":
        queue.add(item)
    assert await take(queue, 4) == ["d", "b", "c", "a"]


@pytest.mark.conformance("WQ-01", "WQ-08")
async def test_an_item_that_is_added_again_is_moved_if_it_has_become_more_urgent() -> None:
    urgency = {"a": 0, "b": 0, "c": 1}
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: urgency[item]))
    for item in "abc":
        queue.add(item)
    urgency.update(b=2, c=-1)
    queue.add("b")
    queue.add("c")
    assert len(queue) == 3
    assert await take(queue, 3) == ["b", "c", "a"]


async def test_an_item_whose_urgency_rises_ever_again_is_handed_out_once() -> None:
    urgency = count()
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: next(urgency)))
    for _ in range(1000):
        queue.add("a")
        queue.add("b")
    assert sorted(await take(queue, 2)) == ["a", "b"]
    assert len(queue) == 0


async def test_an_item_whose_urgency_cannot_be_told_is_not_taken_in() -> None:
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder({"a": 0}.__getitem__))
    with pytest.raises(KeyError):
        queue.add("b")
    queue.add("a")
    assert await take(queue, 1) == ["a"]


# Statistics.


@pytest.mark.conformance("WQ-07")
@pytest.mark.parametrize("drain", [False, True])
async def test_a_queue_that_was_used_and_shut_down_leaves_no_task(drain: bool) -> None:
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
async def test_the_statistics_tell_depth_waits_and_work() -> None:
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


async def test_a_queue_shows_itself_with_its_numbers() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.shut_down()
    assert repr(queue) == "<work queue 'pods': 1 queued, 1 processing, shutting down>"
