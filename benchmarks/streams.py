"""Measure streams of changes to 1,000 clients, beside a hub that is written by hand with a queue for each client.

An API server for tests has 10,000 pods, of which 200 change each second. A service of aiohttp keeps them in a cache,
and sends a small view of each change to 1,000 connections of one load process. Both services encode each change once.

- CPU of the service for each change that a client has received;
- memory for each client while nothing is sent, beside a response of aiohttp that nothing is written to;
- the time from the event of the API server, as a watch of the load process receives it, to the byte at the client;
- how old the newest change is that a client has which reads 10 KB a second.

The service has one core, the load process and the API server share the other one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import socket
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import perf_counter, process_time, time
from typing import TYPE_CHECKING, Annotated, Any

import aiohttp
import msgspec
from aiohttp import web
from harness import Offer, Question, Requirement, run
from servers import on_core
from ticker import quantile

from aioinformer.authorization import EVERYBODY
from aioinformer.models import core_v1
from aioinformer.web import Informers
from aioinformer.web.aiohttp import stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness import Figures

_PODS, _CLIENTS, _RATE, _SECONDS = 10_000, 1_000, 200, 15
_SLOW, _SLOW_BYTES = 5, 10_000
#: Seconds after the last change in which clients may receive changes.
_PATIENCE = 10.0
_SAMPLED = 20
#: Each change has one of these, and nothing else has.
_MARK = b"~"
_AT = re.compile(rb"~(\d+)")
_SYNCED = b"event: synced"
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class Row(msgspec.Struct):
    """What a client gets of a pod."""

    at: Annotated[str | None, "metadata.annotations.at"] = None
    node: Annotated[str | None, "spec.nodeName"] = None
    phase: Annotated[str | None, "status.phase"] = None


class Hub:
    """The hub by hand: a handler encodes each change once, and puts it into the queue of each client."""

    def __init__(self, informers: Informers) -> None:
        self._informer = informers.informer(core_v1.PODS)
        self._queues: set[asyncio.Queue[bytes]] = set()
        self._snapshot = b""
        self._informer.add_event_handler(
            on_add=lambda pod: self._put("put", pod),
            on_update=lambda old, new: self._put("put", new),
            on_delete=lambda pod: self._put("delete", pod),
        )

    def _put(self, kind: str, pod: Any) -> None:
        if not self._queues:
            return
        frame = _frame(kind, pod)
        for queue in self._queues:
            queue.put_nowait(frame)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Send everything, then what changes."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        if "selector" not in request.query:
            if not self._snapshot:
                pods = self._informer.lister().list()
                self._snapshot = b"".join(_frame("put", pod) for pod in pods)
            await response.write(self._snapshot)
            self._queues.add(queue)
        try:
            await response.write(_SYNCED + b"\ndata: {}\n\n")
            with suppress(ConnectionResetError):
                while True:
                    await response.write(await queue.get())
        finally:
            self._queues.discard(queue)
        return response


def _frame(kind: str, pod: Any) -> bytes:
    annotations = pod.metadata.annotations or {}
    row = Row(annotations.get("at"), pod.spec.node_name, pod.status.phase)
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    data = msgspec.json.encode({"resource": "v1/pods", "key": key, "object": row})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


async def _idle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    await response.write(_SYNCED + b"\ndata: {}\n\n")
    await asyncio.get_running_loop().create_future()
    return response


def _changes(informers: Informers) -> Any:
    return stream(informers, {core_v1.PODS: Row}, who=EVERYBODY, per_user=2 * _CLIENTS, most=2 * _CLIENTS)


@asynccontextmanager
async def _served(handler: Any) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0), backlog=2 * _CLIENTS)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
    await web.SockSite(runner, listener, backlog=2 * _CLIENTS).start()
    yield listener.getsockname()[1]
    await runner.cleanup()


async def measure(make: Callable[[Informers], Any], busy: bool, url: str) -> Figures:
    """Serve the streams of one kind in this process, and measure it."""
    async with Informers(core_v1.PODS, client=url, metrics=False) as informers:
        await informers.informer(core_v1.PODS).wait_for_sync()
        async with _served(make(informers)) as port:
            load = await asyncio.create_subprocess_exec(
                *on_core(
                    1, [sys.executable, __file__, "--load", str(port), "--url", url, *(["--busy"] if busy else [])]
                ),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert load.stdin is not None
            assert load.stdout is not None
            figures: Figures = {}
            resident = began = 0.0
            async for line in load.stdout:
                step = line.decode().strip()
                if step.startswith("{"):
                    told = json.loads(step)
                    if busy:
                        figures["cpu_us_per_delivery"] = (process_time() - began) * 1e6 / max(1, told["deliveries"])
                    figures |= told
                    break
                await asyncio.sleep(0.5)
                gc.collect()
                if step == "one":  # the first client pays for what all share
                    resident = _resident()
                elif step == "open":
                    figures["kib_per_client"] = (_resident() - resident) / _CLIENTS
                began = process_time()
                load.stdin.write(b"go\n")
            await load.wait()
    return figures


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4.0


class Reader(asyncio.BufferedProtocol):
    """One client.

    Attributes:
        synced: done when the client has everything.
        deliveries: how many changes came since the last reset of this number.
        newest: the number of the newest change that came.
    """

    def __init__(self, load: Load, query: str, sampled: bool = False) -> None:
        self._load = load
        self._query = query
        self._sampled = sampled
        self._slow = False
        self._buffer = memoryview(load.buffer)
        self._tail = b""
        self.synced = asyncio.get_running_loop().create_future()
        self.deliveries = 0
        self.newest = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % self._query.encode())

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[: _SLOW_BYTES // 10] if self._slow else self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._load.buffer
        if not self.synced.done():
            text = self._tail + bytes(data[:nbytes])
            self._tail = text[-len(_SYNCED) :]
            if _SYNCED in text:
                self.synced.set_result(None)
            return
        self.deliveries += data.count(_MARK, 0, nbytes)
        if self._sampled:
            now = perf_counter()
            for match in _AT.finditer(data, 0, nbytes):
                self.newest = int(match.group(1))
                self._load.arrived(self.newest, now, self._slow)
        if self._slow:
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.synced.done():
            self.synced.set_exception(exc or ConnectionResetError())

    def slow_down(self) -> None:
        """Read 10 KB a second from now on."""
        self._slow = True
        self.transport.pause_reading()
        self._again()

    def _again(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
            asyncio.get_running_loop().call_later(0.1, self._again)


class Load:
    """The load process: all clients, a watch, and the changes."""

    def __init__(self, port: int, url: str) -> None:
        self._port = port
        self._url = url
        self.buffer = bytearray(1 << 18)
        self.watched: dict[int, float] = {}
        self.late: list[float] = []
        self._early: dict[int, list[float]] = {}

    def arrived(self, number: int, at: float, slow: bool) -> None:
        """Note the arrival of a change at a client."""
        if slow:
            return
        since = self.watched.get(number)
        if since is None:  # before the watch of this process had it
            self.late.append(0.0)
        else:
            self.late.append((at - since) * 1000)

    async def open(self, query: str, count: int, sampled: int = 0, receive: int = 0) -> list[Reader]:
        """Open clients, and wait until they have everything."""
        readers: list[Reader] = []
        for number in range(count):
            peer = socket.socket()
            if receive:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            peer.setblocking(False)
            await asyncio.get_running_loop().sock_connect(peer, ("127.0.0.1", self._port))
            make = partial(Reader, self, query, number < sampled)
            _, reader = await asyncio.get_running_loop().create_connection(make, sock=peer)
            readers.append(reader)
            if len(readers) % 50 == 0:
                await asyncio.gather(*(each.synced for each in readers))
        await asyncio.gather(*(each.synced for each in readers))
        return readers

    async def run(self, busy: bool) -> None:
        """Open the clients, change pods, and print the figures."""
        await self.open("?selector=none", 1)
        await _step("one")
        idle = await self.open("?selector=none", _CLIENTS)
        await _step("open")
        for each in idle:
            each.transport.abort()
        await asyncio.sleep(1)
        if not busy:
            print(json.dumps({}), flush=True)
            return
        slow = await self.open("", _SLOW, _SLOW, 8 << 10)
        readers = await self.open("", _CLIENTS, _SAMPLED)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=50)) as session:
            async with session.get(f"{self._url}/api/v1/pods?limit={_PODS}") as response:
                page = await response.json()
            watch = asyncio.create_task(self._watch(session, page["metadata"]["resourceVersion"]), name="watch")
            await _step("busy")
            for each in slow:
                each.slow_down()
            began = perf_counter()
            changes = await self._write(session, page["items"])
            seconds = perf_counter() - began
            newest = [perf_counter() - self.watched[each.newest] for each in slow if each.newest in self.watched]
            delivered = await self._all_delivered(readers, changes)
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        figures = {
            "deliveries": float(delivered),
            "changes_per_second": changes / seconds,
            "delivered_share": delivered / (changes * _CLIENTS),
            "latency_ms_p50": quantile(self.late, 0.5),
            "latency_ms_p99": quantile(self.late, 0.99),
            "slow_client_age_seconds": max(newest, default=seconds),
        }
        print(json.dumps(figures), flush=True)

    async def _all_delivered(self, readers: list[Reader], changes: int) -> int:
        """Wait until all clients have all changes, or some time has passed; return how many deliveries there were."""
        ends = perf_counter() + _PATIENCE
        delivered = 0
        while delivered < changes * _CLIENTS and perf_counter() < ends:
            await asyncio.sleep(0.1)
            delivered = sum(each.deliveries for each in readers)
        if not delivered:
            raise RuntimeError("no change was delivered")
        return delivered

    async def _watch(self, session: aiohttp.ClientSession, version: str) -> None:
        url = f"{self._url}/api/v1/pods?watch=true&resourceVersion={version}"
        async with session.get(url, timeout=aiohttp.ClientTimeout(None)) as response:
            async for line in response.content:
                if match := _AT.search(line):
                    self.watched[int(match.group(1))] = perf_counter()

    async def _write(self, session: aiohttp.ClientSession, pods: list[Any]) -> int:
        """Change one pod at each time that is due, and return how many were changed."""
        headers = {"Content-Type": "application/merge-patch+json"}

        async def change(number: int) -> None:
            metadata = pods[number * 7 % len(pods)]["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            body = json.dumps({"metadata": {"annotations": {"at": f"~{number}"}}})
            async with session.patch(self._url + path, data=body, headers=headers) as response:
                await response.read()
                assert response.status == 200, response.status

        began = perf_counter()
        first = int(time()) * 1000  # another subject must not have made the same changes before
        number = 0
        async with asyncio.TaskGroup() as changing:
            while perf_counter() - began < _SECONDS:
                await asyncio.sleep(began + number / _RATE - perf_counter())
                changing.create_task(change(first + number), name="change")
                number += 1
        return number


async def _step(name: str) -> None:
    """Let the service measure itself, and wait until it has."""
    print(name, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


_OURS, _BY_HAND, _RESPONSE = "streams", "a queue for each client", "responses that nothing is written to"

QUESTION = Question(
    name="streams",
    text="What do streams of changes to 1,000 clients cost, with 10,000 pods and 200 changes a second?",
    subjects={
        _OURS: partial(measure, _changes, True),
        _BY_HAND: partial(measure, lambda informers: Hub(informers).stream, True),
        _RESPONSE: partial(measure, lambda informers: _idle, False),
    },
    offer=Offer(program="api_server.py", pods=_PODS),
    requirements=[
        Requirement(
            "CPU for a delivered change, beside a queue for each client", _OURS, "cpu_us_per_delivery", 0.5, _BY_HAND
        ),
        Requirement(
            "KiB for a client, beside a response that nothing is written to",
            _OURS,
            "kib_per_client",
            2.0,
            _RESPONSE,
            difference=True,
        ),
    ],
    rounds=2,
    seconds=240.0,
    notes=["If the machine does not reach 200 changes a second, `changes_per_second` says how many there were."],
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--load", type=int)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--url")
    given, _ = parser.parse_known_args()
    if given.load:
        asyncio.run(Load(given.load, given.url).run(given.busy))
    else:
        run(QUESTION)
