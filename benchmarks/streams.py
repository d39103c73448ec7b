"""Measure streams of changes to 1,000 clients, beside a hub that is written by hand with a queue for each client.

An API server for tests has 10,000 pods, of which 200 change each second. A service of aiohttp keeps them in a cache,
and sends a small view of each change to 1,000 connections of one load process. Both services encode each change once.
In the first case, each change is visible in the view; in the second one, the dashboard, each twentieth, and a change of
anything else is not sent.

- CPU of the service for each change that a client has received, and of each process;
- memory for each client while nothing is sent, beside a response of aiohttp that nothing is written to;
- the time from the change in the API server to the byte at the client;
- how old the newest change is that a client has which reads 10 KB a second.

The service has one core; the load process and the API server share the other one. The load process reads by `epoll`
and counts changes without parsing them, but for a few clients: it must be able to read 200,000 changes a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import select
import socket
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic, process_time, sleep
from typing import TYPE_CHECKING, Annotated, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
from aiohttp import web
from clients import rss_kib
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
#: Of so many changes, one is visible on the dashboard.
_DASHBOARD = 20
_SLOW, _SLOW_BYTES = 5, 10_000
#: Seconds after the last change in which clients may receive changes.
_PATIENCE = 10.0
_SAMPLED = 20
#: Each visible change has one of these, and nothing else has; its number and time follow.
_MARK = b"~"
_AT = re.compile(rb'~\d+:([0-9.]+)"')  # whole: a slow client reads parts of events
_SYNCED = b"event: synced"
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
_TICK = os.sysconf("SC_CLK_TCK")


class Row(msgspec.Struct):
    """What a client gets of a pod."""

    at: Annotated[str | None, "metadata.annotations.at"] = None
    node: Annotated[str | None, "spec.nodeName"] = None
    phase: Annotated[str | None, "status.phase"] = None


class Hub:
    """The hub by hand: a handler encodes each visible change once, and puts it into the queue of each client."""

    def __init__(self, informers: Informers) -> None:
        self._informer = informers.informer(core_v1.PODS)
        self._queues: set[asyncio.Queue[bytes]] = set()
        self._snapshot = b""
        self._informer.add_event_handler(
            on_add=lambda pod: self._put("put", pod),
            on_update=self._update,
            on_delete=lambda pod: self._put("delete", pod),
        )

    def _update(self, old: Any, new: Any) -> None:
        if _row(old) != _row(new):
            self._put("put", new)

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


def _row(pod: Any) -> Row:
    return Row((pod.metadata.annotations or {}).get("at"), pod.spec.node_name, pod.status.phase)


def _frame(kind: str, pod: Any) -> bytes:
    key = f"{pod.metadata.namespace}/{pod.metadata.name}"
    data = msgspec.json.encode({"resource": "v1/pods", "key": key, "object": _row(pod)})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


async def _idle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    await response.write(_SYNCED + b"\ndata: {}\n\n")
    await asyncio.get_running_loop().create_future()
    return response


def _changes(informers: Informers) -> Any:
    return stream(informers, {core_v1.PODS: Row}, who=EVERYBODY, per_user=2 * _CLIENTS, most=2 * _CLIENTS)


def _by_hand(informers: Informers) -> Any:
    return Hub(informers).stream


def _nothing(informers: Informers) -> Any:
    return _idle


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


async def measure(make: Callable[[Informers], Any], visible: int, url: str) -> Figures:
    """Serve the streams of one kind in this process, and measure it.

    Args:
        visible: of so many changes, one is visible; 0 for no changes.
    """
    async with Informers(core_v1.PODS, client=url, metrics=False) as informers:
        await informers.informer(core_v1.PODS).wait_for_sync()
        async with _served(make(informers)) as port:
            load = await asyncio.create_subprocess_exec(
                *on_core(1, [sys.executable, __file__, "--load", str(port), "--url", url, "--visible", str(visible)]),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert load.stdin is not None
            assert load.stdout is not None
            figures: Figures = {}
            resident = cpu = began = 0.0
            async for line in load.stdout:
                step = line.decode().strip()
                if step.startswith("{"):
                    told = json.loads(step)
                    if visible:
                        cpu = process_time() - cpu
                        figures["cpu_us_per_delivery"] = cpu * 1e6 / max(1, told["deliveries"])
                        figures["cpu_share"] = cpu / (monotonic() - began)
                    figures |= told
                    break
                await asyncio.sleep(0.5)
                if step == "one":  # the first client pays for what all share
                    resident = rss_kib()
                elif step == "open":
                    figures["kib_per_client"] = (rss_kib() - resident) / _CLIENTS
                cpu = process_time()
                began = monotonic()
                load.stdin.write(b"go\n")
            await load.wait()
    return figures


class Reader:
    """One client.

    Attributes:
        synced: whether the client has everything.
        deliveries: how many changes came since then.
        newest: when the newest of them was made.
    """

    __slots__ = ("_tail", "deliveries", "newest", "peer", "sampled", "synced")

    def __init__(self, peer: socket.socket, sampled: bool) -> None:
        self.peer = peer
        self.sampled = sampled
        self.synced = False
        self.deliveries = 0
        self.newest = 0.0
        self._tail = b""

    def read(self, buffer: bytearray, most: int) -> list[float]:
        """Read what has come, and return the times of the changes, of a sampled client.

        Raises:
            ConnectionResetError: the service has closed the connection.
        """
        try:
            size = self.peer.recv_into(buffer, most)
        except BlockingIOError:
            return []
        if not size:
            raise ConnectionResetError("the service has closed a stream")
        if not self.synced:
            text = self._tail + bytes(buffer[max(0, size - 200) : size])
            self.synced = _SYNCED in text
            self._tail = text[-200:]
            return []
        self.deliveries += buffer.count(_MARK, 0, size)
        if not self.sampled:
            return []
        times = [float(each) for each in _AT.findall(memoryview(buffer)[:size])]
        if times:
            self.newest = times[-1]
        return times


class Load:
    """The load process: all clients."""

    def __init__(self, port: int, url: str) -> None:
        self._port = port
        self._url = url
        self._buffer = bytearray(1 << 18)
        self._epoll = select.epoll()
        self._readers: dict[int, Reader] = {}
        self._slow: list[Reader] = []
        self._slow_due = 0.0
        #: Milliseconds from a change to its arrival.
        self._late: list[float] = []

    def run(self, visible: int) -> Figures:
        """Open the clients, let pods change, and return the figures."""
        self._open("?selector=none", 1)
        _step("one")
        idle = self._open("?selector=none", _CLIENTS)
        _step("open")
        if not visible:
            return {}
        for each in idle:
            self._close(each)
        sleep(1.0)
        slow = self._open("", _SLOW, sampled=_SLOW, receive=8 << 10)
        readers = self._open("", _CLIENTS, sampled=_SAMPLED)
        for each in slow:
            self._epoll.unregister(each.peer)
        self._slow = slow
        server = int(self._config_map("GET", "server")["data"]["pid"])
        _step("busy")
        cpu = process_time()
        cpu_of_server = _cpu_of(server)
        began = monotonic()
        told = self._changes(visible)
        now = monotonic()
        ages = [now - each.newest for each in slow if each.newest]
        expected = int(told["shown"]) * _CLIENTS
        ends = now + _PATIENCE
        while (delivered := sum(each.deliveries for each in readers)) < expected and monotonic() < ends:
            self._poll(0.1)
        if not delivered:
            raise RuntimeError("no change was delivered")
        lasted = monotonic() - began
        return {
            "deliveries": float(delivered),
            "changes_per_second": int(told["made"]) / float(told["took"]),
            "delivered_share": delivered / expected,
            "latency_ms_p50": quantile(self._late, 0.5),
            "latency_ms_p99": quantile(self._late, 0.99),
            "slow_client_age_seconds": max(ages, default=now - began),
            "load_cpu_share": (process_time() - cpu) / lasted,
            "server_cpu_share": (_cpu_of(server) - cpu_of_server) / lasted,
        }

    def _changes(self, visible: int) -> dict[str, str]:
        """Let the API server change pods; return what it tells in the end."""
        self._config_map("DELETE", "changes")
        data = {"rate": str(_RATE), "seconds": str(_SECONDS), "visible": str(visible)}
        self._config_map("POST", "", {"metadata": {"name": "changes"}, "data": data})
        ends = monotonic() + _SECONDS
        while True:
            while (left := ends - monotonic()) > 0:
                self._poll(min(left, 0.1))
            found: dict[str, str] = self._config_map("GET", "changes")["data"]
            if "made" in found:
                return found
            ends = monotonic() + 0.2

    def _open(self, query: str, number: int, *, sampled: int = 0, receive: int = 0) -> list[Reader]:
        """Open clients, and wait until they have everything."""
        readers: list[Reader] = []
        for _ in range(number):
            peer = socket.socket()
            if receive:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            peer.connect(("127.0.0.1", self._port))
            peer.sendall(b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % query.encode())
            peer.setblocking(False)
            reader = Reader(peer, len(readers) < sampled)
            self._readers[peer.fileno()] = reader
            self._epoll.register(peer, select.EPOLLIN)
            readers.append(reader)
            if len(readers) % 50 == 0 or len(readers) == number:
                while not all(each.synced for each in readers[-50:]):
                    self._poll(1.0)
        return readers

    def _close(self, reader: Reader) -> None:
        self._epoll.unregister(reader.peer)
        del self._readers[reader.peer.fileno()]
        reader.peer.close()

    def _poll(self, seconds: float) -> None:
        """Read what comes within some seconds; of slow clients, a part."""
        buffer = self._buffer
        for descriptor, _ in self._epoll.poll(seconds):
            times = self._readers[descriptor].read(buffer, len(buffer))
            if times:
                now = monotonic()
                self._late += [(now - each) * 1000 for each in times]
        if self._slow and monotonic() >= self._slow_due:
            self._slow_due = monotonic() + 0.1
            for reader in self._slow:
                reader.read(buffer, _SLOW_BYTES // 10)

    def _config_map(self, method: str, name: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        url = f"{self._url}/api/v1/namespaces/default/configmaps/{name}".rstrip("/")
        request = Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            if method != "DELETE" or error.code != 404:
                raise


def _cpu_of(process: int) -> float:
    """Return the seconds of CPU that a process has used."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _step(name: str) -> None:
    """Let the service measure itself, and wait until it has."""
    print(name, flush=True)
    sys.stdin.readline()


_OURS, _BY_HAND, _RESPONSE = "streams", "a queue for each client", "responses that nothing is written to"
_ON_DASHBOARD = "dashboard"

QUESTION = Question(
    name="streams",
    text="What do streams of changes to 1,000 clients cost, with 10,000 pods and 200 changes a second?",
    subjects={
        _OURS: partial(measure, _changes, 1),
        _BY_HAND: partial(measure, _by_hand, 1),
        f"{_ON_DASHBOARD}: {_OURS}": partial(measure, _changes, _DASHBOARD),
        f"{_ON_DASHBOARD}: {_BY_HAND}": partial(measure, _by_hand, _DASHBOARD),
        _RESPONSE: partial(measure, _nothing, 0),
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
    notes=["If the machine does not reach 200 changes a second, `changes/s` says how many there were."],
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--load", type=int)
    parser.add_argument("--visible", type=int)
    parser.add_argument("--url")
    given, _ = parser.parse_known_args()
    if given.load:
        print(json.dumps(Load(given.load, given.url).run(given.visible)), flush=True)
    else:
        run(QUESTION)
