"""One client, measured: run by the benchmarks as a process of its own, prints one JSON object.

python benchmarks/client.py informer|floor URL --events 20000 [--pages] [--handlers 1] [--rate 0]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
from time import perf_counter, process_time
from typing import Any

import aiohttp
from ticker import Ticker


def rss_kib() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Phases:
    """Counts what handlers are told, and takes the time of the watch phase."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.seen = 0
        self.begin = self.cpu = 0.0
        self.wall_seconds = self.cpu_seconds = 0.0
        self.done = asyncio.Event()

    def start(self) -> None:
        self.begin, self.cpu = perf_counter(), process_time()

    def count(self) -> None:
        self.seen += 1
        if self.seen == self.events:
            self.wall_seconds, self.cpu_seconds = perf_counter() - self.begin, process_time() - self.cpu
            self.done.set()


async def floor(url: str, arguments: argparse.Namespace, phases: Phases, report: dict[str, Any]) -> None:
    import floor

    store: floor.Store = {}
    synced = asyncio.Event()
    told = 0

    async def handler(raw: bytes) -> None:
        nonlocal told
        told += 1
        if synced.is_set():
            phases.count()

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        query = "sendInitialEvents=true"
        if arguments.pages:
            query = "resourceVersion=" + await floor.list_pages(session, url, store)
            synced.set()
        task = asyncio.create_task(floor.watch(session, url, query, store, handler, synced.set))
        await synced.wait()
        await measure(url, arguments, phases, report, lambda: len(store))
        task.cancel()
        await asyncio.wait({task})


async def informer(url: str, arguments: argparse.Namespace, phases: Phases, report: dict[str, Any]) -> None:
    from aioinformer import BUILTIN_RESOURCES, ListWatch, ReflectorOptions, SharedIndexInformer
    from aioinformer.transport.http import HttpTransport

    pods = next(each for each in BUILTIN_RESOURCES if each.gvr == "v1/pods")
    options = ReflectorOptions(streaming_list=not arguments.pages)
    async with HttpTransport(url) as transport:
        cache = SharedIndexInformer(ListWatch(transport, pods), options=options)

        async def on_update(old: Any, new: Any) -> None:
            phases.count()

        async def silent(old: Any, new: Any) -> None: ...

        async def on_add(obj: Any) -> None: ...

        registration = cache.add_event_handler(on_add=on_add, on_update=on_update)
        for _ in range(arguments.handlers - 1):
            cache.add_event_handler(on_add=on_add, on_update=silent)
        async with cache:
            await registration.wait_for_sync()
            await measure(url, arguments, phases, report, lambda: len(cache.get_indexer()))


async def measure(url: str, arguments: argparse.Namespace, phases: Phases, report: dict[str, Any], size: Any) -> None:
    report["sync_wall_seconds"] = perf_counter() - report.pop("begin")
    report["sync_cpu_seconds"] = process_time() - report.pop("cpu")
    report["sync_lateness_ms"] = report["ticker"].summary()
    report["objects"] = size()
    gc.collect()
    report["kib_per_object"] = (rss_kib() - report["rss_before_kib"]) / max(1, size())
    report["ticker"].clear()
    if phases.events:
        async with aiohttp.ClientSession() as session:
            phases.start()
            async with session.post(f"{url}/go?rate={arguments.rate}"):
                pass
            async with asyncio.timeout(300):
                await phases.done.wait()
        report["watch_lateness_ms"] = report["ticker"].summary()
        report["watch_us_per_event"] = phases.cpu_seconds / phases.events * 1e6
        report["watch_events_per_second"] = phases.events / phases.wall_seconds


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("client", choices=["informer", "floor"])
    parser.add_argument("url")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--pages", action="store_true", help="list in pages instead of streaming")
    parser.add_argument("--handlers", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.0)
    arguments = parser.parse_args()
    run = {"informer": informer, "floor": floor}[arguments.client]
    if arguments.client == "informer":
        import aioinformer.factory
        import aioinformer.transport.http  # noqa: F401 - imported before memory is measured
    async with Ticker() as idle:
        await asyncio.sleep(0.5)
    report: dict[str, Any] = {"client": arguments.client, "idle_lateness_ms": idle.summary()}
    gc.collect()
    report["rss_before_kib"] = rss_kib()
    async with Ticker() as ticker:
        report |= {"ticker": ticker, "begin": perf_counter(), "cpu": process_time()}
        await run(arguments.url, arguments, Phases(arguments.events), report)
    report.pop("ticker")
    report["max_rss_kib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(report))


if __name__ == "__main__":
    asyncio.run(main())
