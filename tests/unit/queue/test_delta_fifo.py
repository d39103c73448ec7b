"""DeltaFIFO: client-go's rules, observed at the consumer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.cache.store import ThreadSafeStore
from aioinformer.errors import KeyFuncError
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.deltas import Delta, Deltas, DeltaType
from aioinformer.resources.keys import DeletedFinalStateUnknown

Popped = tuple[str, list[tuple[str, Any]], bool]


def obj(name: str, value: Any = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value}


def known(*objects: dict[str, Any]) -> ThreadSafeStore[Any]:
    store: ThreadSafeStore[Any] = ThreadSafeStore()
    store.replace({each["metadata"]["name"]: each for each in objects})
    return store


def said(thing: Any) -> Any:
    """An object by its value, a tombstone by its key and the value it knows."""
    if isinstance(thing, DeletedFinalStateUnknown):
        return ("tombstone", thing.key, None if thing.obj is None else thing.obj["value"])
    return thing["value"]


async def drained(queue: DeltaFIFO[Any]) -> list[Popped]:
    """Everything that waits: key, deltas, and whether it belongs to the initial list."""
    popped: list[Popped] = []

    def process(deltas: Deltas[Any], initial: bool) -> None:
        popped.append((queue.key_of(deltas), [(delta.type.value, said(delta.object)) for delta in deltas], initial))

    while len(queue):
        await queue.pop(process)
    return popped


async def deltas_of(queue: DeltaFIFO[Any]) -> dict[str, list[tuple[str, Any]]]:
    return {key: deltas for key, deltas, _ in await drained(queue)}


@pytest.mark.conformance("DF-01")
async def test_each_change_has_its_delta_type() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("s", 9)))
    await queue.add(obj("a", 1))
    await queue.update(obj("b", 2))
    await queue.add(obj("c", 3))
    await queue.delete(obj("c", 4))
    await queue.resync()
    assert await deltas_of(queue) == {
        "a": [("Added", 1)],
        "b": [("Updated", 2)],
        "c": [("Added", 3), ("Deleted", 4)],
        "s": [("Sync", 9)],
    }
    await queue.replace([obj("s", 10)])
    assert await deltas_of(queue) == {"s": [("Replaced", 10)]}


@pytest.mark.conformance("DF-01", "DF-08", "Q-05")
async def test_deltas_of_a_key_are_popped_together_in_order() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    for name, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5)):
        await queue.update(obj(name, value))
    assert [(key, [value for _, value in deltas]) for key, deltas, _ in await drained(queue)] == [
        ("a", [1, 3]),
        ("b", [2, 5]),
        ("c", [4]),
    ]


@pytest.mark.conformance("DF-02")
@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (obj("a", 1), obj("a", 2), 1),
        (obj("a", 1), DeletedFinalStateUnknown("a", obj("a", 0)), 1),
        (DeletedFinalStateUnknown("a", obj("a", 0)), obj("a", 2), 2),
        (DeletedFinalStateUnknown("a", None), DeletedFinalStateUnknown("a", obj("a", 0)), ("tombstone", "a", 0)),
    ],
)
async def test_second_of_two_deletes_keeps_the_known_state(first: Any, second: Any, kept: Any) -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a")))
    await queue.delete(first)
    await queue.delete(second)
    assert await deltas_of(queue) == {"a": [("Deleted", kept)]}


@pytest.mark.conformance("DF-02")
async def test_deletes_with_an_add_between_are_both_kept() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a")))
    await queue.delete(obj("a", 1))
    await queue.add(obj("a", 2))
    await queue.delete(obj("a", 3))
    assert await deltas_of(queue) == {"a": [("Deleted", 1), ("Added", 2), ("Deleted", 3)]}


@pytest.mark.conformance("DF-03")
async def test_delete_of_an_unknown_object_is_dropped() -> None:
    for queue in (DeltaFIFO[Any](), DeltaFIFO[Any](known_objects=known(obj("b")))):
        await queue.delete(obj("a"))
        await queue.delete(DeletedFinalStateUnknown("a", None))
        assert len(queue) == 0


@pytest.mark.conformance("DF-03")
async def test_delete_of_a_known_or_queued_object_is_queued() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("b")))
    await queue.add(obj("a", 1))
    await queue.delete(obj("a", 2))
    await queue.delete(obj("b", 3))
    assert await deltas_of(queue) == {"a": [("Added", 1), ("Deleted", 2)], "b": [("Deleted", 3)]}


@pytest.mark.conformance("DF-04")
async def test_replace_queues_present_objects_before_deletes() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("kept", 1), obj("gone", 2)))
    await queue.add(obj("queued", 3))
    await queue.replace([obj("new", 4), obj("kept", 5)])
    assert [(key, deltas) for key, deltas, _ in await drained(queue)] == [
        ("queued", [("Added", 3), ("Deleted", ("tombstone", "queued", 3))]),
        ("new", [("Replaced", 4)]),
        ("kept", [("Replaced", 5)]),
        ("gone", [("Deleted", ("tombstone", "gone", 2))]),
    ]


@pytest.mark.conformance("DF-04")
async def test_replace_deletes_with_the_newest_queued_object() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a", 1)))
    await queue.update(obj("a", 2))
    await queue.update(obj("a", 3))
    await queue.replace([])
    assert (await deltas_of(queue))["a"][-1] == ("Deleted", ("tombstone", "a", 3))


@pytest.mark.conformance("DF-04")
async def test_replace_neither_deletes_twice_nor_wraps_tombstones() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a", 1), obj("b", 2)))
    await queue.delete(obj("a", 3))
    await queue.replace([])
    await queue.replace([])
    assert await deltas_of(queue) == {"a": [("Deleted", 3)], "b": [("Deleted", ("tombstone", "b", 2))]}


@pytest.mark.conformance("DF-05")
async def test_object_listed_again_after_a_delete_is_queued() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a", 1)))
    await queue.delete(obj("a", 2))
    await queue.replace([obj("a", 3)])
    assert await deltas_of(queue) == {"a": [("Deleted", 2), ("Replaced", 3)]}


@pytest.mark.conformance("DF-06")
async def test_resync_skips_keys_that_are_queued() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a", 1), obj("b", 2), obj("c", 3)))
    await queue.update(obj("a", 4))
    await queue.delete(obj("b", 5))
    await queue.resync()
    await queue.resync()
    assert await deltas_of(queue) == {"a": [("Updated", 4)], "b": [("Deleted", 5)], "c": [("Sync", 3)]}


@pytest.mark.conformance("DF-06")
async def test_resync_without_known_objects_does_nothing() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.resync()
    assert len(queue) == 0


@pytest.mark.conformance("DF-07")
async def test_transform_runs_once_and_never_on_tombstones() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(
        known_objects=known(obj("s", 1), obj("t", 2)),
        transformer=lambda each: {**each, "value": each["value"] + 100},
    )
    await queue.add(obj("a", 1))
    await queue.update(obj("a", 2))
    await queue.delete(obj("a", 3))
    await queue.resync()
    await queue.delete(DeletedFinalStateUnknown("t", obj("t", 4)))
    assert await deltas_of(queue) == {
        "a": [("Added", 101), ("Updated", 102), ("Deleted", 103)],
        "s": [("Sync", 1)],
        "t": [("Sync", 2), ("Deleted", ("tombstone", "t", 4))],
    }


@pytest.mark.conformance("DF-07")
async def test_failing_transform_does_not_block_earlier_objects() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(transformer=lambda each: {**each, "value": 1 // each["value"]})
    consumer = asyncio.create_task(queue.pop(lambda deltas, initial: None))
    await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError):
        await queue.apply([Delta(DeltaType.ADDED, obj("a", 1)), Delta(DeltaType.ADDED, obj("b", 0))])
    for _ in range(5):
        await asyncio.sleep(0)
    done = consumer.done()
    consumer.cancel()
    assert done


@pytest.mark.conformance("DF-10")
async def test_key_of_object_tombstone_and_deltas() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    assert queue.key_of(obj("a")) == "a"
    assert queue.key_of(DeletedFinalStateUnknown("ns/b", None)) == "ns/b"
    assert queue.key_of(Deltas([Delta(DeltaType.ADDED, obj("a")), Delta(DeltaType.DELETED, obj("c"))])) == "c"
    with pytest.raises(KeyFuncError):
        queue.key_of(Deltas())
    with pytest.raises(KeyFuncError):
        await queue.add({})


# Synced.


@pytest.mark.conformance("Q-04", "DF-09")
async def test_new_queue_has_not_synced() -> None:
    assert not DeltaFIFO[Any]().has_synced()


@pytest.mark.conformance("Q-04")
@pytest.mark.parametrize("method", ["add", "update", "delete"])
async def test_queue_filled_by_events_has_synced(method: str) -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await getattr(queue, method)(obj("a"))
    assert queue.has_synced()
    await queue.replace([obj("b")])
    assert queue.has_synced()


@pytest.mark.conformance("Q-04")
async def test_empty_first_list_has_synced_at_once() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([])
    assert queue.has_synced()


@pytest.mark.conformance("Q-04", "DF-08", "DF-09")
async def test_queue_has_synced_once_its_first_list_is_popped() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("gone")))
    await queue.replace([obj("a"), obj("b"), obj("a")])
    states = []
    for _ in range(3):
        states.append(queue.has_synced())
        await queue.pop(lambda deltas, initial: states.append(initial))
    assert states == [False, True, False, True, False, True]
    assert queue.has_synced()


@pytest.mark.conformance("DF-09")
async def test_later_objects_are_not_part_of_the_initial_list() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO()
    await queue.replace([obj("a")])
    await queue.add(obj("b"))
    assert [(key, initial) for key, _, initial in await drained(queue)] == [("a", True), ("b", False)]
