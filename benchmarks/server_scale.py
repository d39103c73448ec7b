"""Check that the API server for tests, with 50,000 pods, sends 50 changes per second to each of 1,000 watches.

The server is a process on a core of its own. On another core, 1,000 connections watch all pods and count events, and
one more connection patches a pod every 20 ms over HTTP. The delay of a change is the time from the moment its patch was
due until the last of the watches has received its event, so slow patches count, too. The server's CPU time and memory
are read from the system.
"""

from __future__ import annotations

import asyncio
import json
import os
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from harness import Offer, Question, Requirement, run
from ticker import quantile

if TYPE_CHECKING:
    from harness import Figures

_PODS, _WATCHES = 50_000, 1_000
_RATE, _SECONDS = 50, 20
_EVENTS = _RATE * _SECONDS
_AT_ONCE = 50
_END = b"}\n"


class Process:
    """Figures of a process from the system."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def cpu(self) -> float:
        """Return the user and system time in seconds."""
        with open(f"/proc/{self._pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def kib(self) -> float:
        """Return the resident memory."""
        with open(f"/proc/{self._pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


class Arrivals:
    """The time at which the last of the watches received each event."""

    def __init__(self) -> None:
        self.times = [0.0] * _EVENTS
        self.received = 0
        self.done = asyncio.Event()


class Reader(asyncio.BufferedProtocol):
    """One watch, which counts line ends and discards the data.

    Args:
        arrivals: of all watches.
        buffer: shared by all watches, because no data stays in it.
        request: the HTTP request.
    """

    def __init__(self, arrivals: Arrivals, buffer: bytearray, request: bytes) -> None:
        self._arrivals, self._buffer, self._request = arrivals, buffer, request
        self._events = 0
        self._in_line = False
        self.opened = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self.opened.done():
            assert self._buffer.startswith(b"HTTP/1.1 200"), bytes(self._buffer[:200])
            self.opened.set_result(None)
        count = self._buffer.count(_END, 0, nbytes) + (self._in_line and self._buffer[0] == 10)
        self._in_line = self._buffer[nbytes - 1] == 125
        if not count:
            return
        now, arrivals = perf_counter(), self._arrivals
        arrivals.times[self._events : self._events + count] = [now] * count
        self._events += count
        arrivals.received += count
        if arrivals.received == _EVENTS * _WATCHES:
            arrivals.done.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionResetError())


async def measure(url: str, query: str = "") -> Figures:
    """Measure the server under the load of all watches."""
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    open_one = partial(asyncio.get_running_loop().create_connection, host=address.hostname, port=address.port)
    arrivals, buffer = Arrivals(), bytearray(1 << 20)
    async with aiohttp.ClientSession() as session:
        facts = (await _get(session, f"{url}/api/v1/namespaces/default/configmaps/server"))["data"]
        server = Process(int(facts["pid"]))
        begin = perf_counter()
        async with session.get(f"{url}/api/v1/pods") as response:
            async for _ in response.content.iter_any():
                pass
        list_seconds = perf_counter() - begin
        page = await _get(session, f"{url}/api/v1/pods?limit=1000")
        pods = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in page["items"]]
        version = (await _get(session, f"{url}/api/v1/pods?limit=1"))["metadata"]["resourceVersion"]

        before_kib = server.kib
        # Without bookmarks, each line is a change.
        path = f"/api/v1/pods?watch=true&resourceVersion={version}{query}"
        request = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: application/json\r\n\r\n".encode()
        transports = []
        for _ in range(_WATCHES // _AT_ONCE):
            made = await asyncio.gather(
                *(open_one(partial(Reader, arrivals, buffer, request)) for _ in range(_AT_ONCE))
            )
            await asyncio.gather(*(reader.opened for _, reader in made))
            transports += [transport for transport, _ in made]
        await asyncio.sleep(1)
        watch_kib = (server.kib - before_kib) / _WATCHES

        cpu, own_cpu, begin = server.cpu, Process(os.getpid()).cpu, perf_counter()
        due = await _write(session, url, pods)
        try:
            async with asyncio.timeout(_SECONDS):
                await arrivals.done.wait()
        except TimeoutError:
            print(f"  {arrivals.received} of {_EVENTS * _WATCHES} events arrived", flush=True)
        wall = perf_counter() - begin
        cpu, own_cpu = server.cpu - cpu, Process(os.getpid()).cpu - own_cpu
        sending_kib = (server.kib - before_kib) / _WATCHES
        for transport in transports:
            transport.abort()
    late = [(had - due_time) * 1000 for had, due_time in zip(arrivals.times, due, strict=True) if had]
    return {
        "events_per_second": arrivals.received / wall,
        "events_lost": _EVENTS * _WATCHES - arrivals.received,
        "latency_ms_p50": quantile(late, 0.5),
        "latency_ms_p99": quantile(late, 0.99),
        "latency_ms_max": quantile(late, 1.0),
        "server_cpu_share": cpu / wall,
        "reader_cpu_share": own_cpu / wall,
        "kib_per_watch": watch_kib,
        "kib_per_busy_watch": sending_kib,
        "populate_cpu_seconds": float(facts["populate_cpu_seconds"]),
        "whole_list_seconds": list_seconds,
    }


async def _get(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(url) as response:
        return await response.json()


async def _write(session: aiohttp.ClientSession, url: str, pods: list[tuple[str, str]]) -> list[float]:
    """Patch one pod at each time that is due, and return these times."""
    headers = {"Content-Type": "application/merge-patch+json"}
    begin = perf_counter()
    due_times = [begin + number / _RATE for number in range(_EVENTS)]
    for number, due_time in enumerate(due_times):
        await asyncio.sleep(max(0.0, due_time - perf_counter()))
        namespace, name = pods[number % len(pods)]
        body = json.dumps({"metadata": {"annotations": {"change": f"{begin}-{number}"}}})
        where = f"{url}/api/v1/namespaces/{namespace}/pods/{name}"
        async with session.patch(where, data=body, headers=headers, raise_for_status=True) as response:
            await response.read()
    return due_times


QUESTION = Question(
    "server_scale",
    "Does the API server for tests send 50 changes per second to each of 1,000 watches, with 50,000 pods, on one core?",
    {"1,000 watches": measure},
    Offer(pods=_PODS, events=_EVENTS, program="api_server.py"),
    requirements=[
        Requirement("lost events", "1,000 watches", "events_lost", 0),
        Requirement("delay until the last watch, p99, ms", "1,000 watches", "latency_ms_p99", 100.0),
        Requirement("the server's share of its core", "1,000 watches", "server_cpu_share", 1.0),
        Requirement("loading 50,000 pods, CPU s", "1,000 watches", "populate_cpu_seconds", 10.0),
    ],
    rounds=3,
    seconds=110.0,
    notes=[
        "The server process excludes the pods from garbage collection (`gc.freeze`). Without that, as in a process "
        "that also does other work, a full collection blocks the server for 0.2 s, which is then the p99."
    ],
)

if __name__ == "__main__":
    run(QUESTION)
