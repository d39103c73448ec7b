"""Measure the latency from the server's socket to the handler, at 1,000 events per second.

Both processes read the same monotonic clock: the server when it passes an event to its socket, the client when its
handler is called. An idle loop in the same process shows how late timers are on this machine without load.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

import aiohttp
import floor
from clients import pods_informer
from harness import Offer, Question, Requirement, run
from ticker import Ticker, quantile

from aioinformer import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_EVENTS, _RATE = 10_000, 1_000
_WITH_SLOW = "informer with a slow handler"


class Arrivals:
    """The time at which the handler was called for each event."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._done = asyncio.Event()

    def note(self) -> None:
        """Note one call of the handler."""
        self._times.append(perf_counter())
        if len(self._times) == _EVENTS:
            self._done.set()

    async def run(self, url: str) -> Figures:
        """Start the events of the server, wait for the last call, and return the figures."""
        async with aiohttp.ClientSession() as session:
            async with Ticker() as idle:
                await asyncio.sleep(1)
            cpu = thread_time()
            async with session.post(f"{url}/go?rate={_RATE}"):
                pass
            async with asyncio.timeout(120):
                await self._done.wait()
            cpu = thread_time() - cpu
            async with session.get(f"{url}/times") as response:
                sent = await response.json()
        delays = [(arrived - sent) * 1000 for arrived, sent in zip(self._times, sent, strict=True)]
        shares = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "max": 1.0}
        figures = {f"latency_ms_{name}": quantile(delays, share) for name, share in shares.items()}
        summary = idle.summary()
        return {
            **figures,
            "idle_ms_p50": summary["p50"],
            "idle_ms_p99": summary["p99"],
            "over_idle_ms_p50": max(0.0, figures["latency_ms_p50"] - summary["p50"]),
            "over_idle_ms_p99": max(0.0, figures["latency_ms_p99"] - summary["p99"]),
            "cpu_share": cpu * _RATE / _EVENTS,
        }


async def measure_floor(url: str) -> Figures:
    """Measure the floor."""
    store: floor.Store = {}
    synced, arrivals = asyncio.Event(), Arrivals()

    async def handler(raw: bytes) -> None:
        if synced.is_set():
            arrivals.note()

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        task = asyncio.create_task(floor.watch(session, url, "sendInitialEvents=true", store, handler, synced.set))
        await synced.wait()
        figures = await arrivals.run(url)
        task.cancel()
        await asyncio.wait({task})
    return figures


async def measure_informer(url: str, *, slow: bool = False) -> Figures:
    """Measure the informer, optionally with a slow handler, too."""
    arrivals = Arrivals()

    async def on_update(old: Any, new: Any) -> None:
        arrivals.note()

    async def on_update_slowly(old: Any, new: Any) -> None:
        await asyncio.sleep(0.01)

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport)
        if slow:  # it is called first
            informer.add_event_handler(on_update=on_update_slowly)
        registration = informer.add_event_handler(on_update=on_update)
        async with informer:
            await registration.wait_for_sync()
            return await arrivals.run(url)


QUESTION = Question(
    "latency",
    "How long does an event take from the server's socket to the handler, at 1,000 events per second?",
    {"floor": measure_floor, "informer": measure_informer, _WITH_SLOW: partial(measure_informer, slow=True)},
    Offer(pods=20_000, events=_EVENTS),
    requirements=[
        Requirement("p50 above the idle loop, ms", "informer", "over_idle_ms_p50", 1.0),
        Requirement("p99 above the idle loop, ms", "informer", "over_idle_ms_p99", 5.0),
        Requirement("with a slow handler: p50 above the idle loop, ms", _WITH_SLOW, "over_idle_ms_p50", 1.0),
        Requirement("with a slow handler: p99 above the idle loop, ms", _WITH_SLOW, "over_idle_ms_p99", 5.0),
    ],
    rounds=3,
    seconds=90.0,
)

if __name__ == "__main__":
    run(QUESTION)
