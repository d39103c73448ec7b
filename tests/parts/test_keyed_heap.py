"""A heap of objects with keys."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import FIFOClosed
from aioinformer.keyed_heap import KeyedHeap


class Job(NamedTuple):
    name: str
    rank: int


def heap(*jobs: Job) -> KeyedHeap[Job]:
    made: KeyedHeap[Job] = KeyedHeap(lambda first, second: first.rank < second.rank, lambda job: job.name)
    made.bulk_add(jobs)
    return made


async def drained(jobs: KeyedHeap[Job]) -> list[Job]:
    return [await jobs.pop() for _ in range(len(jobs))]


@pytest.mark.conformance("HEAP-01")
async def test_the_least_is_popped_first() -> None:
    ranks = list(range(1000))
    random.Random(1).shuffle(ranks)
    jobs = heap(*(Job(f"j{rank}", rank) for rank in ranks))
    assert [job.rank for job in await drained(jobs)] == list(range(1000))


@pytest.mark.conformance("HEAP-01")
async def test_among_equals_the_first_that_came_is_popped_first() -> None:
    jobs = heap(Job("c", 1), Job("a", 1), Job("b", 1))
    assert [job.name for job in await drained(jobs)] == ["c", "a", "b"]


@pytest.mark.conformance("HEAP-01")
@pytest.mark.parametrize("method", ["add", "update"])
async def test_an_object_that_is_put_in_again_finds_its_new_place(method: str) -> None:
    jobs = heap(Job("a", 1), Job("b", 2), Job("c", 3))
    getattr(jobs, method)(Job("c", 0))
    getattr(jobs, method)(Job("a", 9))
    assert await drained(jobs) == [Job("c", 0), Job("b", 2), Job("a", 9)]


@pytest.mark.conformance("HEAP-01")
async def test_what_is_there_is_not_replaced_by_what_is_added_if_not_present() -> None:
    jobs = heap(Job("a", 1))
    jobs.add_if_not_present(Job("a", 5))
    jobs.add_if_not_present(Job("b", 0))
    assert await drained(jobs) == [Job("b", 0), Job("a", 1)]


@pytest.mark.conformance("HEAP-01")
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
async def test_an_object_is_deleted_wherever_it_is(name: str) -> None:
    jobs = heap(Job("a", 1), Job("b", 2), Job("c", 2), Job("d", 9))
    jobs.delete(Job(name, 0))
    assert [job.name for job in await drained(jobs)] == [each for each in "abcd" if each != name]


@pytest.mark.conformance("HEAP-01")
def test_deleting_what_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match="x is not in the heap"):
        heap(Job("a", 1)).delete(Job("x", 1))


@pytest.mark.conformance("HEAP-01")
def test_objects_are_found_by_themselves_and_by_key() -> None:
    jobs = heap(Job("a", 1), Job("b", 2))
    assert jobs.get(Job("a", 7)) == jobs.get_by_key("a") == Job("a", 1)
    assert jobs.get(Job("x", 1)) is None
    assert sorted(jobs.list()) == [Job("a", 1), Job("b", 2)]
    assert sorted(jobs.list_keys()) == ["a", "b"]


@pytest.mark.conformance("HEAP-01")
async def test_popping_waits_for_something_to_pop() -> None:
    jobs = heap()
    waiting = asyncio.create_task(jobs.pop())
    await asyncio.sleep(1)
    assert not waiting.done()
    jobs.add(Job("a", 1))
    assert await waiting == Job("a", 1)


async def test_who_is_cancelled_in_its_turn_leaves_it_to_the_next() -> None:
    jobs = heap()
    first, second, third = (asyncio.create_task(jobs.pop()) for _ in range(3))
    await asyncio.sleep(1)
    second.cancel()
    await asyncio.sleep(1)
    jobs.add(Job("a", 1))
    first.cancel()
    assert await third == Job("a", 1)
    assert first.cancelled()


@pytest.mark.conformance("HEAP-01")
async def test_closing_wakes_everybody_who_waits() -> None:
    jobs = heap()
    waiting = [asyncio.create_task(jobs.pop()) for _ in range(3)]
    await asyncio.sleep(1)
    jobs.close()
    assert [type(end) for end in await asyncio.gather(*waiting, return_exceptions=True)] == [FIFOClosed] * 3


@pytest.mark.conformance("HEAP-01")
async def test_a_closed_heap_takes_nothing_and_can_be_emptied() -> None:
    jobs = heap(Job("a", 1))
    jobs.close()
    assert jobs.closed
    for put in (jobs.add, jobs.update):
        with pytest.raises(FIFOClosed, match="nothing can be added"):
            put(Job("b", 1))
    assert await jobs.pop() == Job("a", 1)
    with pytest.raises(FIFOClosed):
        await jobs.pop()


@given(st.lists(st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcdefgh"), st.integers(0, 5))))
def test_whatever_happened_to_it_a_heap_gives_what_it_holds_in_order(changes: list[tuple[str, str, int]]) -> None:
    jobs = heap()
    truth: dict[str, int] = {}
    for change, name, rank in changes:
        if change == "put":
            jobs.add(Job(name, rank))
            truth[name] = rank
        elif name in truth:
            jobs.delete(Job(name, 0))
            del truth[name]
    popped = asyncio.run(drained(jobs))
    assert dict(popped) == truth
    assert [job.rank for job in popped] == sorted(truth.values())


def test_what_was_replaced_does_not_pile_up() -> None:
    jobs = heap()
    for rank in range(10_000):
        jobs.add(Job("a", rank))
    assert len(jobs._heap) < 50
