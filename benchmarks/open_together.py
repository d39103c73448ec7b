"""Measure the memory of 300 TLS watches that open together, and open again whenever the server breaks all connections.

The figures are the growth of resident memory since a first watch was open. Memory that the allocator keeps counts.
As a program with a commit and a URL, this measures an earlier commit.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp
from commits import package_at
from harness import Question, Requirement, run
from servers import HERE, client_environment, server_environment

if TYPE_CHECKING:
    from harness import Figures

_WATCHES, _DROPS = 300, 3
_BEFORE = "de09eb1c"


class DroppingServer:
    """The server of `dropping_server.py`, as a context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="dropping-server-")
        self._authority = os.path.join(self._folder.name, "ca.crt")
        self.environment = {**client_environment(), "SSL_CERT_FILE": self._authority}

    def __enter__(self) -> str:
        command = [sys.executable, str(HERE / "dropping_server.py"), self._authority]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=server_environment())
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._folder.cleanup()


def _rss_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measure_informers(url: str) -> Figures:
    """Measure informers that share a transport."""
    from clients import pods_informer

    from aioinformer import HttpTransport

    async def on_update(old: Any, new: Any) -> None: ...

    async def wait_for(count: int) -> None:
        async with asyncio.timeout(120):
            while True:
                async with session.get(f"{url}/watches") as response:
                    if await response.json() == count:
                        break
                await asyncio.sleep(0.2)
        await asyncio.sleep(1)

    async with aiohttp.ClientSession() as session, AsyncExitStack() as stack:
        transport = await stack.enter_async_context(HttpTransport(url))
        informers = [pods_informer(transport, first=number) for number in range(_WATCHES + 1)]
        for informer in informers:
            informer.add_event_handler(on_update=on_update)
        await stack.enter_async_context(informers[0])  # creates what is created once
        await wait_for(1)
        before = _rss_mib()
        for informer in informers[1:]:
            await stack.enter_async_context(informer)
        await wait_for(_WATCHES + 1)
        opened = _rss_mib() - before
        for _ in range(_DROPS):
            async with session.post(f"{url}/drop"):
                pass
            await wait_for(_WATCHES + 1)
        return {"opened_mib": opened, "reopened_mib": _rss_mib() - before}


_NOW, _THEN = f"{_WATCHES} informers", f"{_WATCHES} informers, all handshakes at once"
QUESTION = Question(
    "open_together",
    f"How much memory do {_WATCHES} TLS watches take that open together?",
    {_NOW: measure_informers, _THEN: [sys.executable, __file__, _BEFORE, "URL"]},
    requirements=[
        Requirement("MiB after all have opened", _NOW, "opened_mib", 30.0),
        Requirement(f"MiB after the server broke all connections {_DROPS} times", _NOW, "reopened_mib", 30.0),
    ],
    rounds=3,
    seconds=180.0,
    serve=DroppingServer(),
)

if __name__ == "__main__":
    if sys.argv[1:2] == [_BEFORE]:
        folder = package_at(_BEFORE)
        sys.path[:0] = [str(folder / "benchmarks"), str(folder)]
        print(json.dumps(asyncio.run(measure_informers(sys.argv[2]))))
    else:
        run(QUESTION)
