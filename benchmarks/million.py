"""Check what a cache of a million pods costs: memory, first list, relist, events, loop lag, pauses of the collector.

    python benchmarks/million.py --only "1,000,000 pods"

The server generates the pods while it sends them, each of 2 KB, in pages of a list; the informer keeps them compressed
and has one handler. Then 5,000 pods change, evenly, at 1,000 changes a second; then the watch ends with 410 Gone, and
the informer lists all again. Subjects with fewer pods show the growth.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from functools import partial
from time import perf_counter, process_time, thread_time
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web
from clients import PODS, Stopwatch, rss_kib
from harness import Question, Requirement, run
from pods import encoded
from servers import client_environment, on_core, server_environment
from ticker import Ticker, quantile

from aioinformer import HttpTransport, ListWatch, RunOptions, SharedIndexInformer

if TYPE_CHECKING:
    from harness import Figures

_SIZES = (10_000, 100_000, 300_000, 1_000_000)
_EVENTS, _RATE, _BYTES = 5_000, 1_000, 2_000
_LAST, _FIRST = f"{_SIZES[-1]:,} pods", f"{_SIZES[0]:,} pods"


def template() -> bytes:
    """Return a pod of 2 KB with the places of its number, its version and its state."""
    pod: dict[str, Any] = json.loads(encoded(0, 1))
    metadata = pod["metadata"]
    metadata.pop("managedFields")
    pod["status"].pop("conditions")
    for container in pod["spec"]["containers"]:
        for name in ("env", "livenessProbe", "resources", "args", "volumeMounts"):
            container.pop(name, None)
    metadata |= {"name": "pod-@NUMBER@", "namespace": "team-@TEAM@", "uid": "8f1d2c3b-4a59-4687-9c0e-00000@NUMBER@"}
    metadata |= {"resourceVersion": "@VERSION@", "annotations": {"state": "@STATE@"}}
    raw = json.dumps(pod, separators=(",", ":")).encode().replace(b"%", b"%%")
    raw = raw.replace(b"@STATE@", b"@STATE@" + b"x" * max(0, _BYTES - len(raw)))
    for name, form in (("NUMBER", "%(number)07d"), ("TEAM", "%(team)02d"), ("VERSION", "%(version)d")):
        raw = raw.replace(f"@{name}@".encode(), form.encode())
    return raw.replace(b"@STATE@", b"%(state)d")


class Generator:
    """The server: pods are made while they are sent."""

    def __init__(self) -> None:
        self._pod = template()
        self._version = 10_000_000
        #: Version and state of the pods that have changed, for each number of pods.
        self._changed: dict[int, dict[int, tuple[int, int]]] = {}
        self._expired = asyncio.Event()
        self._go: dict[int, asyncio.Event] = {}

    def pod(self, number: int, count: int) -> bytes:
        """Return the JSON of one of so many pods."""
        version, state = self._changed.get(count, {}).get(number, (number + 1, 0))
        return self._pod % {b"number": number, b"team": number % 100, b"version": version, b"state": state}

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """Answer a list or a watch."""
        count = int(request.query["labelSelector"].partition("=")[2])
        if request.query.get("watch"):
            return await self._watch(request, count)
        begin, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or count)
        stop = min(count, begin + limit)
        token = {"continue": str(stop), "remainingItemCount": count - stop} if stop < count else {}
        head = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": str(self._version), **token}}
        items = b",".join([self.pod(number, count) for number in range(begin, stop)])
        body = json.dumps(head).encode()[:-1] + b',"items":[' + items + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, count: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._expired.clear()
        go = self._go[count] = asyncio.Event()
        await go.wait()
        begin, changed = perf_counter(), self._changed.setdefault(count, {})
        for index in range(_EVENTS):
            await asyncio.sleep(max(0.0, begin + index / _RATE - perf_counter()))
            self._version += 1
            number = index * 7919 % count
            changed[number] = self._version, int(perf_counter() * 1e9)
            await response.write(b'{"type":"MODIFIED","object":' + self.pod(number, count) + b"}\n")
        await self._expired.wait()
        self._version += 1
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410}
        gone = {"type": "ERROR", "object": {**status, "reason": "Expired", "message": "too old resource version"}}
        await response.write(json.dumps(gone).encode() + b"\n")
        return response

    async def go(self, request: web.Request) -> web.Response:
        """Begin the changes."""
        self._go[int(request.query["pods"])].set()
        return web.Response()

    async def expire(self, request: web.Request) -> web.Response:
        """End the watch, whose version is too old."""
        self._expired.set()
        return web.Response()


async def serve() -> None:
    """Serve until the standard input ends."""
    generator, application = Generator(), web.Application()
    application.add_routes([web.get("/api/v1/pods", generator.pods), web.post("/go", generator.go)])
    application.add_routes([web.post("/expire", generator.expire)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


class GeneratingServer:
    """The server in a process and core of its own."""

    def __init__(self) -> None:
        self.environment = client_environment()

    def __enter__(self) -> str:
        command = on_core(1, [sys.executable, __file__, "--serve"])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=server_environment()
        )
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(self, *exc: object) -> None:
        with self._process:
            self._process.terminate()


class Collector:
    """Measures the pauses of the garbage collector, in milliseconds of CPU time: `with Collector() as collector:`."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def __enter__(self) -> Collector:
        gc.callbacks.append(self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, details: dict[str, int]) -> None:
        if phase == "start":
            self._began = thread_time()
        else:
            self.pauses.append((thread_time() - self._began) * 1000)


async def measure(url: str, *, pods: int) -> Figures:
    """Measure the informer: first list, events, relist."""
    latencies: list[float] = []
    changed = asyncio.Event()

    async def on_add(obj: Any) -> None: ...

    async def on_update(old: Any, new: Any) -> None:
        latencies.append(perf_counter() * 1000 - int(new.metadata.annotations["state"].rstrip("x")) / 1e6)
        if len(latencies) == _EVENTS:
            changed.set()

    async with HttpTransport(url) as transport, aiohttp.ClientSession(url) as control, Ticker() as ticker:
        async with _informer(transport, 10) as first:  # imports what every informer needs
            await first.wait_for_sync()
            assert first.get_indexer().list()[0].metadata.annotations
        ticker.clear()
        await asyncio.sleep(1)
        idle, before = ticker.summary()["blocked_max"], rss_kib()
        with Collector() as collector:
            informer = _informer(transport, pods)
            registration = informer.add_event_handler(on_add=on_add, on_update=on_update)
            ticker.clear()
            watch = Stopwatch()
            async with informer:
                await registration.wait_for_sync()
                figures = {"objects": pods, "sync_wall_seconds": watch.wall, "sync_cpu_seconds": watch.cpu}
                figures["sync_us_per_object"] = watch.cpu / pods * 1e6
                figures["list_blocked_max_ms"] = max(0.0, ticker.summary()["blocked_max"] - idle)
                memory = rss_kib() - before
                figures |= {"mib": memory / 1024, "kib_per_object": memory / pods}

                await asyncio.sleep(0.01)  # `rss_kib` itself has blocked the loop
                ticker.clear()
                cpu = process_time()
                await control.post(f"/go?pods={pods}")
                await changed.wait()
                figures["watch_us_per_event"] = (process_time() - cpu) / _EVENTS * 1e6
                figures["burst_blocked_max_ms"] = max(0.0, ticker.summary()["blocked_max"] - idle)
                figures["p99_ms"] = quantile(latencies, 0.99)

                ticker.clear()
                since, watch = informer.last_sync_resource_version, Stopwatch()
                await control.post("/expire")
                while informer.last_sync_resource_version == since or not informer.state.healthy:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                figures |= {"relist_wall_seconds": watch.wall, "relist_cpu_seconds": watch.cpu}
                figures["relist_blocked_max_ms"] = max(0.0, ticker.summary()["blocked_max"] - idle)
                figures["relist_notifications"] = len(latencies) - _EVENTS
                figures["relist_mib"] = (rss_kib() - before) / 1024
        figures["collector_max_ms"] = max(collector.pauses, default=0.0)
    return figures


def _informer(transport: HttpTransport, pods: int) -> SharedIndexInformer[Any]:
    lister_watcher = ListWatch(transport, PODS, label_selector=f"first={pods}")
    return SharedIndexInformer(lister_watcher, options=RunOptions(streaming_list=False), storage="compressed")


_BLOCKED = (("first list", "list"), ("events", "burst"), ("relist", "relist"))

QUESTION = Question(
    "million",
    "What does a cache of a million pods cost?",
    {f"{pods:,} pods": partial(measure, pods=pods) for pods in _SIZES},
    requirements=[
        Requirement("memory per object, ratio of 1,000,000 to 10,000 pods", _LAST, "kib_per_object", 1.1, _FIRST),
        Requirement("CPU per listed object, ratio", _LAST, "sync_us_per_object", 1.25, _FIRST),
        Requirement("CPU per event, ratio", _LAST, "watch_us_per_event", 1.25, _FIRST),
        *(
            Requirement(f"{title}: longest time blocked, ms", _LAST, f"{name}_blocked_max_ms", 10.0)
            for title, name in _BLOCKED
        ),
        Requirement("notifications of a relist", _LAST, "relist_notifications", 0.0),
    ],
    rounds=1,
    seconds=900.0,
    patience=900.0,
    notes=["Pods have about 2,150 bytes of JSON here. The client is not pinned to a core."],
    serve=GeneratingServer(),
)

if __name__ == "__main__":
    if "--serve" in sys.argv:
        asyncio.run(serve())
    else:
        run(QUESTION)
