"""Measure what the debug page costs while one reader has it open: 200 informers with controllers, and 20,000 keys.

    python benchmarks/page_open.py

The reader is another process, which follows the events of the page and asks for the page of one key every two seconds,
as a browser does. The percentages are CPU time of the process with the controllers, before that and meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from time import process_time
from typing import TYPE_CHECKING, Any

import aiohttp
from harness import Question, Requirement, run
from many_controllers import RunningServer

from aioinformer import HttpTransport, Resource
from aioinformer.controller import Manager

if TYPE_CHECKING:
    from harness import Figures

    from aioinformer.controller import Request

_KINDS, _OBJECTS, _SECONDS = 200, 20_000, 20.0
_KEY = "api/key?controller=w0&key=default/w0of200-00001"


async def read(url: str) -> None:
    """Read the page until the process is ended."""

    async def follow(session: aiohttp.ClientSession) -> None:
        async with session.get(f"{url}api/events", timeout=aiohttp.ClientTimeout(total=None)) as response:
            async for _ in response.content.iter_any():
                pass

    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as tasks:
        tasks.create_task(follow(session))
        while True:
            async with session.get(f"{url}{_KEY}") as response:
                body = await response.text()
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {body}")
            await asyncio.sleep(2)


async def measure(url: str) -> Figures:
    """Measure a manager without and with a reader of its page."""
    left, started = _OBJECTS, asyncio.Event()

    async def reconcile(request: Request[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            started.set()

    async def percent() -> float:
        cpu = process_time()
        await asyncio.sleep(_SECONDS)
        return (process_time() - cpu) / _SECONDS * 100

    async with HttpTransport(url) as transport:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        manager = Manager("many", client=transport, debug_port=port)
        for kind in range(_KINDS):
            resource: Resource[Any] = Resource("example.com", "v1", f"w{kind}of{_KINDS}", kind="Widget")
            manager.controller(resource, name=f"w{kind}")(reconcile)
        async with manager:
            await started.wait()
            await asyncio.sleep(2)
            closed = await percent()
            page = f"http://127.0.0.1:{port}/"
            reader = await asyncio.create_subprocess_exec(sys.executable, __file__, "--read", page)
            await asyncio.sleep(3)
            opened = await percent()
            if reader.returncode is not None:
                raise RuntimeError("the reader has ended")
            reader.terminate()
            await reader.wait()
    return {"closed_percent": closed, "open_percent": opened, "page_percent": opened - closed}


QUESTION = Question(
    "page_open",
    "What does the debug page cost while it is open?",
    {"200 controllers": measure},
    requirements=[Requirement("the open page, percent of a core", "200 controllers", "page_percent", 2.0)],
    rounds=3,
    seconds=400.0,
    serve=RunningServer(),
)

if __name__ == "__main__":
    if "--read" in sys.argv:
        asyncio.run(read(sys.argv[-1]))
    else:
        run(QUESTION)
