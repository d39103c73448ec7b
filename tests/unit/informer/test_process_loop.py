"""The process loop: the low-level controller without an informer, and informers with the in-order queue."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import DeltaFIFO, Reflector, RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.errors import UsageError
from aioinformer.informer import CacheController, CacheControllerConfig
from tests.support.cluster import Cluster
from tests.support.collection import PODS, Collection, Response, line
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.queue import Deltas
    from aioinformer.reflector import ListOptions

pytestmark = pytest.mark.usefixtures("fine_slices")


def controller_of(
    pods: Any, process: Callable[[Deltas[Any], bool], Any] = lambda deltas, initial: None, **options: Any
) -> CacheController:
    """Return a controller with a queue of its own."""
    queue: DeltaFIFO[Any] = DeltaFIFO(lambda record: record.key)
    return CacheController(CacheControllerConfig(Reflector(pods, queue), queue, process, **options))


@pytest.mark.conformance("CTL-01", "CTL-02", "CTL-05")
async def test_controller_reports_version_and_sync_and_runs_once() -> None:
    pods = Collection("a", "b")
    processed: list[tuple[str, str, bool]] = []
    versions: list[str] = []

    def process(deltas: Deltas[Any], is_in_initial_list: bool) -> None:
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


@pytest.mark.conformance("CTL-04")
async def test_queued_deltas_are_not_processed_after_the_stop() -> None:
    processed: list[str] = []
    running: asyncio.Task[None]

    def process(deltas: Deltas[Any], is_in_initial_list: bool) -> None:
        processed.append(deltas[-1].object.key)
        running.cancel()

    running = asyncio.create_task(controller_of(Collection(*"abcdefghij"), process).run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 0 < len(processed) < 10


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


# Informers with the in-order queue: their additional guarantees.


IN_ORDER: dict[str, Any] = {"options": RunOptions(queue="in_order")}


def relist_with_many_changes(pods: Collection) -> None:
    """Change half of the objects, delete a quarter, and add some, without watch events."""
    pods.end_watches()
    for number in range(0, 100, 2):
        pods.put(f"p{number}")
    for number in range(1, 100, 4):
        pods.delete(f"p{number}")
    for number in range(100, 120):
        pods.put(f"p{number}")
    pods.unseen()


def hundred() -> Collection:
    return Collection(*(f"p{number}" for number in range(100)))


@pytest.mark.conformance("RF-06", "CTL-13")
@pytest.mark.parametrize("fresh", [True, False], ids=["first list", "relist"])
async def test_list_becomes_visible_at_once(fresh: bool) -> None:
    pods = hundred()
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods, **IN_ORDER)
    states = set()
    async with informer:
        if not fresh:
            await asyncio.sleep(2)
            relist_with_many_changes(pods)
        for _ in range(1000):
            await asyncio.sleep(0)
            versions = sorted(pod.metadata.resource_version for pod in informer.get_store().list())
            assert len(versions) == len(informer.get_indexer().by_index("namespace", "default"))
            states.add(tuple(versions))
        await settled()
    assert len(states) == 2
    assert len(informer.get_store()) == len(pods.objects)


@pytest.mark.conformance("CTL-13", "WEAK-20")
async def test_relist_delivers_deletes_before_the_list_order() -> None:
    final: set[int] = set()
    async with informer_of("a", "b", "c", "d", **IN_ORDER) as (pods, informer, received):
        del received[:]
        see = lambda *objects: final.add(len(informer.get_store()))  # noqa: E731
        registration = informer.add_event_handler(on_update=see, on_delete=see)
        await registration.wait_for_sync()
        await asyncio.sleep(2)
        pods.end_watches()
        pods.put("d")
        pods.put("a")
        pods.delete("b")
        pods.put("e")
        pods.put("f")
        pods.unseen()
        await asyncio.sleep(30)
    assert received == ["tombstone b 2", "update a 1 6", "update d 4 5", "add e 8", "add f 9"]
    assert final == {5}


@pytest.mark.conformance("SI-20")
@pytest.mark.parametrize("turns", range(0, 900, 18))
async def test_handler_added_during_a_relist_gets_each_object_once(turns: int) -> None:
    pods = hundred()
    async with SharedIndexInformer(pods, **IN_ORDER) as informer:
        await asyncio.sleep(2)
        relist_with_many_changes(pods)
        for _ in range(turns):
            await asyncio.sleep(0)
        late = Recorder()
        informer.add_event_handler(late)
        await asyncio.sleep(30)
    history: dict[str, str] = {}
    for words in late.received:
        what, name, *versions = words.split()
        assert (what.rstrip("!") == "add") == (name not in history), words
        if what in ("tombstone", "delete"):
            assert history.pop(name) == versions[0]
        else:
            history[name] = versions[-1]
    assert history == {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in pods.objects.values()}


@pytest.mark.conformance("RF-07", "CTL-14")
async def test_resync_delivers_all_before_later_changes() -> None:
    async with informer_of("a", "b", resync_period=30, **IN_ORDER) as (pods, _, received):
        await asyncio.sleep(31)
        pods.put("a")
        await settled()
    assert received[2:] == ["update a 1 1", "update b 2 2", "update a 1 3"]


@pytest.mark.conformance("RF-01")
async def test_changes_of_several_objects_keep_their_order() -> None:
    async with informer_of("a", "b", **IN_ORDER) as (pods, _, received):
        with pods.at_once():
            for name in ("b", "a", "c", "b", "a"):
                pods.put(name)
            pods.delete("c")
        await settled()
    assert received[2:] == [
        "update b 2 3", "update a 1 4", "add c 5", "update b 3 6", "update a 4 7", "delete c 8",
    ]  # fmt: skip


@pytest.mark.conformance("ARC-01", "CTL-17")
async def test_factory_passes_the_queue_option() -> None:
    pods = Collection("a", "b")
    recorder = Recorder()
    async with SharedInformerFactory(Cluster(pods)) as factory:
        factory.core.v1.pods.informer(options=RunOptions(queue="in_order")).add_event_handler(recorder)
        await factory.wait_for_cache_sync()
        with pods.at_once():
            for name in ("a", "b", "a"):
                pods.put(name)
        await settled()
    assert recorder.received[2:] == ["update a 1 3", "update b 2 4", "update a 3 5"]


def test_unknown_queue_is_refused() -> None:
    with pytest.raises(UsageError, match="queue='fifo' does not exist; choose one of delta, in_order"):
        SharedIndexInformer(Collection(), options=RunOptions(queue="fifo"))  # type: ignore[arg-type]
