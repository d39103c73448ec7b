"""The loop of the reflector: effects of stops, delays and relists on resyncs and watches."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.reflector import Reflector
from aioinformer.reflector.state import Phase
from tests.support.batches import process_batch
from tests.support.collection import Collection, cut
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
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
        async with SharedIndexInformer(Collection("a"), watch_error_handler=failures.append):
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


@pytest.mark.conformance("REF-46")
async def test_raising_handler_in_a_resync_does_not_end_the_watch() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, 10)

    def on_update(old: Any, new: Any) -> None:
        raise ValueError("not again")

    registration = informer.add_event_handler(on_update=on_update)
    async with informer:
        await informer.wait_for_sync()
        asked = len(pods.requests)
        await asyncio.sleep(35)
        assert (registration.errors, pods.open_watches, len(pods.requests)) == (3, 1, asked)


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
    informer = SharedIndexInformer(pods, options=ReflectorOptions(streaming_list=False))
    informer.set_watch_error_handler(lambda error: happened.append("reported"))
    async with informer:
        await informer.wait_for_sync()
    assert happened[:7] == ["requested", "reported"] * 3 + ["requested"]
