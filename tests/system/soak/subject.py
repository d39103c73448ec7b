"""The measured process: informers of one collection in all variants.

It reads commands from its standard input, one JSON object on each line, and answers each with one JSON object:

- `{"do": "sample"}`: return the census while the informers run;
- `{"do": "settle", "truth": {key: [uid, version]}}`: wait until caches and handlers match the server, remove temporary
  handlers and informers, and return the census at rest;
- `{"do": "stop"}`: stop all informers, and return what is left.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aioinformer import ListWatch, Resource, RunOptions, SharedIndexInformer, connect, meta_namespace_key_func
from aioinformer.backoff import BackoffOptions
from aioinformer.handlers import ThreadedHandler
from aioinformer.models import core_v1
from tests.support.witness import Witness, incarnation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.handlers import HandlerRegistration


_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
_OPEN_FILES = Path("/proc/self/fd")


def census() -> dict[str, Any]:
    """Return resident memory, tasks, open files, sockets, threads, objects of the garbage collector, and CPU time."""
    gc.collect()
    times = os.times()
    links = [_target(each) for each in list(_OPEN_FILES.iterdir())]
    return {
        "rss_kib": int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KIB,
        "tasks": len(asyncio.all_tasks()),
        "files": len([link for link in links if link]),
        "sockets": sockets(),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "cpu_seconds": round(times.user + times.system, 2),
    }


def sockets() -> int:
    """Return the number of open sockets."""
    return sum(_target(each).startswith("socket:") for each in list(_OPEN_FILES.iterdir()))


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # the descriptor that was used to read the folder
        return ""


NAMESPACE = "soak"
#: How long caches and handlers may take to match the server, in seconds.
_PATIENCE = 120.0
#: How long idle connections may stay open, in seconds.
_KEPT_ALIVE = 40.0
#: Seconds between two temporary informers.
_VISIT = 4.0

_QUICK = BackoffOptions(cap=5.0)
STREAMS = RunOptions(backoff=_QUICK, min_watch_timeout=45.0, idle_timeout=30.0)
PAGES = RunOptions(backoff=_QUICK, min_watch_timeout=45.0, idle_timeout=20.0, streaming_list=False, page_size=40)

#: Every queue, every storage tier, both kinds of list, with default and with short times.
FORMS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "in order": {"options": replace(STREAMS, queue="in_order")},
    "in pages": {"options": PAGES},
    "in order, in pages": {"options": replace(PAGES, queue="in_order"), "indexers": {"by-value": "data.kind"}},
    "stripped": {"storage": "stripped", "options": STREAMS},
    "compressed": {"storage": "compressed", "options": replace(PAGES, queue="in_order")},
    "projection": {"storage": "projection", "fields": ["data.kind"], "options": STREAMS},
    "metadata": {"storage": "metadata", "options": STREAMS},
    "dict": {"storage": "dict", "options": PAGES},
}


class SlowWitness(Witness):
    """Sleeps for a moment in each notification."""

    async def on_add(self, obj: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0.002)
        super().on_add(obj)

    async def on_update(self, old: Any, new: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0.002)
        super().on_update(old, new)


class RepeatedWitness(Witness):
    """Ignores updates of resyncs."""

    def on_update(self, old: Any, new: Any) -> None:
        if incarnation(old) != incarnation(new):
            super().on_update(old, new)


class RaisingWitness(Witness):
    """Raises in every tenth update, after recording it."""

    def __init__(self) -> None:
        super().__init__()
        self._updates = count(1)

    def on_update(self, old: Any, new: Any) -> None:
        super().on_update(old, new)
        if next(self._updates) % 10 == 0:
            raise RuntimeError("every tenth update fails")


class Subject:
    """Informers, their handlers, and temporary handlers and informers. An async context manager."""

    def __init__(self, kubeconfig: str, seed: int) -> None:
        self._kubeconfig = kubeconfig
        self._random = Random(seed)
        self._informers: dict[str, SharedIndexInformer[Any]] = {}
        self._witnesses: dict[str, Witness] = {}
        self._joiners: list[tuple[SharedIndexInformer[Any], HandlerRegistration[Any], Witness]] = []
        self._visiting = asyncio.Lock()
        self._visits = 0
        self._states = 0
        self._unhandled: list[str] = []
        self._sockets = 0

    async def __aenter__(self) -> Subject:
        self._sockets = sockets()
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: self._unhandled.append(str(context.get("exception") or context["message"]))
        )
        async with AsyncExitStack() as stack:
            threads = stack.enter_context(ThreadPoolExecutor(1, "threaded witness"))
            self._connection = await connect(kubeconfig=self._kubeconfig)
            stack.push_async_callback(self._connection.aclose)
            for name, options in FORMS.items():
                informer = self._informers[name] = self._informer(name, **options)
                informer.add_state_handler(self._saw_state)
                self._witness(name, "", Witness())
            self._witness("as it comes", "slow", SlowWitness())
            self._witness("stripped", "repeated", RepeatedWitness(), resync_period=15.0)
            self._witness("in order", "raising", RaisingWitness())
            self._witness("in pages", "in a thread", witness := Witness(), ThreadedHandler(witness, threads))
            for informer in self._informers.values():
                await stack.enter_async_context(informer)
            self._visitors = asyncio.create_task(self._visit_for_ever(), name="soak: visitors")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._visitors.cancel()
        await asyncio.gather(self._visitors, return_exceptions=True)
        await self._stack.aclose()

    def sample(self) -> dict[str, Any]:
        """Return the census while the informers run."""
        figures = census()
        figures["sockets"] -= self._sockets
        return {**figures, "state_changes": self._states, "visits": self._visits}

    async def settle(self, there: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
        """Wait until caches and handlers match the server, then for rest; return the census and any differences."""
        async with self._visiting:
            begin = asyncio.get_running_loop().time()
            took: float | None = None
            while (passed := asyncio.get_running_loop().time() - begin) < _PATIENCE:
                if not self._differences(there):
                    took = round(passed, 2)
                    break
                await asyncio.sleep(0.05)
            differences = self._differences(there)
            for informer, registration, _ in self._joiners:
                informer.remove_event_handler(registration)
            self._joiners.clear()
            for _ in range(int(_KEPT_ALIVE)):
                await asyncio.sleep(1)
                if sockets() - self._sockets <= len(FORMS):
                    break
            return {**self.sample(), "settled_after": took, "differences": differences, "lies": self.lies()}

    def lies(self) -> list[str]:
        """Return inconsistent notifications and unhandled exceptions."""
        violations = [f"{name}: {each}" for name, witness in self._witnesses.items() for each in witness.violations]
        return violations + self._unhandled

    def _differences(self, there: Mapping[str, tuple[str, str]]) -> list[str]:
        different = [f"{name}: the cache" for name, informer in self._informers.items() if _cached(informer) != there]
        witnesses = [*self._witnesses.items(), *(("late joiner", witness) for *_, witness in self._joiners)]
        return different + [f"{name}: the notifications" for name, witness in witnesses if witness.present != there]

    def _informer(self, name: str, **options: Any) -> SharedIndexInformer[Any]:
        resource: Resource[Any] = core_v1.CONFIG_MAPS
        source = ListWatch(self._connection.transport, resource, NAMESPACE)
        return SharedIndexInformer(source, name=f"soak: {name}", **options)

    def _witness(self, name: str, kind: str, witness: Witness, handler: Any = None, **options: Any) -> None:
        self._witnesses[f"{name}, {kind}".strip(", ")] = witness
        self._informers[name].add_event_handler(handler or witness, **options)

    async def _visit_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_VISIT)
            async with self._visiting:
                await self._visit()
                self._visits += 1

    async def _visit(self) -> None:
        """Add a handler until the next rest, and run another informer for a moment, synced or not."""
        informer = self._random.choice(list(self._informers.values()))
        witness = Witness()
        self._joiners.append((informer, informer.add_event_handler(witness), witness))
        name = self._random.choice(list(FORMS))
        async with self._informer(f"visitor, {name}", **FORMS[name]) as visitor:
            visitor.add_event_handler(Witness())
            await asyncio.sleep(self._random.random() * 0.5)

    def _saw_state(self, state: object) -> None:
        self._states += 1


def _cached(informer: SharedIndexInformer[Any]) -> Mapping[str, tuple[str, str]]:
    return {meta_namespace_key_func(obj): incarnation(obj) for obj in informer.get_store().list()}


async def run_commands(kubeconfig: str, seed: int) -> None:
    """Run the commands of the standard input until `stop` or its end."""
    orders = asyncio.StreamReader(limit=16 * 1024 * 1024)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    subject = Subject(kubeconfig, seed)
    async with subject:
        while line := await orders.readline():
            order = json.loads(line)
            if order["do"] == "stop":
                break
            if order["do"] == "settle":
                answer = await subject.settle({key: tuple(version) for key, version in order["truth"].items()})
            else:
                answer = subject.sample()
            print(json.dumps(answer), flush=True)
    for _ in range(10):
        await asyncio.sleep(0)
    left = sorted(task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task())
    print(json.dumps({**subject.sample(), "tasks_left": left, "lies": subject.lies()}), flush=True)
    pipe.close()


if __name__ == "__main__":
    logging.getLogger("aioinformer").addHandler(logging.NullHandler())
    logging.getLogger("aioinformer").propagate = False
    asyncio.run(run_commands(sys.argv[1], int(sys.argv[2])))
