"""The figures of a summary."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from aioinformer.cli.watch.measurements import LoopLag, max_rss_kib


def test_percentiles_are_those_of_the_latenesses_noted() -> None:
    lag = LoopLag()
    for milliseconds in range(1, 101):
        lag.note(milliseconds / 1000)
    assert lag.lateness() == {"p50": 50.0, "p99": 99.0, "max": 100.0}


def test_without_a_tick_there_is_no_lateness() -> None:
    assert LoopLag().lateness() is None


async def test_a_held_loop_shows() -> None:
    lag = LoopLag()
    lag.start()
    await asyncio.sleep(0.01)
    time.sleep(0.05)  # noqa: ASYNC251 (to hold the loop is the point)
    await asyncio.sleep(0.01)
    lag.stop()
    lateness = lag.lateness()
    assert lateness is not None
    assert lateness["max"] >= 45


def test_the_peak_of_memory_is_this_process_own() -> None:
    peak = max_rss_kib()
    assert peak is not None
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    assert peak >= resident // 2
