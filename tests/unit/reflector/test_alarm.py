"""The timeout for many waits in a row."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.reflector.alarm import Alarm


def now() -> float:
    return asyncio.get_running_loop().time()


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_wait_that_exceeds_its_limit_raises() -> None:
    alarm = Alarm()
    with pytest.raises(TimeoutError), alarm.at(now() + 0.01):
        await forever()
    assert not alarm.interrupted


async def test_limit_in_the_past_raises() -> None:
    with pytest.raises(TimeoutError), Alarm().at(now() - 1):
        await forever()


async def test_later_limit_does_not_end_a_wait_at_the_earlier_one() -> None:
    alarm = Alarm()
    with alarm.at(now() + 0.01):
        pass
    with alarm.at(now() + 60):
        await asyncio.sleep(0.05)
    alarm.close()


async def test_earlier_limit_is_kept() -> None:
    alarm = Alarm()
    with alarm.at(now() + 60):
        pass
    with pytest.raises(TimeoutError), alarm.at(now() + 0.01):
        await forever()
    alarm.close()


async def test_wait_without_a_limit_is_not_ended_by_an_earlier_one() -> None:
    alarm = Alarm()
    with alarm.at(now() + 0.01):
        pass
    with alarm.at(None):
        await asyncio.sleep(0.05)


async def test_interrupted_wait_raises_and_says_so() -> None:
    alarm = Alarm()
    asyncio.get_running_loop().call_soon(alarm.interrupt)
    with pytest.raises(TimeoutError), alarm.at(None):
        await forever()
    assert alarm.interrupted
    alarm.interrupt()  # between two waits
    with alarm.at(None):
        await asyncio.sleep(0)
    assert not alarm.interrupted


async def test_cancellation_takes_precedence() -> None:
    alarm = Alarm()

    async def wait() -> None:
        with alarm.at(now() + 60):
            await forever()

    task = asyncio.create_task(wait(), name="waits")
    await asyncio.sleep(0)
    task.cancel()
    alarm.interrupt()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    alarm.close()


async def test_error_of_the_wait_is_raised() -> None:
    alarm = Alarm()
    with pytest.raises(KeyError), alarm.at(now() + 60):
        raise KeyError
    alarm.close()


async def test_another_task_uses_a_closed_alarm() -> None:
    alarm = Alarm()

    async def wait(seconds: float) -> None:
        with alarm.at(now() + seconds):
            await forever()

    first = asyncio.create_task(wait(60), name="first")
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    alarm.close()
    second = asyncio.create_task(wait(0.01), name="second")
    done, _ = await asyncio.wait({second}, timeout=10)
    assert done
    with pytest.raises(TimeoutError):
        second.result()
    alarm.close()


async def test_many_waits_set_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    call_at = loop.call_at

    def counted(when: float, *arguments: object) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *arguments)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(loop, "call_at", counted)
    alarm = Alarm()
    for _ in range(100):
        with alarm.at(now() + 60):
            await asyncio.sleep(0)
    assert len(timers) == 1
    alarm.close()
