"""Latches and waiters: each wait ends when its condition holds, and no other does."""

from __future__ import annotations

import asyncio
import math
import time
import traceback
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.waiters import Deadlines, KeyWaiters, ShownWrite, VersionWaiters, Write
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


def wait_in_vain(waiters: Any) -> Coroutine[Any, Any, Any]:
    """Return a wait whose condition does not hold."""
    match waiters:
        case Latch():
            return waiters.wait()
        case VersionWaiters():
            return waiters.wait("1")
        case _:
            wait: Coroutine[Any, Any, Any] = waiters.wait("a", bool)
            return wait


@pytest.mark.parametrize("kind", [Latch, VersionWaiters, KeyWaiters])
async def test_failure_raises_in_current_and_later_waits(kind: Any) -> None:
    waiters = kind()
    waiting = await begun(wait_in_vain(waiters))
    waiters.fail(Over())
    with pytest.raises(Over):
        await waiting
    depths = []
    for _ in range(5):
        with pytest.raises(Over) as raised:
            await wait_in_vain(waiters)
        depths.append(len(traceback.extract_tb(raised.value.__traceback__)))
    assert depths == depths[:1] * 5, "an error that is raised again grows"


# Versions.


async def test_reached_version_wakes_its_waiters_only() -> None:
    waiters = VersionWaiters()
    tasks = {version: await begun(waiters.wait(version)) for version in ("30", "9", "10", "100")}
    waiters.reached("12")
    await turns()
    assert sorted(version for version, task in tasks.items() if task.done()) == ["10", "9"]
    waiters.reached("100")
    await asyncio.gather(*tasks.values())


async def test_non_numeric_version_wakes_equal_waits_only() -> None:
    waiters = VersionWaiters()
    tasks = [await begun(waiters.wait(version)) for version in ("x", "y", "5")]
    waiters.reached("y")
    await turns()
    assert [task.done() for task in tasks] == [False, True, False]
    await cancelled(*tasks)


async def test_cancelled_version_wait_does_not_affect_others() -> None:
    waiters = VersionWaiters()
    tasks = [await begun(waiters.wait(str(version))) for version in (3, 1, 2, 5, 4)]
    await cancelled(tasks[1], tasks[2])
    waiters.reached("4")
    await turns()
    assert [task.done() for task in tasks] == [True, True, True, False, True]
    await cancelled(tasks[3])


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


# Many waits that end together.


def waits(kind: str, number: int, versions: VersionWaiters) -> Coroutine[Any, Any, Any]:
    match kind:
        case "versions":
            return versions.wait(str(100 + number))
        case "one version":
            return versions.wait("100")
        case "no number":
            return versions.wait("x")
        case "one object":
            return KeyWaiters[Any](versions).wait("ns/a", bool)
        case _:
            write = Write("ns/a", "u", str(100 + number))
            shown = ShownWrite(write, lambda _: None, lambda _: False, gone=False, outside=False)
            return KeyWaiters[Any](versions).wait_for_write(shown)


KINDS = ["versions", "one version", "no number", "one object", "writes"]


async def seconds_to_end(kind: str, count: int) -> float:
    """Return how much processor time it takes to end these waits."""
    versions = VersionWaiters()
    waiting = [asyncio.create_task(waits(kind, number, versions)) for number in range(count)]
    await turns()
    begin = time.thread_time()
    await cancelled(*waiting)
    assert versions._waiters == {}
    assert versions._numbers == []
    return time.thread_time() - begin


@pytest.mark.parametrize("kind", KINDS)
async def test_ending_waits_takes_linear_time(kind: str) -> None:
    few = min([await seconds_to_end(kind, 1000) for _ in range(3)])
    assert await seconds_to_end(kind, 8000) < 30 * few + 0.1


@pytest.mark.parametrize("kind", KINDS)
async def test_few_waits_time_out_in_one_turn(kind: str) -> None:
    deadlines, versions, over = Deadlines(), VersionWaiters(), list[str]()

    async def wait(number: int) -> None:
        with pytest.raises(TimeoutError) as error:
            async with deadlines.limit(0.01, lambda: f"wait {number}"):
                await waits(kind, number, versions)
        over.append(str(error.value))

    waiting = [asyncio.create_task(wait(number)) for number in range(1000)]
    most = 0
    await asyncio.sleep(0.01)
    while len(over) < len(waiting):
        before = len(over)
        await asyncio.sleep(0)
        most = max(most, len(over) - before)
    assert 0 < most <= 100
    assert sorted(over) == sorted(f"wait {number}" for number in range(1000))
    await asyncio.gather(*waiting)


async def test_wait_that_ends_in_time_is_not_ended_by_its_deadline() -> None:
    deadlines, versions = Deadlines(), VersionWaiters()

    async def wait() -> None:
        async with deadlines.limit(0.0, lambda: ""):
            await versions.wait("5")

    waiting = [asyncio.create_task(wait()) for _ in range(200)]
    await turns()
    versions.reached("5")
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(result) for result in results} == {type(None), TimeoutError}
    await turns()
    assert deadlines._due == {}


async def test_deadline_does_not_hide_other_timeouts() -> None:
    deadlines = Deadlines()
    with pytest.raises(TimeoutError, match="of the caller"):
        async with deadlines.limit(60.0, lambda: "of the wait"):
            raise TimeoutError("of the caller")
    async with deadlines.limit(math.inf, lambda: ""), deadlines.limit(None, lambda: ""):
        await turns()


async def test_version_waited_for_again_is_woken() -> None:
    versions = VersionWaiters()
    others = [await begun(versions.wait(str(number))) for number in (50, 60)]
    for _ in range(3):
        await cancelled(await begun(versions.wait("7")))
    again = await begun(versions.wait("7"))
    versions.reached("7")
    await again
    assert not any(other.done() for other in others)
    await cancelled(*others)
