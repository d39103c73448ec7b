"""How long the event loop is held: the lateness of a 1 ms ticker."""

from __future__ import annotations

import asyncio
from time import perf_counter


class Ticker:
    """`async with Ticker() as ticker: …`; then `ticker.lateness` has a number in milliseconds for each tick."""

    def __init__(self) -> None:
        self.lateness: list[float] = []

    async def __aenter__(self) -> Ticker:
        self._task = asyncio.create_task(self._tick(), name="ticker")
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _tick(self) -> None:
        while True:
            due = perf_counter() + 0.001
            await asyncio.sleep(0.001)
            self.lateness.append(max(0.0, perf_counter() - due) * 1000)

    def summary(self) -> dict[str, float]:
        """p50, p99 and max, in milliseconds."""
        ordered = sorted(self.lateness) or [0.0]

        def at(share: float) -> float:
            return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)

        return {"p50": at(0.5), "p99": at(0.99), "max": at(1.0)}
