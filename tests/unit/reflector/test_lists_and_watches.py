"""Lists and watches: what a reflector counts, and which lists it logs as slow."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from aioinformer.metrics import InformerCounters
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.reflector import Reflector
from tests.support.collection import Collection, cut
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.cache.objects.record import Record

PAGES = ReflectorOptions(streaming_list=False, page_size=2)
STREAM = ReflectorOptions()


def key_of(record: Record) -> str:
    return record.key


def traces(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if " took " in message]


@asynccontextmanager
async def reflecting(pods: Collection, options: ReflectorOptions) -> AsyncIterator[InformerCounters]:
    counters = InformerCounters()
    reflector = Reflector(pods, DeltaFIFO(key_of), name="pods", options=options, counters=counters)
    running = asyncio.create_task(reflector.run())
    try:
        await settled()
        yield counters
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize("options", [PAGES, STREAM], ids=["pages", "stream"])
async def test_list_counts_once_with_objects_and_duration(options: ReflectorOptions) -> None:
    pods = Collection("a", "b", "c")
    pods.gate.clear()
    async with reflecting(pods, options) as counters:
        await asyncio.sleep(3)
        before = counters.lists.snapshot().count
        pods.gate.set()
        await settled()
        lists = counters.lists.snapshot()
        assert (before, lists.count, counters.listed) == (0, 1, 3)
        assert lists.total == pytest.approx(3, abs=0.01)


@pytest.mark.parametrize("options", [PAGES, STREAM], ids=["pages", "stream"])
async def test_watch_counts_at_its_end_and_events_at_once(options: ReflectorOptions) -> None:
    pods = Collection("a")
    async with reflecting(pods, options) as counters:
        pods.put("b")
        pods.put("c")
        await asyncio.sleep(60)
        running = counters.watches.snapshot().count
        pods.end_watches()
        await settled()
        watches = counters.watches.snapshot()
        assert (running, watches.count, counters.watched, counters.short_watches) == (0, 1, 2, 0)
        assert watches.total == pytest.approx(60, abs=0.01)


async def test_watch_that_ends_at_once_without_event_is_short() -> None:
    pods = Collection("a")
    async with reflecting(pods, STREAM) as counters:
        pods.end_watches()
        await settled()
        assert counters.short_watches == 1


@pytest.mark.conformance("REF-25", "REF-35")
@pytest.mark.parametrize(("options", "kind"), [(PAGES, "list"), (STREAM, "streaming list")], ids=["pages", "stream"])
async def test_slow_list_is_logged_with_its_steps(
    options: ReflectorOptions, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "aioinformer.reflector")
    pods = Collection("a", "b", "c")
    pods.gate.clear()
    async with reflecting(pods, options):
        await asyncio.sleep(12)
        pods.gate.set()
        await settled()
    assert traces(caplog) == [f"pods: {kind} took 12.0 s: 3 objects listed +12.0 s, queued +0.0 s"]


@pytest.mark.conformance("REF-25", "REF-35")
async def test_fast_list_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer.reflector")
    pods = Collection("a", "b", "c")
    pods.gate.clear()
    async with reflecting(pods, PAGES):
        await asyncio.sleep(9)
        pods.gate.set()
        await asyncio.sleep(60)
    assert traces(caplog) == []


async def test_slow_failed_list_is_logged_apart_from_the_next(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "aioinformer.reflector")
    pods = Collection("a")
    pods.refusals.append(cut())
    pods.gate.clear()
    async with reflecting(pods, PAGES) as counters:
        await asyncio.sleep(11)
        pods.gate.set()
        await asyncio.sleep(5)
        assert counters.lists.snapshot().count == 2
    assert traces(caplog) == ["pods: list took 11.0 s: failed +11.0 s"]
