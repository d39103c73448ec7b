"""The process of one side of `pair.py`: it does a number of units of work for each line on stdin.

    python benchmarks/pair_client.py lone|flood|list|empty|unchanged|write URL

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

import msgspec

import aioinformer
from aioinformer import Condition, HttpTransport, ListWatch, Resource, SharedIndexInformer
from aioinformer.controller import Manager, Request, apply_set, finalizing, set_status
from aioinformer.models import ObjectMeta, core_v1

#: The number of objects that the controller runs for.
_KEYS = 200
#: Of the server's Widgets.
_CHILDREN = 2
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


class Spec(msgspec.Struct, frozen=True):
    size: int


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


_WIDGETS = Resource("example.com", "v1", "widgets", "Widget", decoder=Widget)


class Keys:
    """A controller whose objects are enqueued again and again.

    Attributes:
        goal: counts its runs.
        value: a new one for each run of all objects; "" before the first.
    """

    def __init__(self, url: str) -> None:
        self.goal = Goal()
        self.value = ""
        self.manager = Manager("pair", client=url)
        self._values = count()
        self._total = 0

    def note(self) -> None:
        self._total += 1
        self.goal.count()

    async def become_quiet(self) -> None:
        before = -1
        while before != self._total:
            before = self._total
            await asyncio.sleep(_QUIET)

    async def begin(self, stack: AsyncExitStack) -> None:
        self.goal.begin(_KEYS)
        await stack.enter_async_context(self.manager)
        await self.goal.wait()
        await self.become_quiet()

    async def run(self, number: int, name: str) -> None:
        """Run so many objects, whose names begin with `name`, and return after the last run."""
        [controller] = self.manager.controllers.values()
        for at in range(0, number, _KEYS):
            self.value = f"{os.getpid()} {next(self._values)}"
            part = min(_KEYS, number - at)
            self.goal.begin(part)
            for index in range(part):
                self.manager.enqueue(controller, f"default/{name}-{index}")
            await self.goal.wait()


async def runs(url: str, stack: AsyncExitStack, *, writes: bool) -> Work:
    """Run a controller that does nothing, or changes an owned object."""
    keys = Keys(url)

    @keys.manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS])
    async def maps(request: Request[Any]) -> None:
        if keys.value and writes:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": request.name}}
            secret["stringData"] = {"value": keys.value}
            await apply_set(request, [secret], resources=[core_v1.SECRETS])
        keys.note()

    async def work(number: int, ready: Callable[[], None]) -> float:
        ready()
        begin = process_time()
        await keys.run(number, "map")
        if writes:
            await keys.become_quiet()
        return process_time() - begin

    await keys.begin(stack)
    return work


async def unchanged(url: str, stack: AsyncExitStack) -> Work:
    """Run a controller whose objects, and their two children, are as they should be."""
    keys = Keys(url)

    @keys.manager.controller(_WIDGETS, owns=[core_v1.SECRETS], workers=4)
    async def widgets(request: Request[Widget]) -> None:
        async with finalizing(request, "example.com/register") as ending:
            assert not ending
            widget = request.object
            assert widget is not None
            children = [
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": f"{request.name}-{number}"},
                    "data": {"colour": "Z3JleQ=="},
                }
                for number in range(widget.spec.size)
            ]
            await apply_set(request, children, resources=[core_v1.SECRETS])
            ready = Condition("Ready", "True", "Applied", f"{len(children)} secrets are there")
            await set_status(request, [ready], size=len(children))
        keys.note()

    async def work(number: int, ready: Callable[[], None]) -> float:
        ready()
        begin = process_time()
        await keys.run(number, "widget")
        return process_time() - begin

    await keys.begin(stack)
    return work


PATHS: dict[str, Callable[[str, AsyncExitStack], Awaitable[Work]]] = {
    "lone": events,
    "flood": events,
    "list": lists,
    "empty": lambda url, stack: runs(url, stack, writes=False),
    "unchanged": unchanged,
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
