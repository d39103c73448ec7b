"""The reflector: its requests, its waits, its resyncs, and what it counts and logs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import DeltaFIFO, Reflector, RunOptions, SharedIndexInformer
from aioinformer.metrics.counters import InformerCounters
from aioinformer.reflector import Phase, ReflectorOptions
from tests.support.batches import process_batch
from tests.support.collection import Collection, Response, cut
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.cache.objects.record import Record


def key_of(record: Record) -> str:
    return record.key


@pytest.mark.conformance("REF-11")
async def test_reflector_cancelled_before_its_start_sends_no_request() -> None:
    pods = Collection("a")
    running = asyncio.create_task(Reflector(pods, DeltaFIFO(key_of)).run())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert pods.requests == []


@pytest.mark.conformance("REF-12")
async def test_stop_logs_no_warning_and_reports_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    failures: list[Exception] = []
    for turns in range(12):
        informer = SharedIndexInformer(Collection("a"))
        informer.set_watch_error_handler(failures.append)
        async with informer:
            for _ in range(turns):
                await asyncio.sleep(0)
    assert failures == []
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.conformance("REF-32", "WEAK-11")
@pytest.mark.parametrize("status", [429, 500])
async def test_stop_does_not_wait_for_a_backoff_delay(status: int) -> None:
    pods = Collection("a")
    for _ in range(10):
        pods.refuse(status)
    informer = SharedIndexInformer(pods)
    loop = asyncio.get_running_loop()
    async with informer:
        await asyncio.sleep(60)
        assert informer.state.phase is Phase.BACKING_OFF
        stopped_at = loop.time()
    assert loop.time() - stopped_at < 0.01


@pytest.mark.conformance("REF-45")
async def test_received_version_may_be_ahead_of_applied_version() -> None:
    pods = Collection("a", "b")
    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    reflector = Reflector(pods, queue)
    running = asyncio.create_task(reflector.run())
    await settled()
    version = pods.put("c")
    await settled()
    assert reflector.last_sync_resource_version == version
    popped: list[str] = []
    applied = await process_batch(queue, lambda deltas, initial: popped.append(deltas[-1].object.key), lambda: None)
    assert (popped, applied) == (["default/a", "default/b", "default/c"], version)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.conformance("REF-46", "REF-47", "WEAK-21")
async def test_relists_do_not_delay_resyncs() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, 10)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        for _ in range(7):
            await asyncio.sleep(6)
            pods.expire_watches()
    assert recorder.received == ["add! a 1", *["update a 1 1"] * 4]


@pytest.mark.conformance("REF-10", "REF-14")
async def test_error_handler_is_called_before_the_next_request() -> None:
    pods = Collection("a")
    happened: list[str] = []
    pods.refusals.extend([cut(), cut(), cut()])
    request = pods.request

    async def noted(options: Any) -> Any:
        happened.append("requested")
        return await request(options)

    pods.request = noted  # type: ignore[method-assign]
    informer = SharedIndexInformer(pods, options=RunOptions(streaming_list=False))
    informer.set_watch_error_handler(lambda error: happened.append("reported"))
    async with informer:
        await informer.wait_for_sync()
    assert happened[:7] == ["requested", "reported"] * 3 + ["requested"]


def item(name: str) -> bytes:
    return b'{"metadata":{"name":"%s","namespace":"default","uid":"u","resourceVersion":"1"}}' % name.encode()


@pytest.mark.conformance("REF-05")
@pytest.mark.parametrize(("share", "seconds"), [(0.0, 300), (0.5, 450), (0.999, 599)])
def test_watches_and_streaming_lists_last_five_to_ten_minutes(share: float, seconds: int) -> None:
    options = ReflectorOptions()
    assert options.watch("1", share).timeout_seconds == options.stream("", share).timeout_seconds == seconds


@pytest.mark.conformance("PG-01", "PG-04")
async def test_next_page_is_requested_while_one_is_read() -> None:
    pods = Collection()
    pods.version = 1
    first, second = Response(), Response()
    pods.refusals.extend([first, second])
    informer = SharedIndexInformer(pods, options=RunOptions(streaming_list=False))
    async with informer:
        await settled()
        head = b'{"metadata":{"resourceVersion":"1","continue":"more"},"items":['
        first.feed(head + item("a") + b"," + item("b")[:20])
        await settled()
        assert [request.continue_token for request in pods.requests] == ["", "more"]
        first.feed(item("b")[20:] + b"]}")
        first.end()
        second.feed(b'{"metadata":{"resourceVersion":"1"},"items":[' + item("c") + b"]}")
        second.end()
        await informer.wait_for_sync()
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b", "default/c"]
        assert [request.watch for request in pods.requests[:2]] == [False, False]


# What it counts, and which lists it logs as slow.


PAGES = ReflectorOptions(streaming_list=False, page_size=2)
STREAM = ReflectorOptions()


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
