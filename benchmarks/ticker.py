"""How long the event loop is held: the lateness of a 1 ms ticker, by the clock and in the thread's own CPU time.

On a machine that is shared, a ticker is also late because somebody else had the core. What the program itself held the
loop for is the CPU time that its thread used up while the tick was due.
"""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time


class Ticker:
    """`async with Ticker() as ticker: …`; then there is a number in milliseconds for each tick.

    Attributes:
        lateness: by the clock.
        held: in CPU time of the thread.
    """

    def __init__(self) -> None:
        self.lateness: list[float] = []
        self.held: list[float] = []

    def clear(self) -> None:
        """Begins anew."""
        self.lateness.clear()
        self.held.clear()

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
            self.held.append(min(late, thread_time() - cpu) * 1000)

    def summary(self) -> dict[str, float]:
        """p50, p99 and max of both, in milliseconds."""
        return {
            **{name: quantile(self.lateness, share) for name, share in _SHARES.items()},
            **{f"held_{name}": quantile(self.held, share) for name, share in _SHARES.items()},
        }


_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def quantile(values: list[float], share: float) -> float:
    """The value below which a share of all is."""
    ordered = sorted(values) or [0.0]
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)
