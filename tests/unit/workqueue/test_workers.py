"""The workers of a work queue: how they dequeue and finish items, are cancelled, and end with the queue."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from aioinformer.workqueue.queue import QueueShutDown, WorkQueue
from tests.support.virtual_time import settled


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    """Dequeue `count` items without finishing them."""
    return [await queue.get() for _ in range(count)]


# Workers.


async def test_loop_finishes_an_item_when_it_requests_the_next() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    seen = []
    async for item in queue:
        seen.append(item)
        if len(seen) < 3:
            queue.add("a")
        else:
            queue.shut_down()
    assert seen == ["a", "a", "a"]
    assert await queue.shut_down_with_drain()


@pytest.mark.parametrize("way", ["break", "raise"])
async def test_leaving_the_loop_finishes_its_item(way: str) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    with suppress(LookupError):
        async for _ in queue:
            queue.add("a")
            if way == "break":
                break
            raise LookupError
    assert await take(queue, 1) == ["a"]


async def test_cancelling_a_worker_finishes_its_item() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def work() -> None:
        async for _ in queue:
            await asyncio.sleep(100)

    queue.add("a")
    worker = asyncio.create_task(work())
    await settled()
    worker.cancel()
    await asyncio.wait([worker])
    assert queue.statistics().processing == 0


async def test_processing_block_finishes_its_item_even_on_error() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    with suppress(LookupError):
        async with queue.processing() as item:
            queue.add(item)
            raise LookupError
    async with queue.processing() as item:
        assert item == "a"
    assert queue.statistics().processing == 0


async def test_done_inside_the_block_does_not_end_the_next_run() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    async with queue.processing() as item:
        queue.add(item)
        queue.done(item)
        assert await queue.get() == "a"
    assert queue.statistics().processing == 1


async def test_worker_that_never_waits_does_not_block_the_event_loop() -> None:
    queue: WorkQueue[int] = WorkQueue()
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async with queue, asyncio.TaskGroup() as tasks:
        task = tasks.create_task(other())
        for number in range(20_000):
            queue.add(number)
        queue.shut_down()
        async for _ in queue:
            sum(range(50))
        task.cancel()
    assert others > 2


# Cancelling.


async def test_cancelled_get_loses_no_item() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = asyncio.create_task(queue.get())
    await settled()
    worker.cancel()
    await asyncio.wait([worker])
    queue.add("a")
    assert await take(queue, 1) == ["a"]


async def test_wake_up_of_a_cancelled_worker_passes_to_another() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settled()
    queue.add("a")
    first.cancel()
    assert await second == "a"
    assert first.cancelled()


async def test_timed_out_get_loses_no_item() -> None:
    queue: WorkQueue[str] = WorkQueue()
    asyncio.get_running_loop().call_later(1.0, queue.add, "a")
    got = []
    for _ in range(2):
        try:
            async with asyncio.timeout(1.0):
                got.append(await queue.get())
        except TimeoutError:
            continue
    assert got == ["a"]


# Shutting down and draining.


@pytest.mark.conformance("WQ-02", "WQ-06")
async def test_shut_down_queue_refuses_adds_and_serves_the_rest() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(QueueShutDown, match="'pods'"):
        await queue.get()


@pytest.mark.conformance("WQ-06")
async def test_shut_down_ends_waiting_workers() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def work() -> list[str]:
        return [item async for item in queue]

    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work()) for _ in range(3)]
        await settled()
        queue.shut_down()
    assert [worker.result() for worker in workers] == [[], [], []]


@pytest.mark.conformance("WQ-06")
async def test_shut_down_does_not_wait_for_workers() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    async with queue:
        await queue.get()
    assert queue.shutting_down
    assert queue.statistics().processing == 1


@pytest.mark.conformance("WQ-06")
async def test_drain_waits_for_processing_items() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await settled()
    assert not drain.done()
    queue.done("a")
    assert await drain is True


@pytest.mark.conformance("WQ-06", "WEAK-25")
async def test_drain_waits_for_queued_items() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await settled()
    assert not drain.done()
    async with queue.processing():
        await settled()
        assert not drain.done()
    assert await drain is True


@pytest.mark.conformance("WQ-06")
async def test_drain_waits_for_items_added_during_processing() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await settled()
    queue.done("a")
    await settled()
    assert not drain.done()
    assert await queue.get() == "a"
    queue.done("a")
    assert await drain is True


@pytest.mark.conformance("WQ-06")
async def test_shut_down_ends_a_drain() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await settled()
    queue.shut_down()
    assert await drain is False


async def test_idle_queue_drains_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert await queue.shut_down_with_drain() is True
    assert await queue.shut_down_with_drain() is True


async def test_cancelled_drain_leaves_the_queue_shut_down() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await queue.shut_down_with_drain()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(QueueShutDown):
        await queue.get()
