"""Measure what 300 informers cost on a quiet cluster, over TLS: CPU time, memory and tasks.

Each informer watches with a selector of its own, which selects nothing, by a connection of its own, with one handler.
The share of a core is measured while the server sends nothing. Bookmarks and reopened watches are measured apart, and
the total is that of one bookmark a minute for each watch, and of a watch that the server ends after 5 to 10 minutes,
as API servers do. The floor opens the same watches by aiohttp, and does nothing else. Both are measured without TLS,
too: OpenSSL needs about as much memory for a connection as all else, and the floor has a buffer for each.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import aiohttp
import floor
from clients import PODS, rss_kib
from harness import Offer, Question, Requirement, run

from aioinformer import HttpTransport, ListWatch, SharedIndexInformer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness import Figures

_WATCHES = 300
_SETTLE, _QUIET = 2.0, 15.0
_BOOKMARKS = 5
#: Seconds between bookmarks, and between the reopenings of a watch.
_BOOKMARK_EVERY, _REOPEN_EVERY = 60.0, 450.0


class Cluster:
    """The other side of the watches: what the load server is to do."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def plaintext(self) -> str:
        """Return the URL of the same server without TLS."""
        async with self._session.get(f"{self._url}/plaintext") as response:
            return str(await response.json())

    async def post(self, what: str) -> None:
        """Send a command to the server."""
        async with self._session.post(f"{self._url}/{what}"):
            pass

    async def wait_for_watches(self) -> None:
        """Wait until all watches are open."""
        async with asyncio.timeout(120):
            while True:
                async with self._session.get(f"{self._url}/watches") as response:
                    if await response.json() == _WATCHES:
                        return
                await asyncio.sleep(0.2)


async def _cpu_of(work: Callable[[], Awaitable[None]]) -> float:
    begin = process_time()
    await work()
    return process_time() - begin


async def figures(cluster: Cluster, before_kib: float, before_tasks: int, *, reopens: bool) -> Figures:
    """Return the figures of open watches."""
    await asyncio.sleep(_SETTLE)
    found = {
        "kib_per_informer": (rss_kib() - before_kib) / _WATCHES,
        "tasks_per_informer": (len(asyncio.all_tasks()) - before_tasks) / _WATCHES,
    }
    wall, cpu = perf_counter(), process_time()
    await asyncio.sleep(_QUIET)
    quiet = (process_time() - cpu) / (perf_counter() - wall)

    async def bookmarks() -> None:
        for _ in range(_BOOKMARKS):
            await cluster.post("bookmark")
            await asyncio.sleep(1)

    async def reopen() -> None:
        await cluster.post("end")
        await asyncio.sleep(1)
        await cluster.wait_for_watches()

    of_bookmark = await _cpu_of(bookmarks) / (_BOOKMARKS * _WATCHES)
    found |= {"quiet_core_percent": quiet * 100, "bookmark_us": of_bookmark * 1e6}
    if not reopens:
        return found
    of_reopening = await _cpu_of(reopen) / _WATCHES
    total = quiet + _WATCHES * (of_bookmark / _BOOKMARK_EVERY + of_reopening / _REOPEN_EVERY)
    return found | {"reopening_us": of_reopening * 1e6, "total_core_percent": total * 100}


async def measure_floor(url: str, *, tls: bool = True) -> Figures:
    """Measure the floor, which does not open watches again."""

    async def handler(raw: bytes) -> None: ...

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        cluster = Cluster(session, url)
        url_of_watches = await cluster.plaintext()
        if tls:
            url_of_watches = url
        before, tasks = rss_kib(), len(asyncio.all_tasks())
        watches = [
            asyncio.create_task(
                floor.watch(
                    session, url_of_watches, f"sendInitialEvents=true&labelSelector=none%3D{number}", {}, handler
                )
            )
            for number in range(_WATCHES)
        ]
        await cluster.wait_for_watches()
        found = await figures(cluster, before, tasks, reopens=False)
        for watch in watches:
            watch.cancel()
        await asyncio.wait(watches)
    return found


async def measure_informers(url: str, *, tls: bool = True) -> Figures:
    """Measure the informers, which share a transport."""

    async def on_update(old: Any, new: Any) -> None: ...

    def informer(transport: HttpTransport, number: int) -> SharedIndexInformer[Any]:
        made = SharedIndexInformer(ListWatch(transport, PODS, label_selector=f"none={number}"))
        made.add_event_handler(on_update=on_update)
        return made

    async with aiohttp.ClientSession() as session, AsyncExitStack() as stack:
        cluster = Cluster(session, url)
        plaintext = await cluster.plaintext()
        transport = await stack.enter_async_context(HttpTransport(url if tls else plaintext))
        async with informer(transport, _WATCHES) as first:  # creates what is created once
            await first.wait_for_sync()
        before, tasks = rss_kib(), len(asyncio.all_tasks())
        for number in range(_WATCHES):
            await stack.enter_async_context(informer(transport, number))
        await cluster.wait_for_watches()
        return await figures(cluster, before, tasks, reopens=True)


_FLOOR, _ONE = f"floor, {_WATCHES} watches", f"{_WATCHES} informers"
_PLAIN = f"{_ONE}, plaintext"
QUESTION = Question(
    "idle",
    f"What do {_WATCHES} informers cost on a quiet cluster?",
    {
        _FLOOR: measure_floor,
        _ONE: measure_informers,
        f"{_FLOOR}, plaintext": partial(measure_floor, tls=False),
        _PLAIN: partial(measure_informers, tls=False),
    },
    Offer(pods=100, events=0, event_by_event=True),
    requirements=[
        Requirement("quiet: percent of a core, all together", _ONE, "quiet_core_percent", 0.2),
        Requirement("KiB per informer, with connection and one handler, plaintext", _PLAIN, "kib_per_informer", 45.0),
        Requirement(
            "KiB per informer with one handler over TLS, ratio to a connection of aiohttp alone",
            _ONE,
            "kib_per_informer",
            0.5,
            _FLOOR,
        ),
        Requirement("tasks per informer", _ONE, "tasks_per_informer", 5.0),
    ],
    rounds=2,
    seconds=240.0,
    notes=[
        "asyncio's `SSLProtocol` has a read buffer of 256 KiB for each TLS connection, which is filled with zeros when "
        "it is created. That is most of the memory of the floor over TLS. Connections of informers share one."
    ],
)

if __name__ == "__main__":
    run(QUESTION)
