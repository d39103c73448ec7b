"""Measurements for `-o summary`: the lag of the event loop, and the peak memory of the process."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

_PERIOD = 0.001
_STEP = 10e-6


class Lateness(TypedDict):
    """By how many milliseconds a ticker was late."""

    p50: float
    p99: float
    max: float


class LoopLag:
    """Measures how late the event loop calls a ticker of one millisecond.

    Percentiles are exact to 10 microseconds. Memory depends on the number of different values, not on the run time.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._longest = 0.0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the ticker."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _PERIOD
        self._timer = loop.call_at(self._due, self._tick, loop)

    def stop(self) -> None:
        """Stop the ticker and keep the measurements. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note(self, seconds: float) -> None:
        """Record one measurement."""
        self._counts[int(seconds / _STEP)] += 1
        self._longest = max(self._longest, seconds)

    def lateness(self) -> Lateness | None:
        """Return the figures so far; None before the first tick."""
        if not self._counts:
            return None
        return {"p50": self._percentile(50), "p99": self._percentile(99), "max": round(self._longest * 1000, 3)}

    def _percentile(self, percent: int) -> float:
        wanted = self._counts.total() * percent / 100
        seen = 0
        for step in sorted(self._counts):
            seen += self._counts[step]
            if seen >= wanted:
                break
        return round(step * _STEP * 1000, 3)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self.note(max(now - self._due, 0.0))
        self._due = now + _PERIOD
        self._timer = loop.call_at(self._due, self._tick, loop)


def max_rss_kib() -> int | None:
    """Return the peak resident memory of the process in KiB; None if the system does not provide it."""
    # getrusage() also counts the memory of the parent at the time of the fork.
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    try:
        import resource
        import sys
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak
