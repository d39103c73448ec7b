"""Consumers of queues: waiting, batches, versions, errors and the end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import DeltaFIFO
from aioinformer.cache import ThreadSafeStore
from aioinformer.errors import FIFOClosed
from aioinformer.queue import Delta, DeltaType, RealFIFO
from aioinformer.queue.listed_objects import ListedObjects
from tests.support.batches import check_flushes, process_batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from aioinformer.queue import Deltas
    from tests.support.queues import AnyQueue


def obj(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def ignore(deltas: Deltas[Any], initial: bool) -> None:
    """A consumer that wants nothing."""


class Broken(Exception):
    """What a consumer raises."""


def refuse(deltas: Deltas[Any], initial: bool) -> None:
    raise Broken


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("what", ["replace", "resync"])
async def test_replace_and_resync_wake_consumers(what: str) -> None:
    known: ThreadSafeStore[Any] = ThreadSafeStore()
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known)
    consumer = asyncio.create_task(queue.pop(ignore))
    await turns()
    known.put("a", obj("a"))
    await (queue.resync() if what == "resync" else queue.replace([obj("a")]))
    await consumer


@pytest.mark.conformance("Q-02")
async def test_batch_has_all_queued_keys_and_the_version() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([obj("a"), obj("b")], "7")
    await queue.add(obj("c"))
    keys: list[str] = []
    version = await process_batch(queue, lambda deltas, initial: keys.append(queue.key_of(deltas)))
    assert (keys, version, len(queue)) == (["a", "b", "c"], "7", 0)


async def test_version_alone_is_a_batch_once() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.apply([], "5")
    assert await process_batch(queue, refuse) == "5"
    consumer = asyncio.create_task(process_batch(queue, refuse))
    await turns()
    assert not consumer.done()
    await queue.apply([], "6")
    assert await consumer == "6"


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("ARC-08", "CTL-15")
async def test_batch_is_flushed_before_yielding_and_at_its_end() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([obj(f"o{number}") for number in range(100)])
    await check_flushes(queue)


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("CTL-15")
async def test_changes_during_a_batch_go_into_the_next() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([obj(f"o{number}") for number in range(100)])
    seen: list[str] = []
    batch = asyncio.create_task(process_batch(queue, lambda deltas, initial: seen.append(queue.key_of(deltas))))
    await asyncio.sleep(0)
    await queue.add(obj("late"))
    await batch
    assert len(seen) == 100
    assert len(queue) == 1


@pytest.mark.conformance("Q-01")
async def test_item_whose_consumer_raises_is_not_queued_again() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.add(obj("a"))
    with pytest.raises(Broken):
        await queue.pop(refuse)
    assert len(queue) == 0
    await queue.add(obj("b"))
    await queue.pop(ignore)


async def test_batch_whose_consumer_raises_is_flushed() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([obj("a"), obj("b")], "4")
    flushed: list[bool] = []
    with pytest.raises(Broken):
        await process_batch(queue, refuse, lambda: flushed.append(True))
    assert flushed == [True]
    assert await process_batch(queue, ignore) == "4"


@pytest.mark.conformance("Q-03")
async def test_closed_queue_is_drained_first() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.add(obj("a"))
    await queue.add(obj("b"))
    await queue.close()
    await queue.pop(ignore)
    await process_batch(queue, ignore)
    for pop in (queue.pop, partial(process_batch, queue)):
        with pytest.raises(FIFOClosed):
            await pop(ignore)


@pytest.mark.conformance("Q-03")
async def test_close_wakes_all_consumers() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    waiting = [asyncio.create_task(queue.pop(ignore)) for _ in range(10)]
    await turns()
    await queue.close()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [FIFOClosed] * 10


async def test_cancelled_pop_loses_nothing() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    consumer = asyncio.create_task(queue.pop(ignore))
    await turns()
    await queue.add(obj("a"))
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert len(queue) == 1


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("WEAK-23")
async def test_replace_yields_to_the_event_loop() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    replacing = asyncio.create_task(queue.replace([obj(f"o{number}") for number in range(200)]))
    await turns()
    assert not replacing.done()
    assert not queue.has_synced()
    await replacing
    assert len(queue) == 200


def listed(*names: str) -> ListedObjects[Any]:
    objects: ListedObjects[Any] = ListedObjects()
    for name in names:
        objects.put(name, obj(name))
    return objects


async def test_take_over_replaces_all_objects() -> None:
    store: ThreadSafeStore[Any] = ThreadSafeStore()
    store.put("gone", obj("gone"))
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=store)
    await queue.replace_owned(listed("a", "b"), "7")
    popped: list[tuple[str, str, bool]] = []
    version = await process_batch(
        queue, lambda deltas, initial: popped.extend((queue.key_of(deltas), delta.type, initial) for delta in deltas)
    )
    assert popped == [("a", "Replaced", True), ("b", "Replaced", True), ("gone", "Deleted", True)]
    assert version == "7"


@pytest.mark.usefixtures("fine_slices")
async def test_interrupted_take_over_leaves_nothing_stuck() -> None:
    objects = listed(*[f"o{number}" for number in range(2000)])
    store: ThreadSafeStore[Any] = ThreadSafeStore()
    store.replace(objects)
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=store)
    popped: list[str] = []
    consumer = asyncio.create_task(process_batch(queue, lambda deltas, initial: popped.append(queue.key_of(deltas))))
    names = [*objects]
    taking_over = asyncio.create_task(queue.replace_owned(objects))
    await turns()
    assert not taking_over.done()
    taking_over.cancel()
    await asyncio.wait({taking_over})
    async with asyncio.timeout(10):
        await consumer
    assert popped == names


# A waiting consumer is passed a few changes in the step that enqueues them, and is woken for everything else.


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

    def __init__(self, queue: AnyQueue) -> None:
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
            async with self.queue.batch(self.process_for_producer) as batch:
                self.woken.append(self.names(batch))
                await self.pause.wait()

    def process_for_producer(self, steps: Iterable[Any]) -> None:
        names = self.names(steps)
        self.few.append((names, self.queue.version))
        if self.error is not None:
            raise self.error

    def names(self, steps: Iterable[Any]) -> list[str]:
        names: list[str] = []
        for step in steps:
            if step is not None:
                obj: Any = step[0][-1].object
                names.append(obj["metadata"]["name"])
                if names[-1] == self.fails_after:
                    raise MemoryError
        return names


@pytest.fixture(params=KINDS)
def queue(request: pytest.FixtureRequest) -> AnyQueue:
    if request.param == "delta":
        return DeltaFIFO(known_objects=ThreadSafeStore())

    class Nothing:
        def replace_all(self, objects: list[Any], is_in_initial_list: bool) -> Any:
            yield

        def sync_all(self) -> Any:
            yield

    return RealFIFO(Nothing())


@asynccontextmanager
async def consuming(queue: AnyQueue) -> AsyncIterator[Consumer]:
    consumer = Consumer(queue)
    task = asyncio.create_task(consumer.run(), name="consumer")
    await turns()
    yield consumer
    task.cancel()
    await asyncio.wait({task})


async def test_no_version_is_reached_after_a_lost_item_until_the_next_list(queue: AnyQueue) -> None:
    await queue.replace([obj("a")], "1")
    versions = [await process_batch(queue, ignore)]
    queue.mark_incomplete(initial=False)
    versions.append(queue.version)
    await queue.apply([], "2")
    versions.append(await process_batch(queue, ignore))
    await queue.apply(added("a"), "3")
    versions.append(await process_batch(queue, ignore))
    await queue.replace([obj("a")], "4")
    versions.append(await process_batch(queue, ignore))
    await queue.apply([], "5")
    versions.append(await process_batch(queue, ignore))
    assert versions == ["1", "", "", "", "4", "5"]


async def test_initial_list_that_was_not_processed_ends_with_the_next_one(queue: AnyQueue) -> None:
    await queue.replace([obj("a")], "1")
    await process_batch(queue, ignore)
    assert queue.has_synced()
    queue.mark_incomplete(initial=False)
    assert queue.has_synced(), "what was lost was a later change"
    for initial in (True, False):
        queue.mark_incomplete(initial=initial)
        assert not queue.has_synced()
    await queue.apply(added("b"), "2")
    await process_batch(queue, ignore)
    assert not queue.has_synced()
    await queue.replace([obj("a"), obj("b")], "3")
    assert not queue.has_synced()
    await process_batch(queue, ignore)
    assert queue.has_synced()


async def test_repr_has_length_sync_and_version(queue: AnyQueue) -> None:
    name = type(queue).__name__
    assert repr(queue) == f"<{name}, 0 queued, not synced, version ''>"
    await queue.replace([obj("a")], "7")
    assert repr(queue).startswith(f"<{name}, 1 queued, not synced, ")
    await process_batch(queue, ignore)
    await queue.close()
    assert repr(queue) == f"<{name}, 0 queued, synced, version '7', closed>"


@pytest.mark.usefixtures("fine_slices")
async def test_change_does_not_overtake_a_list_that_is_being_enqueued(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        replacing = asyncio.create_task(queue.replace([obj(f"p{number}") for number in range(200)], "1"))
        await turns()
        assert not replacing.done()
        applying = asyncio.create_task(queue.apply(added("later"), "2"))
        await asyncio.gather(replacing, applying)
        await turns()
        assert consumer.few == []
        assert consumer.woken[-1][-1] == "later"
        assert queue.version == "2"


async def test_change_is_processed_in_the_step_that_enqueues_it(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        applying = queue.apply(added("a"), "7")
        with pytest.raises(StopIteration):  # it ends without a turn of the event loop
            applying.send(None)
        assert consumer.few == [(["a"], "7")]
        await turns()
        assert consumer.woken == []


async def test_version_alone_is_processed_at_once(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        await queue.apply([], "9")
        assert consumer.few == [([], "9")]


async def test_consumer_is_woken_for_many_changes(queue: AnyQueue) -> None:
    names = [f"p{number}" for number in range(100)]
    async with consuming(queue) as consumer:
        await queue.apply(added(*names), "100")
        assert consumer.few == []
        await turns()
        assert [name for batch in consumer.woken for name in batch] == names


async def test_change_waits_while_a_batch_is_processed(queue: AnyQueue) -> None:
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


async def test_change_behind_waiting_ones_does_not_overtake_them(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        many = queue.apply(added(*"abcdefghij"), "10")
        with pytest.raises(StopIteration):
            many.send(None)  # the consumer is woken, but has not run yet
        await queue.apply(added("later"), "11")
        await turns()
        assert [name for batch in consumer.woken for name in batch] == [*"abcdefghij", "later"]
        assert consumer.few == []


async def test_error_of_the_consumer_is_raised_by_apply(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        consumer.error = MemoryError()
        with pytest.raises(MemoryError):
            await queue.apply(added("a"), "1")
        consumer.error = None
        await queue.apply(added("b"), "2")
        assert consumer.few[-1] == (["b"], "2")


async def test_changes_after_a_failed_one_wait_for_the_consumer(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        consumer.fails_after = "b"
        with pytest.raises(MemoryError):
            await queue.apply(added(*"abcd"), "4")
        await turns()
        assert consumer.woken == [["c", "d"]]
        await queue.apply(added("e"), "5")
        assert consumer.few == [(["e"], "5")]


async def test_no_consumer_is_called_after_its_end(queue: AnyQueue) -> None:
    async with consuming(queue) as consumer:
        pass
    await queue.apply(added("a"), "1")
    assert consumer.few == []
    assert len(queue) > 0
