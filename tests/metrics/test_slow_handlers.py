"""Handlers that are slow while much waits for them are written of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.handlers.listener import ProcessorListener
from aioinformer.handlers.notifications import AddNotification, Batch
from aioinformer.handlers.resync import ResyncSchedule


async def written(caplog: pytest.LogCaptureFixture, batches: list[int], seconds: float) -> list[str]:
    """What is in the log after a handler has taken so many seconds for each notification of these batches."""
    caplog.set_level("INFO", "aioinformer.handlers")
    listener: ProcessorListener[Any] = ProcessorListener(
        "pods: handler 1", lambda notification: asyncio.sleep(seconds), ResyncSchedule(0.0)
    )
    for size in batches:
        listener.add(Batch.of([AddNotification(f"pod-{number}", False) for number in range(size)]))
    async with asyncio.TaskGroup() as tasks:
        listener.start(tasks)
        await asyncio.sleep(sum(batches) * seconds + 1)
        listener.stop()
    assert listener.pending == 0
    return caplog.messages


@pytest.mark.conformance("SI-33")
async def test_a_slow_call_is_written_of_with_the_name_and_with_what_waits(caplog: pytest.LogCaptureFixture) -> None:
    lines = await written(caplog, [30, 1000, 200], 0.2)
    assert lines[0] == "pods: handler 1 took 0.2 s for a call, and 1230 notifications wait for it"


@pytest.mark.conformance("SI-33")
@pytest.mark.parametrize(("batches", "seconds"), [([1024], 0.2), ([30, 1000], 0.09)], ids=["few wait", "quick"])
async def test_a_call_that_is_quick_or_has_little_behind_it_is_not_written_of(
    batches: list[int], seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert await written(caplog, batches, seconds) == []


async def test_slow_calls_in_a_row_are_written_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    assert len(await written(caplog, [3024], 0.125)) == 5  # until 1024 are left, after 250 s
