"""Latches and waiters: each wait ends when its condition holds, and no other does."""

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
    """The reason why waits fail."""


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def begun(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Return a task that is waiting."""
    task = asyncio.create_task(coroutine)
    await turns()
    return task


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# Latches.


async def test_latch_wakes_all_waiters() -> None:
    latch = Latch()
    waiting = [await begun(latch.wait()) for _ in range(3)]
    assert not latch
    latch.set()
    await asyncio.gather(*waiting)
    await latch.wait()
    assert latch


async def test_failed_latch_raises_for_current_and_later_waiters() -> None:
    latch = Latch()
    waiting = await begun(latch.wait())
    latch.fail(Over())
    for wait in (waiting, latch.wait()):
        with pytest.raises(Over):
            await wait
    latch.set()
    assert not latch


def depth(error: BaseException) -> int:
    """Return the number of frames of the traceback."""
    return len(traceback.extract_tb(error.__traceback__))


@pytest.mark.parametrize("waiters", [Latch, VersionWaiters, KeyWaiters])
async def test_repeatedly_raised_error_does_not_grow(waiters: Any) -> None:
    failed = waiters()
    failed.fail(Over())
    wait = {Latch: failed.wait, VersionWaiters: lambda: failed.wait("1"), KeyWaiters: lambda: failed.wait("a", bool)}
    depths = []
    for _ in range(5):
        with pytest.raises(Over) as raised:
            await wait[waiters]()
        depths.append(depth(raised.value))
    assert depths == depths[:1] * 5


async def test_set_latch_cannot_fail() -> None:
    latch = Latch()
    latch.set()
    latch.fail(Over())
    await latch.wait()


async def test_cancelled_latch_wait_does_not_affect_others() -> None:
    latch = Latch()
    one, other = await begun(latch.wait()), await begun(latch.wait())
    await cancelled(one)
    latch.set()
    await other


# Versions.


async def test_reached_version_returns_at_once() -> None:
    waiters = VersionWaiters()
    waiters.reached("10")
    await waiters.wait("10")
    await waiters.wait("9")


async def test_later_version_is_waited_for() -> None:
    waiters = VersionWaiters()
    waiters.reached("10")
    task = await begun(waiters.wait("11"))
    assert not task.done()
    waiters.reached("12")
    await task


async def test_reached_version_wakes_its_waiters_only() -> None:
    waiters = VersionWaiters()
    tasks = {version: await begun(waiters.wait(version)) for version in ("30", "9", "10", "100")}
    waiters.reached("12")
    await turns()
    assert sorted(version for version, task in tasks.items() if task.done()) == ["10", "9"]
    waiters.reached("100")
    await asyncio.gather(*tasks.values())


async def test_non_numeric_version_wait_blocks_no_others() -> None:
    waiters = VersionWaiters()
    odd, normal = await begun(waiters.wait("opaque")), await begun(waiters.wait("10"))
    waiters.reached("12")
    await turns()
    assert normal.done()
    assert not odd.done()
    waiters.reached("opaque")
    await odd


async def test_non_numeric_version_wakes_equal_waits_only() -> None:
    waiters = VersionWaiters()
    tasks = [await begun(waiters.wait(version)) for version in ("x", "y", "5")]
    waiters.reached("y")
    await turns()
    assert [task.done() for task in tasks] == [False, True, False]
    await cancelled(*tasks)


async def test_unknown_version_wakes_no_waiters() -> None:
    waiters = VersionWaiters()
    task = await begun(waiters.wait("1"))
    waiters.reached("")
    await turns()
    assert not task.done()
    await cancelled(task)


async def test_cancelled_version_wait_does_not_affect_others() -> None:
    waiters = VersionWaiters()
    tasks = [await begun(waiters.wait(str(version))) for version in (3, 1, 2, 5, 4)]
    await cancelled(tasks[1], tasks[2])
    waiters.reached("4")
    await turns()
    assert [task.done() for task in tasks] == [True, True, True, False, True]
    await cancelled(tasks[3])


async def test_failure_raises_in_all_version_waits() -> None:
    waiters = VersionWaiters()
    waiting, odd = await begun(waiters.wait("5")), await begun(waiters.wait("opaque"))
    waiters.fail(Over())
    for wait in (waiting, odd, waiters.wait("6")):
        with pytest.raises(Over):
            await wait


async def test_reached_version_returns_after_failure() -> None:
    waiters = VersionWaiters()
    waiters.reached("5")
    waiters.fail(Over())
    await waiters.wait("5")


# Objects.


async def test_matching_change_wakes_its_waiters() -> None:
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


async def test_raising_predicate_affects_its_waiter_only() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    broken = await begun(waiters.wait("a", lambda value: 1 // 0))
    well = await begun(waiters.wait("a", lambda value: value))
    waiters.changed("a", 7)
    with pytest.raises(ZeroDivisionError):
        await broken
    assert await well == 7


async def test_predicate_with_stop_iteration_fails() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    broken = await begun(waiters.wait("a", lambda value: next(iter(()))))
    waiters.changed("a", 7)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await broken


async def test_cancelled_object_wait_leaves_nothing() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    task = await begun(waiters.wait("a", bool))
    assert "a" in waiters.awaited()
    await cancelled(task)
    assert "a" not in waiters.awaited()


async def test_first_matching_state_is_returned() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    task = await begun(waiters.wait("a", lambda value: value is not None))
    waiters.changed("a", 1)
    waiters.changed("a", 2)
    assert await task == 1


async def test_failure_raises_in_all_object_waits() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    waiting = await begun(waiters.wait("a", bool))
    waiters.fail(Over())
    for wait in (waiting, waiters.wait("b", bool)):
        with pytest.raises(Over):
            await wait
