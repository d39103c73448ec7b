"""The process of one side of `pair.py`: it does a number of units of work for each line on stdin.

    python benchmarks/pair_client.py lone|flood|list|empty|write URL

The first line on stdout is the file of the measured package. Each line on stdin is a number of units: events, lists or
runs. It is answered by `ready`, and once the work is done by the CPU seconds that the process has used for it. The
process ends at the end of stdin.

The program uses only names that many commits have, because it is the same for both.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from time import process_time
from typing import Any, TypeAlias

import aioinformer
from aioinformer import HttpTransport, ListWatch, SharedIndexInformer
from aioinformer.controller import Manager, Request, apply_set
from aioinformer.models import core_v1

#: The number of objects that the controller runs for.
_KEYS = 200
#: Seconds without a run after which the events of all writes have arrived.
_QUIET = 0.3

#: Does a number of units of work, after it has called the function, and returns its CPU seconds.
Work: TypeAlias = Callable[[int, Callable[[], None]], Awaitable[float]]


class Goal:
    """Counts calls up to a number."""

    def __init__(self) -> None:
        self._left = 0
        self._done = asyncio.Event()

    def begin(self, number: int) -> None:
        self._left = number
        self._done.clear()

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._done.set()

    async def wait(self) -> None:
        async with asyncio.timeout(600):
            await self._done.wait()


async def events(url: str, stack: AsyncExitStack) -> Work:
    """Run an informer whose handler counts updates. The server sends them once `ready` is written."""
    goal = Goal()

    async def on_update(old: Any, new: Any) -> None:
        goal.count()

    async def work(number: int, ready: Callable[[], None]) -> float:
        goal.begin(number)
        begin = process_time()
        ready()
        await goal.wait()
        return process_time() - begin

    transport = await stack.enter_async_context(HttpTransport(url))
    informer = SharedIndexInformer(ListWatch(transport, core_v1.PODS))
    registration = informer.add_event_handler(on_update=on_update)
    await stack.enter_async_context(informer)
    await registration.wait_for_sync()
    return work


async def lists(url: str, stack: AsyncExitStack) -> Work:
    """Start informers one after the other, and stop each once its handler has seen all objects."""
    transport = await stack.enter_async_context(HttpTransport(url))

    async def on_add(obj: Any) -> None: ...

    async def work(number: int, ready: Callable[[], None]) -> float:
        ready()
        cpu = 0.0
        for _ in range(number):
            begin = process_time()
            informer = SharedIndexInformer(ListWatch(transport, core_v1.PODS))
            registration = informer.add_event_handler(on_add=on_add)
            async with informer:
                await registration.wait_for_sync()
                cpu += process_time() - begin
        return cpu

    return work


async def runs(url: str, stack: AsyncExitStack, *, writes: bool) -> Work:
    """Run a controller for objects that are enqueued again and again. A write changes an owned object."""
    goal = Goal()
    values = count()
    value = ""
    total = 0
    manager = Manager("pair", client=url)

    @manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS])
    async def maps(request: Request[Any]) -> None:
        nonlocal total
        total += 1
        if value and writes:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name}}
            secret["stringData"] = {"value": value}
            await apply_set(request, [secret], resources=[core_v1.SECRETS])
        goal.count()

    async def become_quiet() -> None:
        before = -1
        while before != total:
            before = total
            await asyncio.sleep(_QUIET)

    async def work(number: int, ready: Callable[[], None]) -> float:
        nonlocal value
        ready()
        begin = process_time()
        for at in range(0, number, _KEYS):
            value = f"{os.getpid()} {next(values)}"
            part = min(_KEYS, number - at)
            goal.begin(part)
            for index in range(part):
                manager.enqueue(maps, f"default/map-{index}")
            await goal.wait()
        if writes:
            await become_quiet()
        return process_time() - begin

    goal.begin(_KEYS)
    await stack.enter_async_context(manager)
    await goal.wait()
    await become_quiet()
    return work


PATHS: dict[str, Callable[[str, AsyncExitStack], Awaitable[Work]]] = {
    "lone": events,
    "flood": events,
    "list": lists,
    "empty": lambda url, stack: runs(url, stack, writes=False),
    "write": lambda url, stack: runs(url, stack, writes=True),
}


def _say(line: str) -> None:
    print(line, flush=True)


async def main(path: str, url: str) -> None:
    async with AsyncExitStack() as stack:
        work = await PATHS[path](url, stack)
        _say(str(aioinformer.__file__))
        while line := await asyncio.to_thread(sys.stdin.readline):
            cpu = await work(int(line), lambda: _say("ready"))
            _say(str(cpu))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
