"""The low-level controller with a queue and a process function, without an informer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.informer.process_loop import CacheController, CacheControllerConfig
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.reflector.reflector import Reflector
from tests.support.collection import PODS, Collection, Response, line
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.queue.deltas import Deltas
    from aioinformer.reflector.options import ListOptions


def controller_of(
    pods: Any, process: Callable[[Deltas[Record], bool], Any] = lambda deltas, initial: None, **options: Any
) -> CacheController:
    """Return a controller with a queue of its own."""
    queue: DeltaFIFO[Record] = DeltaFIFO(lambda record: record.key)
    return CacheController(CacheControllerConfig(Reflector(pods, queue), queue, process, **options))


@pytest.mark.conformance("CTL-01", "CTL-02", "CTL-05")
async def test_controller_reports_version_and_sync_and_runs_once() -> None:
    pods = Collection("a", "b")
    processed: list[tuple[str, str, bool]] = []
    versions: list[str] = []

    def process(deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        processed.extend((delta.type, delta.object.key, is_in_initial_list) for delta in deltas)

    controller = controller_of(pods, process, on_version=versions.append)
    assert (controller.has_synced(), controller.last_sync_resource_version) == (False, "")
    running = asyncio.create_task(controller.run())
    await settled()
    assert (controller.has_synced(), controller.last_sync_resource_version, versions) == (True, "2", ["2"])
    with pytest.raises(UsageError, match="runs once"):
        await controller.run()
    pods.put("a")
    await settled()
    assert processed == [
        ("Replaced", "default/a", True),
        ("Replaced", "default/b", True),
        ("Updated", "default/a", False),
    ]
    await stopped(running)


async def stopped(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("CTL-04")
async def test_queued_deltas_are_not_processed_after_the_stop() -> None:
    processed: list[str] = []
    running: asyncio.Task[None]

    def process(deltas: Deltas[Record], is_in_initial_list: bool) -> None:
        processed.append(deltas[-1].object.key)
        running.cancel()

    running = asyncio.create_task(controller_of(Collection(*"abcdefghij"), process).run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 0 < len(processed) < 10


@pytest.mark.usefixtures("fine_slices")
async def test_stop_ends_a_batch_that_runs_out_of_memory() -> None:
    running: asyncio.Task[None]

    def flush() -> None:
        if running.cancelling():
            raise MemoryError

    controller = controller_of(Collection(*"abcdefghij"), lambda deltas, initial: running.cancel(), flush=flush)
    running = asyncio.create_task(controller.run())
    await asyncio.wait({running}, timeout=60)
    assert running.cancelled()


async def test_controller_stopped_before_its_run_ends_at_once() -> None:
    pods = Collection("a")
    controller = controller_of(pods)
    controller.stop()
    await asyncio.wait_for(controller.run(), 10)
    assert pods.requests == []


@pytest.mark.parametrize("first", ["stop", "cancel"])
@pytest.mark.parametrize("turns", range(1, 8))
async def test_stop_and_cancellations_close_the_response_once(
    turns: int, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    pods, closes = Collection("a"), 0

    async def close(self: Response) -> None:
        nonlocal closes
        closes += 1
        for _ in range(5):
            await asyncio.sleep(0)
        self.closed = True

    monkeypatch.setattr(Response, "close", close)
    controller = controller_of(pods)
    running = asyncio.create_task(controller.run())
    await settled()
    closes = 0
    controller.stop() if first == "stop" else running.cancel()
    loop.after_turns(turns, running.cancel)
    await asyncio.wait({running})
    assert running.cancelled()
    assert closes == 1
    assert [response for response in pods.responses if not response.closed] == []


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
    controller = controller_of(Fixed(), lambda deltas, initial: processed.append(deltas[-1].object.key))
    running = asyncio.create_task(controller.run())
    await settled()
    assert (processed, controller.last_sync_resource_version) == (["b/a"], "8")
    await stopped(running)


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.conformance("CTL-15")
async def test_process_loop_flushes_before_other_tasks_run() -> None:
    processed = asyncio.Event()
    log: list[str] = []

    async def other_task() -> None:
        while True:
            log.append("turn")
            await asyncio.sleep(0)

    controller = controller_of(
        Collection(*(f"pod-{number}" for number in range(100))),
        lambda deltas, initial: log.append("object"),
        flush=lambda: log.append("flush"),
        on_version=lambda version: processed.set(),
    )
    tasks = [asyncio.create_task(controller.run()), asyncio.create_task(other_task())]
    await processed.wait()
    for task in tasks:
        await stopped(task)
    first, last = log.index("object"), len(log) - log[::-1].index("object")
    assert log.count("object") == 100
    assert log[last] == "flush"
    batch = log[first:last]
    assert "turn" in batch
    assert all(batch[at - 1] in ("flush", "turn") for at, entry in enumerate(batch) if entry == "turn")
