"""Handlers with a backlog yield the event loop together, however many there are."""

from __future__ import annotations

import asyncio
import gc
from typing import Any
from weakref import ref

import pytest

from aioinformer import concurrency as slices
from aioinformer.handlers.listener import ProcessorListener
from aioinformer.handlers.notifications import UpdateNotification
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.handlers.resync import ResyncSchedule

STEP = 0.000_005


class Payload:
    """An object of a notification."""


class Clock:
    """A clock that advances in handlers only."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_in_handler(self, notification: Any) -> None:
        self.now += STEP


@pytest.mark.parametrize("count", [1, 10, 100, 300])
async def test_backlogs_block_the_loop_for_10_ms_at_most(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(slices, "perf_counter", clock)
    processor: SharedProcessor[Any] = SharedProcessor()
    for number in range(count):
        processor.add_listener(ProcessorListener(f"handler {number}", clock.pass_in_handler, ResyncSchedule(0.0)))
    longest = last = 0.0
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        for _ in range(500):
            processor.distribute(UpdateNotification("old", "new"))
        processor.flush()
        while any(listener.pending for listener in processor.listeners):
            await asyncio.sleep(0)
            longest, last = max(longest, clock.now - last), clock.now
        await processor.stop(0)
    assert clock.now == pytest.approx(500 * count * STEP)
    assert longest <= 0.01


async def test_pending_batches_are_tracked_once_by_the_collector() -> None:
    processor: SharedProcessor[Any] = SharedProcessor()
    for number in range(100):
        processor.add_listener(ProcessorListener(f"handler {number}", lambda _: None, ResyncSchedule(0.0)))
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        processor.distribute(UpdateNotification("old", "new"))
        processor.flush()
    assert len(gc.get_objects()) - before < 10 * 50


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_idle_handler_keeps_no_batch_alive() -> None:
    processor: SharedProcessor[Any] = SharedProcessor()
    processor.add_listener(ProcessorListener("handler", lambda _: None, ResyncSchedule(0.0)))
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        payloads = [Payload() for _ in range(10)]
        left = [ref(each) for each in payloads]
        for each in payloads:
            processor.distribute(UpdateNotification(each, "new"))
        del each, payloads
        processor.flush()
        await turns()
        alive = [each() is not None for each in left[:-1]]
        await processor.stop(0)
    assert not any(alive)


async def test_removal_drops_pending_notifications() -> None:
    processor: SharedProcessor[Any] = SharedProcessor()
    go_on = asyncio.Event()
    listener: ProcessorListener[Any] = ProcessorListener("handler", lambda _: go_on.wait(), ResyncSchedule(0.0))
    processor.add_listener(listener)
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        processor.distribute(UpdateNotification("old", "new"))
        processor.flush()
        await turns()
        payload = Payload()
        waits = ref(payload)
        processor.distribute(UpdateNotification(payload, "new"))
        del payload
        processor.flush()
        await turns()
        processor.remove_listener(listener)
        go_on.set()
        await listener.finished.wait()
        alive = waits() is not None
    assert not alive
