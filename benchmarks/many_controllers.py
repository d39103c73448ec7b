"""Check what 500 informers with controllers cost in one process: memory, start, changes, a quiet minute.

    python benchmarks/many_controllers.py

The server has 20,000 custom objects of 1 KB, in as many kinds as there are controllers. Each controller has an informer
and an empty reconciler. *Start*: until each object has been reconciled once. Then 10,000 objects change, evenly, at 500
changes a second; latency is the time from the server's write to the reconciler. *Quiet*: the CPU time of 10 seconds in
which nothing happens. All watches are open for the whole time, over plaintext.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web
from clients import Stopwatch, rss_kib
from harness import Question, Requirement, run
from servers import client_environment, on_core, server_environment
from ticker import Ticker, quantile

from aioinformer import HttpTransport, Resource
from aioinformer.controller import Manager

if TYPE_CHECKING:
    from harness import Figures

    from aioinformer.controller import Request

_KINDS, _OBJECTS, _CHANGES, _RATE, _QUIET = (1, 50, 500), 20_000, 10_000, 500, 10.0
_LAST, _FIRST = f"{_KINDS[-1]} controllers", f"{_KINDS[0]} controller"


class Server:
    """The server: a kind is a number in the name of the resource, and has its share of the objects."""

    def __init__(self) -> None:
        self._version = 1_000_000
        self._watches: dict[str, web.StreamResponse] = {}

    def _body(self, plural: str, number: int, version: int, sent: float = 0.0) -> bytes:
        name = f"{plural}-{number:05}"
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
        spec = {"size": 1, "sent": sent, "text": "x" * 800}
        return json.dumps(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec}
        ).encode()

    async def objects(self, request: web.Request) -> web.StreamResponse:
        """Answer a list or a watch."""
        plural = request.match_info["plural"]
        share = _OBJECTS // int(plural.partition("of")[2])
        bodies = [self._body(plural, number, number + 1) for number in range(share)]
        if not request.query.get("watch"):
            metadata = {"resourceVersion": str(self._version)}
            head = {"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": metadata}
            body = json.dumps(head).encode()[:-1] + b',"items":[' + b",".join(bodies) + b"]}"
            return web.Response(body=body, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if request.query.get("sendInitialEvents"):
            marked = {"resourceVersion": str(self._version), "annotations": {"k8s.io/initial-events-end": "true"}}
            end = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": marked}
            lines = [b'{"type":"ADDED","object":' + body + b"}\n" for body in bodies]
            lines.append(json.dumps({"type": "BOOKMARK", "object": end}).encode() + b"\n")
            await response.write(b"".join(lines))
        self._watches[plural] = response
        await asyncio.Event().wait()
        return response

    async def go(self, request: web.Request) -> web.Response:
        """Change objects of all kinds in turn."""
        kinds = int(request.query["kinds"])
        begin = perf_counter()
        for index in range(_CHANGES):
            await asyncio.sleep(max(0.0, begin + index / _RATE - perf_counter()))
            self._version += 1
            plural, number = f"w{index % kinds}of{kinds}", index // kinds % (_OBJECTS // kinds)
            body = self._body(plural, number, self._version, perf_counter())
            await self._watches[plural].write(b'{"type":"MODIFIED","object":' + body + b"}\n")
        return web.Response()


async def serve() -> None:
    """Serve until the standard input ends."""
    server, application = Server(), web.Application()
    application.add_routes([web.get("/apis/example.com/v1/{plural}", server.objects), web.post("/go", server.go)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # the watches never end


class RunningServer:
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


async def measure(url: str, *, kinds: int) -> Figures:
    """Measure a manager with so many controllers."""
    reconciled, latencies = 0, []
    started, changed = asyncio.Event(), asyncio.Event()

    async def reconcile(request: Request[Any]) -> None:
        nonlocal reconciled
        reconciled += 1
        if reconciled == _OBJECTS:
            started.set()
        elif reconciled > _OBJECTS and request.object is not None:
            latencies.append((perf_counter() - request.object["spec"]["sent"]) * 1000)
            if len(latencies) == _CHANGES:
                changed.set()

    async with HttpTransport(url) as transport, aiohttp.ClientSession(url) as control, Ticker() as ticker:
        manager = Manager("many", client=transport)
        for kind in range(kinds):
            resource: Resource[Any] = Resource("example.com", "v1", f"w{kind}of{kinds}", kind="Widget")
            manager.controller(resource, name=f"w{kind}")(reconcile)
        before, watch = rss_kib(), Stopwatch()
        running = asyncio.create_task(manager.run(signals=False))
        await started.wait()
        figures = {"sync_wall_seconds": watch.wall, "sync_cpu_seconds": watch.cpu, "objects": _OBJECTS}
        figures["list_blocked_max_ms"] = ticker.summary()["blocked_max"]
        await asyncio.sleep(1)
        figures["mib"] = (rss_kib() - before) / 1024
        figures["tasks"] = len(asyncio.all_tasks()) / kinds

        ticker.clear()
        cpu = process_time()
        await control.post(f"/go?kinds={kinds}", timeout=aiohttp.ClientTimeout(total=None))
        await changed.wait()
        figures["us_per_change"] = (process_time() - cpu) / _CHANGES * 1e6
        figures |= {"p50_ms": quantile(latencies, 0.5), "p99_ms": quantile(latencies, 0.99)}
        figures["burst_blocked_max_ms"] = ticker.summary()["blocked_max"]
        await asyncio.sleep(1)
        await ticker.__aexit__()  # it would be most of the work of a quiet process
        cpu = process_time()
        await asyncio.sleep(_QUIET)
        figures["quiet_percent"] = (process_time() - cpu) / _QUIET * 100
        running.cancel()
        await asyncio.wait({running})
    return figures


QUESTION = Question(
    "many_controllers",
    "What do 500 informers with controllers cost in one process?",
    {f"{kinds} controller{'s' if kinds > 1 else ''}": partial(measure, kinds=kinds) for kinds in _KINDS},
    requirements=[
        Requirement("CPU per change, ratio of 500 controllers to one", _LAST, "us_per_change", 1.5, _FIRST),
        Requirement("500 controllers: percent of a core while nothing happens", _LAST, "quiet_percent", 1.0),
    ],
    rounds=2,
    seconds=400.0,
    serve=RunningServer(),
)

if __name__ == "__main__":
    if "--serve" in sys.argv:
        asyncio.run(serve())
    else:
        run(QUESTION)
