"""A waiting consumer is passed a few changes in the step that enqueues them, and is woken for everything else."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.store import ThreadSafeStore
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.deltas import Delta, DeltaType
from aioinformer.queue.real_fifo import RealFIFO

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from aioinformer.queue.fifo import FIFO, Step

KINDS = ["delta", "in_order"]


def added(*names: str) -> list[Delta[Any]]:
    return [Delta(DeltaType.ADDED, {"metadata": {"name": name}}) for name in names]


class Consumer:
    """Records what it is passed, and how.

    Attributes:
        few: the names in each call with a few changes, and the version that was reached.
        woken: the names in each batch that the consumer was woken for.
        error: raised instead of processing a few changes.
    """

    def __init__(self, queue: FIFO[Any, Any]) -> None:
        self.queue = queue
        self.few: list[tuple[list[str], str]] = []
        self.woken: list[list[str]] = []
        self.error: Exception | None = None
        #: A change after which the consumer fails, and does not take the next.
        self.fails_after = ""
        self.pause = asyncio.Event()
        self.pause.set()

    async def run(self) -> None:
        while True:
            async with self.queue.batch(self.process_few) as batch:
                self.woken.append(self.names(batch))
                await self.pause.wait()

    def process_few(self, steps: Iterable[Step[Any]]) -> None:
        names = self.names(steps)
        self.few.append((names, self.queue.version))
        if self.error is not None:
            raise self.error

    def names(self, steps: Iterable[Step[Any]]) -> list[str]:
        names: list[str] = []
        for step in steps:
            if step is not None:
                obj: Any = step[0][-1].object
                names.append(obj["metadata"]["name"])
                if names[-1] == self.fails_after:
                    raise MemoryError
        return names


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture(params=KINDS)
def queue(request: pytest.FixtureRequest) -> FIFO[Any, Any]:
    if request.param == "delta":
        return DeltaFIFO(known_objects=ThreadSafeStore())

    class Nothing:
        def replace_all(self, objects: list[Any], is_in_initial_list: bool) -> Any:
            yield

        def sync_all(self) -> Any:
            yield

    return RealFIFO(Nothing())


@asynccontextmanager
async def consuming(queue: FIFO[Any, Any]) -> AsyncIterator[Consumer]:
    consumer = Consumer(queue)
    task = asyncio.create_task(consumer.run(), name="consumer")
    await turns()
    yield consumer
    task.cancel()
    await asyncio.wait({task})


async def test_change_is_processed_in_the_step_that_enqueues_it(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        applying = queue.apply(added("a"), "7")
        with pytest.raises(StopIteration):  # it ends without a turn of the event loop
            applying.send(None)
        assert consumer.few == [(["a"], "7")]
        await turns()
        assert consumer.woken == []


async def test_changes_one_after_the_other_keep_their_order(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        for number in range(5):
            await queue.apply(added(f"p{number}"), str(number))
    assert consumer.few == [([f"p{number}"], str(number)) for number in range(5)]


async def test_version_alone_is_processed_at_once(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        await queue.apply([], "9")
        assert consumer.few == [([], "9")]


async def test_consumer_is_woken_for_many_changes(queue: FIFO[Any, Any]) -> None:
    names = [f"p{number}" for number in range(100)]
    async with consuming(queue) as consumer:
        await queue.apply(added(*names), "100")
        assert consumer.few == []
        await turns()
        assert [name for batch in consumer.woken for name in batch] == names


async def test_change_waits_while_a_batch_is_processed(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        consumer.pause.clear()
        await queue.apply(added(*"abcdefghij"), "10")
        await turns()
        applying = asyncio.create_task(queue.apply(added("later"), "11"), name="apply")
        await turns()
        assert not applying.done()
        consumer.pause.set()
        await applying
        await turns()
        assert consumer.few == []
        assert consumer.woken[-1] == ["later"]


async def test_change_behind_waiting_ones_does_not_overtake_them(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        many = queue.apply(added(*"abcdefghij"), "10")
        with pytest.raises(StopIteration):
            many.send(None)  # the consumer is woken, but has not run yet
        await queue.apply(added("later"), "11")
        await turns()
        assert [name for batch in consumer.woken for name in batch] == [*"abcdefghij", "later"]
        assert consumer.few == []


async def test_error_of_the_consumer_is_raised_by_apply(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        consumer.error = MemoryError()
        with pytest.raises(MemoryError):
            await queue.apply(added("a"), "1")
        consumer.error = None
        await queue.apply(added("b"), "2")
        assert consumer.few[-1] == (["b"], "2")


async def test_changes_after_a_failed_one_wait_for_the_consumer(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        consumer.fails_after = "b"
        with pytest.raises(MemoryError):
            await queue.apply(added(*"abcd"), "4")
        await turns()
        assert consumer.woken == [["c", "d"]]
        await queue.apply(added("e"), "5")
        assert consumer.few == [(["e"], "5")]


async def test_changes_before_a_bad_one_are_processed() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=ThreadSafeStore())
    async with consuming(queue) as consumer:
        with pytest.raises(Exception, match="key"):
            await queue.apply([*added("a"), Delta(DeltaType.ADDED, object())], "1")
        await turns()
        assert consumer.woken == [["a"]]


async def test_no_consumer_is_called_after_its_end(queue: FIFO[Any, Any]) -> None:
    async with consuming(queue) as consumer:
        pass
    await queue.apply(added("a"), "1")
    assert consumer.few == []
    assert len(queue) > 0
