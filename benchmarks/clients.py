"""The measurements of informer and floor: the same phases and the same figures."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import resource
from contextlib import suppress
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import aiohttp
import floor

from aioinformer import HttpTransport, ListWatch, RunOptions, SharedIndexInformer
from aioinformer.models import core_v1

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

PODS = core_v1.PODS


def rss_kib() -> float:
    """Return the resident memory of the process, after returning unused memory to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


class Stopwatch:
    """Measures wall time, CPU time and user time in seconds since its creation."""

    def __init__(self) -> None:
        self._wall, self._cpu, self._user = perf_counter(), process_time(), _user_seconds()

    @property
    def wall(self) -> float:
        return perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return process_time() - self._cpu

    @property
    def user(self) -> float:
        return _user_seconds() - self._user


def _user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def microseconds(call: Callable[[], Any], seconds: float = 0.1) -> float:
    """Return the CPU time of a call, as the mean of the calls within `seconds` of CPU time."""
    call()
    watch, calls = Stopwatch(), 0
    while watch.cpu < seconds:
        call()
        calls += 1
    return watch.cpu / calls * 1e6


class Flood:
    """Measures from the first event of the server to the last notification.

    Args:
        events: the number of events that the server sends.
        handlers: the number of handlers that count each event.
    """

    def __init__(self, events: int, handlers: int = 1) -> None:
        self._events = events
        self._left = events * handlers
        self._done = asyncio.Event()
        self._figures: Figures = {}
        self._watch: Stopwatch | None = None

    def count(self) -> None:
        """Count one notification."""
        if self._watch is None:
            return
        self._left -= 1
        if not self._left:
            cpu, wall, user = self._watch.cpu, self._watch.wall, self._watch.user
            self._figures = {
                "watch_us_per_event": cpu / self._events * 1e6,
                "watch_user_us_per_event": user / self._events * 1e6,
                "watch_events_per_second": self._events / wall,
            }
            self._done.set()

    async def run(self, url: str) -> Figures:
        """Start the events of the server, wait for the last notification, and return the figures."""
        async with aiohttp.ClientSession() as session:
            self._watch = Stopwatch()
            async with session.post(f"{url}/go"):
                pass
            async with asyncio.timeout(300):
                await self._done.wait()
        return self._figures


def synced_figures(watch: Stopwatch, before_kib: float, objects: int) -> Figures:
    """Return the figures of the first list."""
    cpu, wall, user = watch.cpu, watch.wall, watch.user
    return {
        "objects": objects,
        "sync_cpu_seconds": cpu,
        "sync_user_seconds": user,
        "sync_wall_seconds": wall,
        "kib_per_object": (rss_kib() - before_kib) / max(1, objects),
    }


async def measure_floor(url: str, *, events: int = 20_000) -> Figures:
    """Measure the floor: first list, then all events."""
    store: floor.Store = {}
    synced = asyncio.Event()
    flood = Flood(events)

    async def handler(raw: bytes) -> None:
        flood.count()

    before, watch = rss_kib(), Stopwatch()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        task = asyncio.create_task(floor.watch(session, url, "sendInitialEvents=true", store, handler, synced.set))
        await synced.wait()
        figures = synced_figures(watch, before, len(store))
        if events:
            figures |= await flood.run(url)
        task.cancel()
        await asyncio.wait({task})
    return figures


def pods_informer(
    transport: Any, *, pages: bool = False, auto: bool = False, first: int = 0, **options: Any
) -> SharedIndexInformer[Any]:
    """Return an informer for all pods, or for the first ones."""
    reflector = RunOptions(streaming_list="auto" if auto else not pages)
    lister_watcher = ListWatch(transport, PODS, label_selector=f"first={first}" if first else "")
    return SharedIndexInformer(lister_watcher, options=reflector, **options)


async def measure_informer(
    url: str,
    *,
    events: int = 20_000,
    handler: Callable[[Any], Any] = lambda obj: None,
    then: Callable[[SharedIndexInformer[Any]], Figures] = lambda informer: {},
    **options: Any,
) -> Figures:
    """Measure the informer: first list, until all handlers have synced, then all events.

    Args:
        events: the number of events that the server sends.
        handler: what the counting handler does with each new object.
        then: returns more figures at the end.
        options: of the informer.
    """
    flood = Flood(events)

    async def on_add(obj: Any) -> None: ...

    async def on_update(old: Any, new: Any) -> None:
        handler(new)
        flood.count()

    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, **options)
        registration = informer.add_event_handler(on_add=on_add, on_update=on_update)
        before, watch = rss_kib(), Stopwatch()
        async with informer:
            await registration.wait_for_sync()
            figures = synced_figures(watch, before, len(informer.get_indexer()))
            if events:
                figures |= await flood.run(url)
            figures |= then(informer)
    return figures
