"""Backoff for each item, and waiting for one's turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from aioinformer.item_backoff import ItemBackoff
from aioinformer.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.conformance("FC-01")
def test_the_delay_of_an_item_doubles_with_each_failure_up_to_the_cap() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(1.0, 10.0)
    assert [backoff.next("a", float(at)) for at in range(6)] == [1, 2, 4, 8, 10, 10]
    assert (backoff.get("a"), backoff.get("b")) == (10, 0)


@pytest.mark.conformance("FC-01")
@pytest.mark.parametrize(("pause", "delay"), [(20.0, 2.0), (20.5, 1.0)])
def test_an_item_that_has_not_failed_for_twice_the_cap_has_never_failed(pause: float, delay: float) -> None:
    backoff: ItemBackoff[str] = ItemBackoff(1.0, 10.0)
    backoff.next("a", 100.0)
    assert backoff.next("a", 100.0 + pause) == delay


@pytest.mark.conformance("FC-01")
def test_when_failures_are_forgotten_can_be_said() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(1.0, 10.0, forgotten_after=3.0)
    backoff.next("a", 0.0)
    assert backoff.next("a", 4.0) == 1


@pytest.mark.conformance("FC-01")
def test_jitter_adds_a_share_of_the_delay_before() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(1.0, 100.0, jitter=0.5, random=lambda: 0.5)
    assert [backoff.next("a", 0.0), backoff.next("a", 0.0)] == [1.25, 2.8125]


@pytest.mark.conformance("FC-01")
def test_an_item_that_was_reset_has_never_failed() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(1.0, 10.0)
    backoff.next("a", 0.0)
    backoff.next("b", 0.0)
    backoff.reset("a")
    assert [backoff.next("a", 0.0), backoff.next("b", 0.0)] == [1, 2]


@pytest.mark.conformance("FC-01")
def test_an_item_is_in_backoff_for_its_delay_after_the_event() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(4.0, 10.0)
    backoff.next("a", 100.0)
    assert backoff.is_in_backoff_since("a", 101.0, 104.9)
    assert not backoff.is_in_backoff_since("a", 101.0, 105.0)
    assert not backoff.is_in_backoff_since("a", 121.0, 121.0)
    assert not backoff.is_in_backoff_since("b", 101.0, 101.0)


@pytest.mark.conformance("FC-01")
def test_an_item_is_in_backoff_for_its_delay_after_its_failure() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(4.0, 10.0)
    backoff.next("a", 100.0)
    assert backoff.is_in_backoff_since_update("a", 103.9)
    assert not backoff.is_in_backoff_since_update("a", 104.0)
    assert not backoff.is_in_backoff_since_update("b", 100.0)


@pytest.mark.conformance("FC-01")
def test_what_is_forgotten_leaves_memory_when_it_is_collected() -> None:
    backoff: ItemBackoff[str] = ItemBackoff(1.0, 10.0)
    backoff.next("a", 0.0)
    backoff.next("b", 10.0)
    backoff.collect(20.5)
    assert len(backoff) == 1
    assert backoff.get("b") == 1


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ItemBackoff(0.0, 1.0), "initial"),
        (lambda: ItemBackoff(2.0, 1.0), "cap"),
        (lambda: ItemBackoff(1.0, 1.0, jitter=-1.0), "jitter"),
        (lambda: ItemBackoff(1.0, 1.0, jitter=1.0), "random"),
        (lambda: Throttle(0.0, 1), "qps"),
        (lambda: Throttle(1.0, 0), "burst"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(make: Callable[[], object], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make()


@pytest.mark.conformance("FC-02")
async def test_who_waits_gets_a_turn_so_many_times_a_second() -> None:
    throttle = Throttle(qps=2.0, burst=2)
    loop = asyncio.get_running_loop()
    start = loop.time()
    turns = []
    for _ in range(5):
        await throttle.wait()
        turns.append(round(loop.time() - start, 3))
    assert turns == [0, 0, 0.5, 1.0, 1.5]
    assert throttle.qps == 2


@pytest.mark.conformance("FC-02")
async def test_who_does_not_want_to_wait_is_told_whether_it_may() -> None:
    throttle = Throttle(qps=1.0, burst=1)
    assert [throttle.try_accept(), throttle.try_accept()] == [True, False]
    await asyncio.sleep(1)
    assert throttle.try_accept()


@pytest.mark.conformance("FC-02", "WEAK-11")
async def test_who_stops_waiting_has_used_no_turn() -> None:
    throttle = Throttle(qps=1.0, burst=1)
    await throttle.wait()
    for _ in range(5):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(throttle.wait(), 0.1)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await throttle.wait()
    assert loop.time() - start == pytest.approx(0.5)


@pytest.mark.conformance("FC-02")
async def test_those_behind_somebody_who_stops_waiting_move_up() -> None:
    throttle = Throttle(qps=1.0, burst=1)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await throttle.wait()
    turns: list[tuple[str, float]] = []

    async def wait(name: str) -> None:
        await throttle.wait()
        turns.append((name, round(loop.time() - start, 3)))

    waiting = [asyncio.create_task(wait(name)) for name in "abc"]
    await asyncio.sleep(0.5)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert turns == [("b", 1), ("c", 2)]
