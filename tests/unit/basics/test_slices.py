"""Time slices: slow steps release the event loop at once, and quick steps rarely read the clock."""

from __future__ import annotations

import pytest

from aioinformer import concurrency as slices
from aioinformer.concurrency import Slicer


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
    monkeypatch.setattr(slices, "perf_counter", clock)
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
    assert blocked(Slicer(0.002), clock, step) <= 0.004 + step


@pytest.mark.parametrize("step", [0.005, 0.1])
def test_long_step_is_a_slice_of_its_own(clock: Clock, step: float) -> None:
    assert blocked(Slicer(0.002), clock, step) == step


def test_quick_steps_rarely_read_the_clock(clock: Clock) -> None:
    slicer = Slicer(0.002)
    for _ in range(1000):
        slicer.count_step()
    assert clock.reads < 140
