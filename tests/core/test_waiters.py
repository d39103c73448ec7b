"""Latches and waiters: whoever waits is woken when it is time, nobody else is, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.waiters import KeyWaiters, VersionWaiters
from aioinformer.concurrency import Latch

if TYPE_CHECKING:
    from collections.abc import Coroutine


class Over(Exception):
    """Why nobody needs to wait any more."""


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def begun(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task that waits by now."""
    task = asyncio.create_task(coroutine)
    await turns()
    return task


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# Latches.


async def test_a_latch_wakes_all_who_wait_and_holds_up_nobody_after_that() -> None:
    latch = Latch()
    waiting = [await begun(latch.wait()) for _ in range(3)]
    assert not latch
    latch.set()
    await asyncio.gather(*waiting)
    await latch.wait()
    assert latch


async def test_a_latch_that_fails_raises_for_all_who_wait_and_for_those_who_come_later() -> None:
    latch = Latch()
    waiting = await begun(latch.wait())
    latch.fail(Over())
    for wait in (waiting, latch.wait()):
        with pytest.raises(Over):
            await wait
    latch.set()
    assert not latch


def depth(error: BaseException) -> int:
    """How many frames the traceback has."""
    return len(traceback.extract_tb(error.__traceback__))


@pytest.mark.parametrize("waiters", [Latch, VersionWaiters, KeyWaiters])
async def test_what_is_raised_again_and_again_does_not_grow(waiters: Any) -> None:
    failed = waiters()
    failed.fail(Over())
    wait = {Latch: failed.wait, VersionWaiters: lambda: failed.wait("1"), KeyWaiters: lambda: failed.wait("a", bool)}
    depths = []
    for _ in range(5):
        with pytest.raises(Over) as raised:
            await wait[waiters]()
        depths.append(depth(raised.value))
    assert depths == depths[:1] * 5


async def test_a_latch_that_has_come_true_does_not_fail() -> None:
    latch = Latch()
    latch.set()
    latch.fail(Over())
    await latch.wait()


async def test_a_wait_for_a_latch_that_is_cancelled_does_not_disturb_the_others() -> None:
    latch = Latch()
    one, other = await begun(latch.wait()), await begun(latch.wait())
    await cancelled(one)
    latch.set()
    await other


# Versions.


async def test_a_version_that_was_reached_is_not_waited_for() -> None:
    waiters = VersionWaiters()
    waiters.reached("10")
    await waiters.wait("10")
    await waiters.wait("9")


async def test_a_later_version_than_the_last_one_is_waited_for() -> None:
    waiters = VersionWaiters()
    waiters.reached("10")
    task = await begun(waiters.wait("11"))
    assert not task.done()
    waiters.reached("12")
    await task


async def test_only_those_whose_version_was_reached_are_woken() -> None:
    waiters = VersionWaiters()
    tasks = {version: await begun(waiters.wait(version)) for version in ("30", "9", "10", "100")}
    waiters.reached("12")
    await turns()
    assert sorted(version for version, task in tasks.items() if task.done()) == ["10", "9"]
    waiters.reached("100")
    await asyncio.gather(*tasks.values())


async def test_whoever_waits_for_a_version_that_is_no_number_holds_up_nobody() -> None:
    waiters = VersionWaiters()
    odd, normal = await begun(waiters.wait("opaque")), await begun(waiters.wait("10"))
    waiters.reached("12")
    await turns()
    assert normal.done()
    assert not odd.done()
    waiters.reached("opaque")
    await odd


async def test_versions_that_are_no_numbers_wake_those_who_wait_for_just_them() -> None:
    waiters = VersionWaiters()
    tasks = [await begun(waiters.wait(version)) for version in ("x", "y", "5")]
    waiters.reached("y")
    await turns()
    assert [task.done() for task in tasks] == [False, True, False]
    await cancelled(*tasks)


async def test_a_version_that_is_not_known_wakes_nobody() -> None:
    waiters = VersionWaiters()
    task = await begun(waiters.wait("1"))
    waiters.reached("")
    await turns()
    assert not task.done()
    await cancelled(task)


async def test_a_wait_for_a_version_that_is_cancelled_does_not_disturb_the_others() -> None:
    waiters = VersionWaiters()
    tasks = [await begun(waiters.wait(str(version))) for version in (3, 1, 2, 5, 4)]
    await cancelled(tasks[1], tasks[2])
    waiters.reached("4")
    await turns()
    assert [task.done() for task in tasks] == [True, True, True, False, True]
    await cancelled(tasks[3])


async def test_when_no_version_will_be_reached_any_more_everybody_is_told() -> None:
    waiters = VersionWaiters()
    waiting, odd = await begun(waiters.wait("5")), await begun(waiters.wait("opaque"))
    waiters.fail(Over())
    for wait in (waiting, odd, waiters.wait("6")):
        with pytest.raises(Over):
            await wait


async def test_a_version_that_was_reached_is_told_even_after_the_end() -> None:
    waiters = VersionWaiters()
    waiters.reached("5")
    waiters.fail(Over())
    await waiters.wait("5")


# Objects.


async def test_a_change_wakes_those_whose_predicate_is_true_of_it() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    small = await begun(waiters.wait("a", lambda value: value is not None and value < 5))
    large = await begun(waiters.wait("a", lambda value: value is not None and value > 5))
    gone = await begun(waiters.wait("a", lambda value: value is None))
    waiters.changed("b", 9)
    waiters.changed("a", 7)
    assert await large == 7
    waiters.changed("a", None)
    assert await gone is None
    waiters.changed("a", 3)
    assert await small == 3
    assert "a" not in waiters.awaited()


async def test_a_predicate_that_raises_raises_for_its_owner_alone() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    broken = await begun(waiters.wait("a", lambda value: 1 // 0))
    well = await begun(waiters.wait("a", lambda value: value))
    waiters.changed("a", 7)
    with pytest.raises(ZeroDivisionError):
        await broken
    assert await well == 7


async def test_a_predicate_that_asks_for_the_next_of_nothing_fails_and_does_not_wait_for_ever() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    broken = await begun(waiters.wait("a", lambda value: next(iter(()))))
    waiters.changed("a", 7)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await broken


async def test_a_wait_for_an_object_that_is_cancelled_leaves_nothing_behind() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    task = await begun(waiters.wait("a", bool))
    assert "a" in waiters.awaited()
    await cancelled(task)
    assert "a" not in waiters.awaited()


async def test_the_first_state_that_fits_is_the_answer_even_if_another_follows() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    task = await begun(waiters.wait("a", lambda value: value is not None))
    waiters.changed("a", 1)
    waiters.changed("a", 2)
    assert await task == 1


async def test_when_nothing_will_change_any_more_everybody_is_told() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    waiting = await begun(waiters.wait("a", bool))
    waiters.fail(Over())
    for wait in (waiting, waiters.wait("b", bool)):
        with pytest.raises(Over):
            await wait
