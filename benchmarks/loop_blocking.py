"""Measure how long the informer blocks the event loop while it lists, relists and follows 50,000 pods, and stops.

A ticker of 1 ms runs at the same time. By the clock, it is also late because of other load on the machine. The
requirements therefore use the CPU time that the thread itself consumed while a tick was due, minus that of an idle
ticker in the same process. The results contain both.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from time import thread_time
from typing import TYPE_CHECKING, Any

import aiohttp
from clients import Flood, Stopwatch, pods_informer
from harness import Offer, Question, Requirement, run
from ticker import Ticker

from aioinformer import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_PODS = 50_000
_PHASES = ("list", "relist", "burst", "late_joiner", "add_indexers", "shutdown", "release")


class Phases:
    """The figures of each phase, minus those of the idle loop."""

    def __init__(self, ticker: Ticker, idle: dict[str, float]) -> None:
        self.figures: Figures = {f"idle_{name}_ms": value for name, value in idle.items()}
        self._ticker, self._idle = ticker, idle
        self.collected_ms = 0.0
        gc.callbacks.append(self._measure_collection)

    def _measure_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collection = thread_time()
        else:
            self.collected_ms = max(self.collected_ms, (thread_time() - self._collection) * 1000)

    async def begin(self) -> None:
        """Start a phase: what the benchmark itself has done does not count."""
        await self._wait_for_tick()
        self.collected_ms = 0.0
        self._ticker.clear()
        self._watch = Stopwatch()

    async def end(self, phase: str) -> None:
        """End a phase, add its figures, and start the next one."""
        cpu, wall = self._watch.cpu, self._watch.wall
        await self._wait_for_tick()
        summary = self._ticker.summary()
        self.figures |= {f"{phase}_cpu_seconds": cpu, f"{phase}_wall_seconds": wall}
        for name in ("p99", "max", "blocked_p99", "blocked_max"):
            self.figures[f"{phase}_{name}_ms"] = max(0.0, summary[name] - self._idle[name])
        self.figures[f"{phase}_longest_collection_ms"] = self.collected_ms
        await self.begin()

    async def _wait_for_tick(self) -> None:
        await asyncio.sleep(0.005)


async def measure(url: str, *, pages: bool = False, storage: str = "bytes") -> Figures:
    """Measure all phases of one informer."""
    flood = Flood(_PODS)
    delivered = [0]

    async def on_add(obj: Any) -> None:
        delivered[0] += 1

    async def on_update(old: Any, new: Any) -> None:
        delivered[0] += 1
        flood.count()

    async with Ticker() as idle:
        await asyncio.sleep(1)
    async with Ticker() as ticker, HttpTransport(url) as transport, aiohttp.ClientSession() as session:
        phases = Phases(ticker, idle.summary())
        await phases.begin()
        informer: Any = pods_informer(transport, pages=pages, storage=storage)
        registration = informer.add_event_handler(on_add=on_add, on_update=on_update)
        async with informer:
            await registration.wait_for_sync()
            await phases.end("list")

            delivered[0] = 0
            bodies = [id(record.raw) for record in informer.get_indexer().store.items()]
            version = int(informer.last_sync_resource_version)
            await phases.begin()
            async with session.post(f"{url}/expire"):
                pass
            await informer.wait_for_resource_version(str(version + 1))
            await phases.end("relist")
            phases.figures["relist_notifications"] = delivered[0]
            phases.figures["relist_bodies"] = sum(
                before != id(record.raw)
                for before, record in zip(bodies, informer.get_indexer().store.items(), strict=True)
            )
            del bodies

            await phases.begin()
            await flood.run(url)
            await phases.end("burst")

            late = informer.add_event_handler(on_add=on_add, on_update=on_update)
            await late.wait_for_sync()
            await phases.end("late_joiner")

            look = Stopwatch()  # in the caller's code: it creates the classes of the model, once per process
            assert next(iter(informer.get_indexer())).spec.node_name
            phases.figures["first_look_ms"] = look.cpu * 1000
            await phases.end("first_look")
            await informer.add_indexers_in_slices({"node": lambda pod: [pod.spec.node_name]})
            await phases.end("add_indexers")
        await phases.end("shutdown")
        store = weakref.ref(informer.get_indexer().store)
        del informer, registration, late
        gc.collect()
        collected = phases.collected_ms
        await asyncio.sleep(0.2)
        await phases.end("release")
        # A garbage collection that the benchmark requests is not due to the informer.
        for name in ("blocked_max", "blocked_p99"):
            phases.figures[f"release_{name}_ms"] = max(0.0, phases.figures[f"release_{name}_ms"] - collected)
        phases.figures["stores_left"] = store() is not None
    return phases.figures


def _required() -> list[Requirement]:
    found = []
    for subject in ("streaming", "pages"):
        for phase in _PHASES:
            name = f"{subject}: {phase.replace('_', ' ')}"
            found.append(Requirement(f"{name}: longest time blocked, ms", subject, f"{phase}_blocked_max_ms", 10.0))
            found.append(Requirement(f"{name}: p99 of the time blocked, ms", subject, f"{phase}_blocked_p99_ms", 5.0))
        found.append(Requirement(f"{subject}: notifications of a relist", subject, "relist_notifications", 0))
        found.append(Requirement(f"{subject}: bodies replaced by a relist", subject, "relist_bodies", 0))
        cpu, first = "relist_cpu_seconds", "list_cpu_seconds"
        found.append(
            Requirement(f"{subject}: CPU of a relist, ratio to the first list", subject, cpu, 1.0, subject, first)
        )
    return found


QUESTION = Question(
    "loop_blocking",
    "How long does the informer block the event loop while it lists, relists and follows 50,000 pods, and stops?",
    {"streaming": measure, "pages": lambda url: measure(url, pages=True)},
    Offer(pods=_PODS, events=_PODS),
    requirements=_required(),
    rounds=5,
    seconds=100.0,
)

if __name__ == "__main__":
    run(QUESTION)
