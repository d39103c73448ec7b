"""Time slices, and cleanup in a cancelled scope of anyio, which cancels every further wait."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import anyio
import pytest

from aioinformer.concurrency import Slicer, shielded
from tests.support.limits import measure_slices, set_slices


class Clock:
    """Counts its reads; time passes on demand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    measure_slices(monkeypatch, clock)
    set_slices(monkeypatch, 0.002)
    return clock


def blocked(slicer: Slicer, clock: Clock, step: float) -> float:
    """Return for how long steps of this length block the event loop."""
    slicer.start()
    begin = clock.now
    while True:
        clock.now += step
        if slicer.count_step():
            return clock.now - begin


@pytest.mark.parametrize("step", [0.0001, 0.001, 0.0015])
def test_steps_block_the_loop_for_two_slices_at_most(clock: Clock, step: float) -> None:
    assert blocked(Slicer(), clock, step) <= 0.004 + step


@pytest.mark.parametrize("step", [0.005, 0.1])
def test_long_step_is_a_slice_of_its_own(clock: Clock, step: float) -> None:
    assert blocked(Slicer(), clock, step) == step


def test_quick_steps_rarely_read_the_clock(clock: Clock) -> None:
    slicer = Slicer()
    for _ in range(1000):
        slicer.count_step()
    assert clock.reads < 140


async def test_cleanup_completes_in_a_cancelled_scope() -> None:
    cleaned_up = False
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await asyncio.sleep(60)
        finally:
            with shielded():
                await asyncio.sleep(0.001)
                await asyncio.sleep(0.001)
                cleaned_up = True
    assert cleaned_up


async def test_the_task_itself_can_still_be_cancelled() -> None:
    async def clean_up() -> None:
        with shielded():
            await asyncio.sleep(60)

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


def test_nothing_is_imported_without_a_scope() -> None:
    program = "import sys; from aioinformer.concurrency import shielded; shielded(); sys.exit('anyio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
