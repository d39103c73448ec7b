"""What metrics, the debug page and `max_staleness` cost while nothing reads them, in bytecodes of the manager's thread.

The server runs in a thread of its own, so that nothing of it counts. The connection is one of TLS, as those of users.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import asynccontextmanager
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

import aioinformer
from aioinformer import HttpTransport
from aioinformer.controller import Manager, Request
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.testing import ApiServer
from tests.system.budget.counter import Counter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import FrameType

OBJECTS, LONE = 500, 100
LIMIT = 1.03
PACKAGE = str(Path(aioinformer.__file__).parent)


class OwnCounter(Counter):
    """Counts the bytecodes of this package apart, as `own`: those of the event loop differ from run to run."""

    def __init__(self, *, bytecodes: bool = True) -> None:
        super().__init__(bytecodes=bytecodes)
        self.own = 0

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        trace = super()._trace(frame, event, argument)
        if trace is not None and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            return self._trace_own
        return trace

    def _trace_own(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.bytecodes += 1
            self.own += 1
        return self._trace_own


class Elsewhere:
    """A server with config maps that runs in another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._version = 0
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    async def _serve(self) -> None:
        async with ApiServer(tls=True) as self._server:
            for number in range(OBJECTS):
                self._server.create("configmaps", {"metadata": {"name": f"cm-{number}", "namespace": "default"}})
            self._ready.set()
            await self._ended.wait()

    def __enter__(self) -> Elsewhere:
        self._thread.start()
        self._ready.wait()
        self.url = self._server.url
        self.trusting = ssl.create_default_context(cadata=self._server.certificate_authority.decode())
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def change(self, *numbers: int) -> None:
        self._version += 1
        change = {"data": {"version": str(self._version)}}
        for number in numbers:
            self._loop.call_soon_threadsafe(self._server.patch, "configmaps", f"cm-{number}", change, "default")


class Subject:
    """A manager whose reconciler does nothing, and how many runs are awaited."""

    def __init__(self, server: Elsewhere, *, observed: bool, counted: bool) -> None:
        self._server = server
        self._observed = observed
        self._counted = counted
        self._left, self._told = 0, asyncio.Event()

    async def reconcile(self, request: Request[Any]) -> None:
        self._left -= 1
        if not self._left:
            self._told.set()

    def counter(self) -> OwnCounter:
        return OwnCounter(bytecodes=self._counted)

    async def runs(self, count: int, begin: Callable[[], object]) -> None:
        self._left = count
        self._told.clear()
        begin()
        await self._told.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[Manager, Any, OwnCounter]]:
        """Run it, and yield it with what its first list took."""
        options: dict[str, Any] = {}
        if self._observed:
            options = {"metrics": PrometheusMetrics(CollectorRegistry()), "max_staleness": 60.0}
        async with HttpTransport(self._server.url, ssl=self._server.trusting) as transport:
            manager = Manager("observed", client=transport, **options)
            if self._observed:
                manager.debug_app()
            controller = manager.controller(core_v1.CONFIG_MAPS)(self.reconcile)
            tasks: list[asyncio.Task[None]] = []
            with self.counter() as counter:
                await self.runs(OBJECTS, lambda: tasks.append(asyncio.create_task(manager.run(signals=False))))
            try:
                yield manager, controller, counter
            finally:
                tasks[0].cancel()
                await asyncio.wait(tasks)


async def measured(server: Elsewhere, *, observed: bool, counted: bool = True) -> dict[str, OwnCounter]:
    subject = Subject(server, observed=observed, counted=counted)
    async with subject.running() as (manager, controller, first):
        await subject.runs(OBJECTS, lambda: server.change(*range(OBJECTS)))
        with subject.counter() as flood:
            await subject.runs(OBJECTS, lambda: server.change(*range(OBJECTS)))
        with subject.counter() as lone:
            for number in range(LONE):
                await subject.runs(1, lambda number=number: server.change(number))  # type: ignore[misc]

        def enqueue() -> None:
            for number in range(OBJECTS):
                manager.enqueue(controller, f"default/cm-{number}")

        with subject.counter() as run:
            await subject.runs(OBJECTS, enqueue)
    return {"an object of the first list": first, "an event of a flood": flood, "a lone event": lone, "a run": run}


@pytest.fixture
def server() -> Iterator[Elsewhere]:
    with Elsewhere() as server:
        yield server


async def test_metrics_page_and_staleness_cost_little_while_nothing_reads_them(server: Elsewhere) -> None:
    found: dict[bool, list[dict[str, OwnCounter]]] = {False: [], True: []}
    await measured(server, observed=True, counted=False)  # imports, and what is computed once
    for _ in range(2):
        for mode, rounds in found.items():
            rounds.append(await measured(server, observed=mode))
    ratios = {}
    for what in found[False][0]:
        plain, observed = (min((each[what] for each in rounds), key=attrgetter("own")) for rounds in found.values())
        ratios[what] = round(1 + (observed.own - plain.own) / plain.bytecodes, 4)
    assert {what: ratio for what, ratio in ratios.items() if ratio > LIMIT} == {}, ratios
