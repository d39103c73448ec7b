"""The lag of the event loop and the peak memory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from aioinformer.cli.watch.measurements import LoopLag, max_rss_kib


def test_percentiles_of_the_recorded_lag() -> None:
    lag = LoopLag()
    for milliseconds in range(1, 101):
        lag.note(milliseconds / 1000)
    assert lag.lateness() == {"p50": 50.0, "p99": 99.0, "max": 100.0}


def test_no_lag_before_the_first_tick() -> None:
    assert LoopLag().lateness() is None


async def test_blocked_event_loop_is_measured() -> None:
    lag = LoopLag()
    lag.start()
    await asyncio.sleep(0.01)
    time.sleep(0.05)  # noqa: ASYNC251 (blocks the event loop on purpose)
    await asyncio.sleep(0.01)
    lag.stop()
    lateness = lag.lateness()
    assert lateness is not None
    assert lateness["max"] >= 45


def test_peak_memory_is_that_of_this_process() -> None:
    peak = max_rss_kib()
    assert peak is not None
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    assert peak >= resident // 2
