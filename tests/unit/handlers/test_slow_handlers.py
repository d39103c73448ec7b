"""A slow handler with many pending notifications is logged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.handlers.listener import Batch, ProcessorListener
from aioinformer.handlers.notifications import AddNotification
from aioinformer.handlers.resync import ResyncSchedule


async def logged(caplog: pytest.LogCaptureFixture, batches: list[int], seconds: float) -> list[str]:
    """Return the log after a handler has taken `seconds` for each notification of these batches."""
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
async def test_slow_call_is_logged_with_name_and_pending(caplog: pytest.LogCaptureFixture) -> None:
    lines = await logged(caplog, [30, 1000, 200], 0.2)
    assert lines[0] == "pods: handler 1 took 0.2 s for a call, and 1230 notifications wait"


@pytest.mark.conformance("SI-33")
@pytest.mark.parametrize(("batches", "seconds"), [([1024], 0.2), ([30, 1000], 0.09)], ids=["few wait", "quick"])
async def test_quick_call_or_short_queue_is_not_logged(
    batches: list[int], seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert await logged(caplog, batches, seconds) == []


async def test_slow_calls_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    assert len(await logged(caplog, [3024], 0.125)) == 5  # until 1024 are left, after 250 s
