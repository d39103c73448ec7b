"""RealFIFO: client-go's rules, observed at the consumer."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import DeletedFinalStateUnknown
from aioinformer.errors import FIFOClosed, KeyFuncError, UsageError
from aioinformer.queue import Delta, Deltas, DeltaType, RealFIFO
from tests.support.batches import check_flushes, process_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Delta type, value, and whether it belongs to the initial list.
Processed = tuple[str, Any, bool]


def obj(name: str, value: Any = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value}


class Consumer:
    """Records what it processes."""

    def __init__(self) -> None:
        self.processed: list[Processed] = []

    def process(self, deltas: Deltas[Any], initial: bool) -> None:
        (delta,) = deltas
        item = delta.object
        value = ("tombstone", item.key) if isinstance(item, DeletedFinalStateUnknown) else item["value"]
        self.processed.append((delta.type.value, value, initial))

    def replace_all(self, objects: list[Any], is_in_initial_list: bool) -> Iterator[None]:
        for _ in objects:
            yield
        self.processed.append(("ReplacedAll", [each["value"] for each in objects], is_in_initial_list))

    def sync_all(self) -> Iterator[None]:
        yield
        self.processed.append(("SyncAll", None, False))


async def drained(queue: RealFIFO[Any], consumer: Consumer) -> list[Processed]:
    while len(queue):
        await queue.pop(consumer.process)
    return consumer.processed


def make_queue(**options: Any) -> tuple[RealFIFO[Any], Consumer]:
    consumer = Consumer()
    return RealFIFO(consumer, **options), consumer


@pytest.mark.conformance("RF-01", "RF-02", "RF-07")
async def test_items_are_processed_in_order_of_arrival() -> None:
    queue, consumer = make_queue()
    await queue.add(obj("a", 1))
    await queue.update(obj("b", 2))
    await queue.update(obj("a", 3))
    await queue.delete(obj("b", 4))
    await queue.replace([obj("a", 5)])
    await queue.resync()
    await queue.delete(DeletedFinalStateUnknown("a", None))
    assert [(kind, value) for kind, value, _ in await drained(queue, consumer)] == [
        ("Added", 1),
        ("Updated", 2),
        ("Updated", 3),
        ("Deleted", 4),
        ("ReplacedAll", [5]),
        ("SyncAll", None),
        ("Deleted", ("tombstone", "a")),
    ]


@pytest.mark.conformance("RF-03")
async def test_delete_of_an_unknown_object_is_queued() -> None:
    queue, consumer = make_queue()
    await queue.delete(obj("a", 1))
    assert [kind for kind, _, _ in await drained(queue, consumer)] == ["Deleted"]


@pytest.mark.conformance("RF-08", "RF-12")
async def test_version_follows_all_earlier_items() -> None:
    queue, consumer = make_queue(batch_size=2)
    await queue.apply([Delta(DeltaType.ADDED, obj("a", 1))], "1")
    await queue.apply([Delta(DeltaType.ADDED, obj("b", 2)), Delta(DeltaType.ADDED, obj("c", 3))], "3")
    batches = []
    while len(queue):
        version = await process_batch(queue, consumer.process)
        batches.append((version, [value for _, value, _ in consumer.processed]))
    assert batches == [("1", [1]), ("1", [1, 2, 3]), ("3", [1, 2, 3])]


@pytest.mark.conformance("RF-11")
async def test_items_before_the_first_list_are_initial() -> None:
    queue, consumer = make_queue()
    await queue.bookmark("5")
    await queue.replace([obj("a")], "7")
    await queue.pop(consumer.process)
    before = queue.has_synced()
    await queue.pop(consumer.process)
    assert (before, queue.has_synced()) == (False, True)


@pytest.mark.conformance("RF-09")
async def test_objects_are_transformed_tombstones_are_not() -> None:
    queue, consumer = make_queue(transformer=lambda each: {**each, "value": each["value"] + 100})
    await queue.add(obj("a", 1))
    await queue.replace([obj("a", 2), obj("b", 3)])
    await queue.delete(obj("b", 4))
    await queue.delete(DeletedFinalStateUnknown("a", obj("a", 5)))
    assert [value for _, value, _ in await drained(queue, consumer)] == [101, [102, 103], 104, ("tombstone", "a")]


@pytest.mark.conformance("RF-09")
async def test_list_with_a_failing_transform_is_not_queued() -> None:
    queue, _ = make_queue(transformer=lambda each: {**each, "value": 1 // each["value"]})
    with pytest.raises(ZeroDivisionError):
        await queue.replace([obj("a", 1), obj("b", 0)])
    assert len(queue) == 0
    assert not queue.has_synced()


@pytest.mark.conformance("RF-10", "RF-11")
async def test_empty_first_list_syncs_when_processed() -> None:
    queue, consumer = make_queue()
    await queue.replace([])
    assert not queue.has_synced()
    await queue.pop(consumer.process)
    assert queue.has_synced()
    assert consumer.processed == [("ReplacedAll", [], True)]


@pytest.mark.conformance("RF-11", "RF-12")
async def test_batch_ends_with_the_initial_population() -> None:
    queue, consumer = make_queue()
    await queue.bookmark("1")
    await queue.replace([obj("a", 1)], "2")
    await queue.add(obj("b", 2))
    assert await process_batch(queue, consumer.process) == "2"
    assert queue.has_synced()
    assert consumer.processed == [("ReplacedAll", [1], True)]
    await process_batch(queue, consumer.process)
    assert consumer.processed[1:] == [("Added", 2, False)]


@pytest.mark.conformance("Q-04", "RF-11")
async def test_queue_without_a_first_replace_has_synced() -> None:
    queue, consumer = make_queue()
    await queue.add(obj("a", 1))
    assert queue.has_synced()
    await queue.replace([])
    assert [initial for _, _, initial in await drained(queue, consumer)] == [False, False]


@pytest.mark.conformance("Q-02", "RF-12")
async def test_batch_is_limited_to_its_size() -> None:
    queue, consumer = make_queue(batch_size=3)
    await queue.apply([Delta(DeltaType.ADDED, obj(f"o{number}", number)) for number in range(7)])
    sizes = []
    while len(queue):
        before = len(consumer.processed)
        await process_batch(queue, consumer.process)
        sizes.append(len(consumer.processed) - before)
    assert sizes == [3, 3, 1]


@pytest.mark.conformance("RF-13")
async def test_object_without_key_reaches_the_consumer() -> None:
    queue, _ = make_queue()
    await queue.apply([Delta(DeltaType.ADDED, {"no": "metadata"}), Delta(DeltaType.ADDED, obj("b", 1))])
    keys: list[str] = []

    def process(deltas: Deltas[Any], initial: bool) -> None:
        keys.append(queue.key_of(deltas))

    with pytest.raises(KeyFuncError):
        await process_batch(queue, process)
    await process_batch(queue, process)
    assert keys == ["b"]


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("RF-15")
async def test_producer_waits_for_the_current_batch() -> None:
    queue, consumer = make_queue()
    await queue.replace([obj(f"o{number}", number) for number in range(100)])
    batch = asyncio.create_task(process_batch(queue, consumer.process))
    await asyncio.sleep(0)
    late = asyncio.create_task(queue.add(obj("late")))
    await asyncio.sleep(0)
    assert not late.done()
    await batch
    await late
    assert len(queue) == 1


@pytest.mark.conformance("RF-10", "Q-01")
async def test_failed_item_counts_as_processed() -> None:
    class Broken(Consumer):
        def replace_all(self, objects: list[Any], is_in_initial_list: bool) -> Iterator[None]:
            yield from super().replace_all(objects, is_in_initial_list)
            raise ZeroDivisionError

    consumer = Broken()
    queue: RealFIFO[Any] = RealFIFO(consumer)
    await queue.replace([obj("a")])
    with pytest.raises(ZeroDivisionError):
        await queue.pop(consumer.process)
    assert len(queue) == 0
    assert queue.has_synced()


@pytest.mark.usefixtures("fine_slices")
async def test_batch_is_flushed_before_pauses_and_at_its_end() -> None:
    queue, _ = make_queue()
    await queue.apply([Delta(DeltaType.ADDED, obj(f"o{number}")) for number in range(100)])
    await check_flushes(queue)


@pytest.mark.conformance("RF-17", "Q-03")
async def test_closed_queue_is_drained_before_waits_end() -> None:
    queue, consumer = make_queue()
    await queue.add(obj("a"))
    await queue.close()
    await queue.pop(consumer.process)
    waiting = [asyncio.create_task(pop(consumer.process)) for pop in (queue.pop, partial(process_batch, queue))]
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [FIFOClosed] * 2


@pytest.mark.conformance("RF-18")
async def test_key_of_objects_deltas_and_tombstones() -> None:
    queue, _ = make_queue()
    delta = Delta(DeltaType.ADDED, obj("a"))
    things = [obj("a"), delta, Deltas([delta]), DeletedFinalStateUnknown("a", None)]
    assert [queue.key_of(item) for item in things] == ["a"] * 4


def test_batch_size_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="batch_size=0"):
        make_queue(batch_size=0)
