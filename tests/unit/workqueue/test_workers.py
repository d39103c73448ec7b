"""The workers of a queue: how they dequeue and finish items, are cancelled, and end with the queue."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count

import pytest

from aioinformer.workqueue import QueueShutDown, WorkQueue, parallelize
from tests.support.virtual_time import settled


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue()


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    """Dequeue `count` items without finishing them."""
    return [await queue.get() for _ in range(count)]


async def test_loop_finishes_an_item_when_it_requests_the_next(queue: WorkQueue[str]) -> None:
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
async def test_leaving_the_loop_finishes_its_item(queue: WorkQueue[str], way: str) -> None:
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


async def test_processing_block_finishes_its_item_even_on_error(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with suppress(LookupError):
        async with queue.processing() as item:
            queue.add(item)
            raise LookupError
    async with queue.processing() as item:
        assert item == "a"
    assert queue.statistics().processing == 0


async def test_done_inside_the_block_does_not_end_the_next_run(queue: WorkQueue[str]) -> None:
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


# Shutting down and draining.


@pytest.mark.conformance("WQ-02", "WQ-06")
async def test_shut_down_queue_refuses_adds_and_serves_the_rest() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert await queue.get() == "a"
    assert repr(queue) == "<work queue 'pods': 0 queued, 1 processing, shutting down>"
    with pytest.raises(QueueShutDown, match="'pods'"):
        await queue.get()


@pytest.mark.conformance("WQ-06")
async def test_shut_down_does_not_wait_for_workers(queue: WorkQueue[str]) -> None:
    queue.add("a")
    async with queue:
        await queue.get()
    assert queue.shutting_down
    assert queue.statistics().processing == 1


@pytest.mark.conformance("WQ-06", "WEAK-25")
async def test_drain_waits_for_items_added_during_processing(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await settled()
    assert not drain.done()
    queue.done("a")
    await settled()
    assert not drain.done()
    assert await queue.get() == "a"
    queue.done("a")
    assert await drain is True


async def test_idle_queue_drains_at_once(queue: WorkQueue[str]) -> None:
    assert await queue.shut_down_with_drain() is True
    assert await queue.shut_down_with_drain() is True


async def test_cancelled_drain_leaves_the_queue_shut_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await queue.shut_down_with_drain()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(QueueShutDown):
        await queue.get()


@pytest.mark.conformance("WQ-15")
@pytest.mark.parametrize("workers", [1, 3, 10, 100])
async def test_each_piece_is_processed_once(workers: int) -> None:
    done = []

    async def do_piece(piece: int) -> None:
        await asyncio.sleep(piece % 3)
        done.append(piece)

    await parallelize(workers, range(10), do_piece)
    assert sorted(done) == list(range(10))


async def test_at_most_as_many_pieces_run_at_a_time_as_workers() -> None:
    running: list[int] = []
    most = 0

    async def do_piece(piece: int) -> None:
        nonlocal most
        running.append(piece)
        most = max(most, len(running))
        await asyncio.sleep(1)
        running.remove(piece)

    await parallelize(3, range(10), do_piece)
    assert most == 3


async def test_no_pieces() -> None:
    await parallelize(3, [], asyncio.sleep)


@pytest.mark.conformance("WQ-15")
async def test_cancelled_parallelizer_takes_no_further_piece() -> None:
    pieces = count()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await parallelize(2, pieces, lambda piece: asyncio.sleep(1))
    assert next(pieces) == 6


async def test_failed_piece_stops_the_others() -> None:
    pieces = iter([1.0, 3.0, -1.0, 1.0, 5.0])

    async def do_piece(seconds: float) -> None:
        if seconds < 0:
            raise LookupError(seconds)
        await asyncio.sleep(seconds)

    with pytest.raises(ExceptionGroup) as raised:
        await parallelize(2, pieces, do_piece)
    assert [type(error) for error in raised.value.exceptions] == [LookupError]
    assert list(pieces) == [1.0, 5.0]


async def test_zero_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="workers"):
        await parallelize(0, [], asyncio.sleep)
