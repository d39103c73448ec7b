"""DeltaFIFO: client-go's rules, observed at the consumer, and the lists that it takes over."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from aioinformer import DeletedFinalStateUnknown, DeltaFIFO
from aioinformer.cache import ThreadSafeStore
from aioinformer.errors import KeyFuncError
from aioinformer.queue import Delta, Deltas, DeltaType
from aioinformer.queue.listed_objects import DividedDict, ListedObjects
from tests.support.batches import process_batch
from tests.support.queue_model import QueueModel

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


FORMS = ["objects", "dict", "listed"]


async def replace(queue: DeltaFIFO[Any], form: str, *objects: dict[str, Any]) -> None:
    """Enqueue a whole collection in one of the forms in which it may be passed."""
    if form == "objects":
        await queue.replace(objects)
        return
    by_key: Any = {} if form == "dict" else ListedObjects()
    for each in objects:
        by_key[each["metadata"].get("name", "")] = each
    await queue.replace_owned(by_key)
    assert not by_key, "the queue owns it"


@pytest.mark.parametrize("form", FORMS)
async def test_list_follows_what_waits_in_any_form(form: str) -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a"), obj("b"), obj("c")))
    await queue.delete(obj("a", 1))
    await queue.update(obj("b", 2))
    await replace(queue, form, obj("a", 3), obj("d", 4))
    assert await deltas_of(queue) == {
        "a": [("Deleted", 1), ("Replaced", 3)],
        "b": [("Updated", 2), ("Deleted", ("tombstone", "b", 2))],
        "c": [("Deleted", ("tombstone", "c", 0))],
        "d": [("Replaced", 4)],
    }


@pytest.mark.parametrize("form", FORMS)
async def test_list_is_transformed_in_any_form(form: str) -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(transformer=lambda each: {**each, "value": each["value"] + 10})
    await replace(queue, form, obj("a", 1), obj("b", 2))
    assert await deltas_of(queue) == {"a": [("Replaced", 11)], "b": [("Replaced", 12)]}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("listed", [True, False])
async def test_listed_object_without_name_may_be_any_that_is_missing(form: str, listed: bool) -> None:
    nameless: dict[str, Any] = {"metadata": {}, "value": 9}
    queue: DeltaFIFO[Any] = DeltaFIFO(
        lambda each: each["metadata"].get("name", ""), known_objects=known(obj("a"), obj("b"))
    )
    await queue.add(obj("c"))
    if not listed:
        await queue.add(nameless)
    await replace(queue, form, obj("a", 1), *[nameless] * listed)
    deleted = [key for key, deltas, _ in await drained(queue) if deltas[-1][0] == "Deleted"]
    assert sorted(deleted) == ([] if listed else ["", "b", "c"])


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


async def test_item_without_memory_for_its_deltas_stays_in_line() -> None:
    memory = pytest.importorskip("_testcapi", reason="CPython's own tests of missing memory")
    for allocation in range(1, 80):
        queue: DeltaFIFO[Any] = DeltaFIFO()
        await queue.add(obj("a", 1))
        taken: Any = None

        async def pop(queue: DeltaFIFO[Any]) -> None:
            nonlocal taken
            async with queue.batch() as batch:
                for step in batch:
                    taken = step  # which needs no memory

        popping = pop(queue)
        memory.set_nomemory(allocation, allocation + 1)
        try:
            await popping
        except MemoryError:
            pass
        finally:
            memory.remove_mem_hooks()
        waiting = [("a", [("Added", 1)], False)] if taken is None else []
        assert await drained(queue) == waiting, f"allocation {allocation}"


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


@pytest.mark.conformance("DF-04", "DF-05")
async def test_replace_neither_deletes_twice_nor_wraps_tombstones() -> None:
    queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=known(obj("a", 1), obj("b", 2)))
    await queue.delete(obj("a", 3))
    await queue.replace([])
    await queue.replace([])
    await queue.replace([obj("a", 4)])
    assert await deltas_of(queue) == {
        "a": [("Deleted", 3), ("Replaced", 4)],
        "b": [("Deleted", ("tombstone", "b", 2))],
    }


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


def test_oldest_and_newest_of_deltas() -> None:
    first, last = Delta(DeltaType.ADDED, "a"), Delta(DeltaType.UPDATED, "b")
    assert (Deltas((first, last)).oldest(), Deltas((first, last)).newest()) == (first, last)
    assert (Deltas(()).oldest(), Deltas(()).newest()) == (None, None)


# A stateful model: after any sequence of changes and pops, the store equals the server.


class DeltaFIFOModel(QueueModel):
    """Processes a DeltaFIFO into a store."""

    def __init__(self) -> None:
        super().__init__()
        self.store: ThreadSafeStore[Any] = ThreadSafeStore()
        self.queue: DeltaFIFO[Any] = DeltaFIFO(known_objects=self.store)

    def queued(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "version": self.server[name]}

    @rule()
    def pop(self) -> None:
        if len(self.queue):
            self.run(self.queue.pop(self.process))

    @rule()
    def pop_everything(self) -> None:
        if len(self.queue):
            self.run(process_batch(self.queue, self.process))
        assert {key: item["version"] for key, item in self.store.snapshot()} == self.server

    def process(self, deltas: Deltas[Any], initial: bool) -> None:
        assert deltas
        key = self.queue.key_of(deltas)
        for before, after in itertools.pairwise(deltas):
            assert not before.type is after.type is DeltaType.DELETED
        for delta in deltas:
            if delta.type is DeltaType.DELETED:
                assert isinstance(delta.object, DeletedFinalStateUnknown) or delta.object["metadata"]["name"] == key
                self.store.delete(key)
                continue
            assert not isinstance(delta.object, DeletedFinalStateUnknown)
            old = self.store.item(key)
            if delta.type is not DeltaType.REPLACED and old is not None:
                assert delta.object["version"] >= old["version"], "went back in time"
            self.store.put(key, delta.object)

    @invariant()
    def no_key_is_queued_twice(self) -> None:
        assert len(self.queue) <= 4


TestDeltaFIFOModel = DeltaFIFOModel.TestCase
TestDeltaFIFOModel.settings = settings(max_examples=50, stateful_step_count=30)


# ListedObjects: an ordered mapping of many small dicts.


def names(count: int) -> list[str]:
    return [f"ns/o{number}" for number in range(count)]


def listed(*keys: str) -> ListedObjects[int]:
    objects: ListedObjects[int] = ListedObjects()
    for key in keys:
        objects.put(key, 1)
    return objects


STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "put", "pop", "delete", "popitem"]), st.sampled_from("abcde"), st.integers(1, 9)),
    max_size=20,
)


@pytest.mark.parametrize("kind", [DividedDict, ListedObjects])
@given(steps=STEPS)
def test_behaves_as_a_dict(kind: type[DividedDict[int]], steps: list[tuple[str, str, int]]) -> None:
    objects, plain = kind(), dict[str, int]()
    for step, key, value in steps:
        if step == "put" and isinstance(objects, ListedObjects):
            assert objects.put(key, value) is (key not in plain)
            plain[key] = value
        elif step in ("put", "set"):
            objects[key] = plain[key] = value
        elif step == "pop":
            assert objects.pop(key, None) == plain.pop(key, None)
        elif step == "delete" and key in plain:
            del objects[key], plain[key]
        elif step == "popitem" and plain:
            taken, what = objects.popitem()
            assert plain.pop(taken) == what
    assert objects == plain
    assert sorted(objects) == sorted(plain)
    assert (len(objects), [objects.get(key) for key in "abcde"]) == (len(plain), [plain.get(key) for key in "abcde"])


@pytest.mark.parametrize(("again", "order"), [([], ["a", "c"]), (["b"], ["a", "b", "c"]), (["a"], ["a", "c"])])
def test_object_that_is_listed_again_keeps_its_place(again: list[str], order: list[str]) -> None:
    objects = listed("a", "b", "c")
    del objects["b"]
    for key in again:
        objects.put(key, 2)
    assert [*objects] == order
    assert objects.detach()[1] == deque(order)


def test_apart_returns_objects_and_order_and_empties() -> None:
    objects = listed("b", "a")
    by_key, line = objects.detach()
    assert (dict(by_key), line) == ({"a": 1, "b": 1}, deque("ba"))
    assert (len(objects), [*objects]) == (0, [])


def test_dicts_of_a_long_list_stay_small() -> None:
    assert max(map(len, listed(*names(100_000))._parts)) < 2500
