"""What an event may cost, counted and not timed: the same on every machine.

`budget.json` records how many Python functions are called, how many bytecodes are run and how many memory blocks stay
for an event, from the chunk to the awaited handler, its share of what a batch costs included. Whoever makes an event
dearer has to say so there:

    AIOINFORMER_WRITE_BUDGET=1 make test ARGS=tests/budget

It is written with the oldest Python that is supported. Later ones call and run less for the same.
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

from aioinformer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.resources.catalog import find
from tests.budget.stream import Stream, added, modified

if TYPE_CHECKING:
    from types import FrameType

BUDGET = Path(__file__).with_name("budget.json")
PODS, BATCH, BATCHES = 200, 100, 10
#: Long enough that no slice ends by the clock: what is counted must not depend on how busy the machine is.
OPTIONS = ReflectorOptions(slice_seconds=100)
#: One call more for an event is more than this.
TOLERANCE = 0.005

Case: TypeAlias = dict[str, Any]
T = TypeVar("T", bound=AbstractContextManager[Any])
CASES: dict[str, Case] = {
    "one handler": {},
    "ten handlers": {"handlers": 10},
    "an index by path": {"indexers": {"node": "spec.nodeName"}},
    "stripped": {"storage": "stripped"},
}


class Counter:
    """Counts calls of Python functions, and bytecodes, while it is on."""

    def __init__(self, *, bytecodes: bool) -> None:
        self.calls = self.bytecodes = 0
        self._bytecodes = bytecodes

    def __enter__(self) -> Counter:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "call":
            self.calls += 1
            frame.f_trace_lines = False
            frame.f_trace_opcodes = self._bytecodes
            return self._trace if self._bytecodes else None
        if event == "opcode":
            self.bytecodes += 1
        return self._trace


async def _in_batches(case: Case, counter: T) -> T:
    """An informer that has synced and seen a batch, through some more batches that are counted."""
    told = asyncio.Event()
    left = 0

    async def on_update(old: Any, new: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            told.set()

    async def silent(old: Any, new: Any) -> None: ...

    pods = find("", "v1", "pods")
    assert pods is not None
    stream = Stream(pods)
    options = dict(case)
    handlers = options.pop("handlers", 1)
    informer: SharedIndexInformer[Any] = SharedIndexInformer(stream, options=OPTIONS, **options)
    for _ in range(handlers - 1):
        informer.add_event_handler(on_update=silent)
    registration = informer.add_event_handler(on_update=on_update)
    chunks = [
        b"".join(modified(turn * BATCH + number, number) for number in range(BATCH)) for turn in range(BATCHES + 1)
    ]

    async def send(chunk: bytes) -> None:
        nonlocal left
        left = BATCH
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
    """Counts memory blocks that are there in the end and were not in the beginning."""

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
    reached = await _measured(CASES[name])
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
