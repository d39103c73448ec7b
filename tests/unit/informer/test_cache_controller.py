"""The low-level controller with a queue and a process function, without an informer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.informer.controller import CacheController, CacheControllerConfig
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.reflector.reflector import Reflector
from tests.support.collection import PODS, Collection, Response, line
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record
    from aioinformer.queue.deltas import Deltas
    from aioinformer.reflector.options import ListOptions


def key_of(record: Record) -> str:
    return record.key


async def stopped(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.conformance("CTL-01", "CTL-05")
async def test_controller_reports_version_and_sync() -> None:
    pods = Collection("a", "b")
    processed: list[tuple[str, str, bool]] = []
    versions: list[str] = []

    def process(deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        processed.extend((delta.type, delta.object.key, is_in_initial_list) for delta in deltas)

    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    controller = CacheController(
        CacheControllerConfig(Reflector(pods, queue, name="mine"), queue, process, on_version=versions.append)
    )
    assert (controller.has_synced(), controller.last_sync_resource_version) == (False, "")
    running = asyncio.create_task(controller.run())
    await settled()
    assert (controller.has_synced(), controller.last_sync_resource_version, versions) == (True, "2", ["2"])
    pods.put("a")
    await settled()
    assert processed == [
        ("Replaced", "default/a", True),
        ("Replaced", "default/b", True),
        ("Updated", "default/a", False),
    ]
    await stopped(running)


@pytest.mark.conformance("CTL-04")
async def test_queued_deltas_are_not_processed_after_the_stop() -> None:
    pods = Collection("a")
    processed: list[str] = []
    running: asyncio.Task[None]

    def process(deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        processed.append(deltas[-1].object.key)
        running.cancel()

    queue: DeltaFIFO[Record] = DeltaFIFO(key_of, slice_seconds=1e-9)
    for name in "bcdefghij":
        pods.put(name)
    running = asyncio.create_task(
        CacheController(CacheControllerConfig(Reflector(pods, queue), queue, process, slice_seconds=1e-9)).run()
    )
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 0 < len(processed) < 10


@pytest.mark.conformance("CTL-02")
async def test_controller_runs_once() -> None:
    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    reflector = Reflector(Collection(), queue)
    controller = CacheController(CacheControllerConfig(reflector, queue, lambda deltas, is_in_initial_list: None))
    running = asyncio.create_task(controller.run())
    await settled()
    with pytest.raises(UsageError, match="runs once"):
        await controller.run()
    await stopped(running)


async def test_stop_ends_a_batch_that_runs_out_of_memory() -> None:
    running: asyncio.Task[None]

    def process(deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        running.cancel()

    def flush() -> None:
        if running.cancelling():
            raise MemoryError

    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    reflector = Reflector(Collection(*"abcdefghij"), queue)
    config = CacheControllerConfig(reflector, queue, process, flush, slice_seconds=1e-9)
    running = asyncio.create_task(CacheController(config).run())
    await asyncio.wait({running}, timeout=60)
    assert running.cancelled()


async def test_stop_ends_a_reflector_that_runs_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def exhausted(self: DeltaFIFO[Record], objects: object, version: str = "") -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise MemoryError

    monkeypatch.setattr(DeltaFIFO, "replace_owned", exhausted)
    running = asyncio.create_task(Reflector(Collection("a"), DeltaFIFO(key_of)).run())
    await settled()
    running.cancel()
    await asyncio.wait({running}, timeout=60)
    assert running.cancelled()


async def test_controller_stopped_before_its_run_ends_at_once() -> None:
    pods = Collection("a")
    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    reflector = Reflector(pods, queue)
    controller = CacheController(CacheControllerConfig(reflector, queue, lambda deltas, is_in_initial_list: None))
    controller.stop()
    await asyncio.wait_for(controller.run(), 10)
    assert pods.requests == []


@pytest.mark.parametrize("first", ["stop", "cancel"])
@pytest.mark.parametrize("turns", range(1, 8))
async def test_stop_and_cancellations_close_the_response_once(turns: int, first: str) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    pods, closes = Collection("a"), 0

    async def close(self: Response) -> None:
        nonlocal closes
        closes += 1
        for _ in range(5):
            await asyncio.sleep(0)
        self.closed = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Response, "close", close)
        queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
        reflector = Reflector(pods, queue)
        controller = CacheController(CacheControllerConfig(reflector, queue, lambda deltas, is_in_initial_list: None))
        running = asyncio.create_task(controller.run())
        await settled()
        closes = 0
        controller.stop() if first == "stop" else running.cancel()
        loop.after_turns(turns, running.cancel)
        await asyncio.wait({running})
    assert running.cancelled()
    assert closes == 1
    assert [response for response in pods.responses if not response.closed] == []


async def test_stop_after_a_withdrawn_cancellation_returns() -> None:
    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    controller = CacheController(
        CacheControllerConfig(Reflector(Collection(), queue), queue, lambda deltas, is_in_initial_list: None)
    )

    async def run() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        await controller.run()
        return "returned"

    running = asyncio.create_task(run())
    await settled()
    running.cancel()
    await settled()
    controller.stop()
    assert await running == "returned"


@pytest.mark.conformance("LW-01", "LW-03")
async def test_any_class_with_a_request_method_is_a_lister_watcher() -> None:
    class Fixed:
        resource = PODS

        async def request(self, options: ListOptions) -> Response:
            response = Response()
            obj: dict[str, Any] = {"metadata": {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "7"}}
            end = {"metadata": {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}}}
            response.feed(line("ADDED", obj) + line("BOOKMARK", end))
            return response

    processed: list[str] = []
    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    controller = CacheController(
        CacheControllerConfig(
            Reflector(Fixed(), queue),
            queue,
            process=lambda deltas, is_in_initial_list: processed.append(deltas[-1].object.key),
        )
    )
    running = asyncio.create_task(controller.run())
    await settled()
    assert (processed, controller.last_sync_resource_version) == (["b/a"], "8")
    await stopped(running)


@pytest.mark.conformance("CTL-15")
async def test_process_loop_flushes_before_other_tasks_run() -> None:
    pods = Collection(*(f"pod-{number}" for number in range(100)))
    queue: DeltaFIFO[Record] = DeltaFIFO(key_of)
    processed = asyncio.Event()
    log: list[str] = []

    async def other_task() -> None:
        while True:
            log.append("turn")
            await asyncio.sleep(0)

    config = CacheControllerConfig(
        Reflector(pods, queue),
        queue,
        process=lambda deltas, is_in_initial_list: log.append("object"),
        flush=lambda: log.append("flush"),
        on_version=lambda version: processed.set(),
        slice_seconds=1e-9,
    )
    tasks = [asyncio.create_task(CacheController(config).run()), asyncio.create_task(other_task())]
    await processed.wait()
    for task in tasks:
        await stopped(task)
    first, last = log.index("object"), len(log) - log[::-1].index("object")
    assert log.count("object") == 100
    assert log[last] == "flush"
    batch = log[first:last]
    assert "turn" in batch
    assert all(batch[at - 1] in ("flush", "turn") for at, entry in enumerate(batch) if entry == "turn")
