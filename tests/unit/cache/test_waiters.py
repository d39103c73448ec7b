"""Latches and waiters: failures, many waits that end together, and deadlines."""

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


async def test_predicate_with_stop_iteration_fails() -> None:
    waiters: KeyWaiters[int] = KeyWaiters()
    broken = await begun(waiters.wait("a", lambda value: next(iter(()))))
    waiters.changed("a", 7)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await broken


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
