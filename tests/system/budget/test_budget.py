"""The cost of an event in counts, which are the same on every machine.

`budget.json` records the number of function calls, bytecodes and remaining memory blocks for an event, from the chunk
to the awaited handler, including its share of the cost of a batch. A change that makes events more expensive must
update it:

    AIOINFORMER_WRITE_BUDGET=1 make test ARGS=tests/system/budget

Write it with the oldest supported Python; later ones need fewer calls and bytecodes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pytest
import yaml

from aioinformer import Condition, HttpTransport, Resource, SharedIndexInformer
from aioinformer.controller import Controller, Manager, apply_set, finalizing, set_status
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from tests.support.managers import CONFIG_MAPS, manager_of, server_with
from tests.support.stream import Stream, added, modified
from tests.system.budget.counter import Counter

if TYPE_CHECKING:
    from aioinformer.controller import Request


BUDGET = Path(__file__).with_name("budget.json")
DEFINITION = Path(__file__).parents[3] / "examples" / "widgets.yaml"
PODS, BATCH, BATCHES = 200, 100, 10
#: Relative; one more call for an event exceeds it.
TOLERANCE = 0.005

Case: TypeAlias = dict[str, Any]
T = TypeVar("T", bound=AbstractContextManager[Any])
CASES: dict[str, Case] = {
    "one handler": {},
    "ten handlers": {"handlers": 10},
    "an index by path": {"indexers": {"node": "spec.nodeName"}},
    "stripped": {"storage": "stripped"},
}


async def _in_batches(case: Case, counter: T, batch: int = BATCH) -> T:
    """Run an informer through some batches of events, and count all but the first."""
    told = asyncio.Event()
    left = 0

    async def on_update(old: Any, new: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            told.set()

    async def silent(old: Any, new: Any) -> None: ...

    pods: Resource[Any] = core_v1.PODS
    stream = Stream(pods)
    options = dict(case)
    handlers = options.pop("handlers", 1)
    informer: SharedIndexInformer[Any] = SharedIndexInformer(stream, **options)
    for _ in range(handlers - 1):
        informer.add_event_handler(on_update=silent)
    registration = informer.add_event_handler(on_update=on_update)
    chunks = [
        b"".join(modified(turn * batch + number, number) for number in range(batch)) for turn in range(BATCHES + 1)
    ]

    async def send(chunk: bytes) -> None:
        nonlocal left
        left = batch
        told.clear()
        stream.feed(chunk)
        await told.wait()

    async with informer:
        stream.feed(added(range(PODS)))
        await registration.wait_for_sync()
        await send(chunks[0])
        with counter:
            for chunk in chunks[1:]:
                await send(chunk)
    return counter


class Blocks:
    """Counts memory blocks that are allocated and not freed."""

    blocks = 0

    def __enter__(self) -> Blocks:
        gc.collect()
        self._before = sys.getallocatedblocks()
        return self

    def __exit__(self, *exc: object) -> None:
        gc.collect()
        self.blocks = sys.getallocatedblocks() - self._before


async def _measured(case: Case) -> dict[str, float]:
    events = BATCH * BATCHES
    calls = await _in_batches(case, Counter(bytecodes=False))
    codes = await _in_batches(case, Counter(bytecodes=True))
    blocks = await _in_batches(case, Blocks())
    return {
        "calls": round(calls.calls / events, 2),
        "bytecodes": round(codes.bytecodes / events, 1),
        "blocks": round(max(0, blocks.blocks) / events, 2),
    }


@pytest.mark.parametrize("name", CASES)
async def test_event_stays_within_its_budget(name: str) -> None:
    _check(name, await _measured(CASES[name]))


async def test_lone_event_stays_within_its_budget() -> None:
    counter = await _in_batches({}, Counter(bytecodes=True), batch=1)
    # The last of the turns is that of the test, which waits for the handler.
    figures = {"calls": counter.calls, "bytecodes": counter.bytecodes, "turns": counter.turns}
    _check("a lone event", {what: round(count / BATCHES, 1) for what, count in figures.items()})


async def test_run_that_changes_nothing_stays_within_its_budget() -> None:
    runs, told = 0, asyncio.Event()

    async def reconcile(request: Request[Any]) -> None:
        nonlocal runs
        runs -= 1
        if not runs:
            told.set()

    names = [f"cm-{number}" for number in range(PODS)]
    controller = Controller("it", CONFIG_MAPS, reconcile)
    runs = PODS
    async with manager_of(server_with(*names), controller) as manager:
        await told.wait()
        with Counter(bytecodes=True) as counter:
            for _ in range(BATCHES):
                runs = PODS
                told.clear()
                for name in names:
                    manager.enqueue(controller, f"default/{name}")
                await told.wait()
    figures = {"calls": counter.calls, "bytecodes": counter.bytecodes}
    _check("a run that changes nothing", {what: round(count / PODS / BATCHES, 1) for what, count in figures.items()})


WIDGETS: Resource[dict[str, Any]] = Resource("example.com", "v1", "widgets", "Widget", subresources=("status",))
WRITES: dict[Any, tuple[str, ...]] = {WIDGETS: ("patch",), CONFIG_MAPS: ("create", "patch", "delete")}


async def test_run_with_helpers_that_changes_nothing_stays_within_its_budget() -> None:
    count, turns = 20, 5
    left, told = count, asyncio.Event()

    async def reconcile(request: Request[Any]) -> None:
        nonlocal left
        async with finalizing(request, "example.com/register") as ending:
            assert not ending
            child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{request.name}-0"}, "data": {}}
            applied = await apply_set(request, [child], resources=[CONFIG_MAPS])
            await set_status(request, [Condition("Ready", "True", "Applied", "it is there")], size=1)
        left -= not applied.sent and request.object is not None and request.object["status"]["size"] == 1
        if not left:
            told.set()

    async with ApiServer() as server, HttpTransport(server.url) as transport:
        server.create("customresourcedefinitions", yaml.safe_load(DEFINITION.read_text()))
        names = [f"widget-{number}" for number in range(count)]
        for name in names:
            metadata = {"name": name, "namespace": "default"}
            body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": 1}}
            server.create("widgets", body)
        manager = Manager("it", client=transport)
        widgets = manager.controller(WIDGETS, owns=[CONFIG_MAPS], writes=WRITES)(reconcile)
        running = asyncio.create_task(manager.run(signals=False))
        await told.wait()  # a further run of each, which nothing else follows
        with Counter(bytecodes=True) as counter:
            for _ in range(turns):
                left = count
                told.clear()
                for name in names:
                    manager.enqueue(widgets, f"default/{name}")
                await told.wait()
        running.cancel()
        await asyncio.wait({running})
    figures = {"calls": counter.calls, "bytecodes": counter.bytecodes}
    _check("helpers that change nothing", {what: round(each / count / turns, 1) for what, each in figures.items()})


def _check(name: str, reached: dict[str, float]) -> None:
    if os.environ.get("AIOINFORMER_WRITE_BUDGET"):
        recorded = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
        BUDGET.write_text(json.dumps(recorded | {name: reached}, indent=2) + "\n")
    budget = json.loads(BUDGET.read_text())[name]
    dearer = {
        what: f"{count:g}, and {budget[what]:g} are allowed"
        for what, count in reached.items()
        if count > budget[what] * (1 + TOLERANCE) + 0.2
    }
    assert not dearer
