"""A ticker of 1 ms that measures how long the event loop is blocked, by the clock and by the CPU time of the thread.

On a shared machine, a ticker is also late because another process had the core. The CPU time that the thread consumed
while a tick was due shows how long the program itself blocked the event loop.
"""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time


class Ticker:
    """Measures each tick, in milliseconds, inside `async with Ticker() as ticker:`.

    Attributes:
        lateness: by the clock.
        blocked: by the CPU time of the thread.
    """

    def __init__(self) -> None:
        self.lateness: list[float] = []
        self.blocked: list[float] = []

    def clear(self) -> None:
        """Remove all measurements."""
        self.lateness.clear()
        self.blocked.clear()

    async def __aenter__(self) -> Ticker:
        self._task = asyncio.create_task(self._tick(), name="ticker")
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _tick(self) -> None:
        while True:
            due, cpu = perf_counter() + 0.001, thread_time()
            await asyncio.sleep(0.001)
            late = max(0.0, perf_counter() - due)
            self.lateness.append(late * 1000)
            self.blocked.append(min(late, thread_time() - cpu) * 1000)

    def summary(self) -> dict[str, float]:
        """Return p50, p99 and maximum of both, in milliseconds."""
        return {
            **{name: quantile(self.lateness, share) for name, share in _SHARES.items()},
            **{f"blocked_{name}": quantile(self.blocked, share) for name, share in _SHARES.items()},
        }


_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def quantile(values: list[float], share: float) -> float:
    """Return the value below which the given share of all values lies."""
    ordered = sorted(values) or [0.0]
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)
