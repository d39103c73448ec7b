"""The cache of an informer: keys, indexes and listers, relists, and reads before the start."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod, V1PodSpec

from aioinformer import LeaderElector, Resource, RunOptions, SharedIndexInformer, SharedInformerFactory
from aioinformer.cache import NAMESPACE_INDEX
from aioinformer.errors import NotFound, UsageError
from aioinformer.events import CoreEventSink, EventBroadcaster, FakeRecorder, discover_event_sink
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection, line
from tests.support.queues import QUEUES
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from aioinformer.informer import QueueName


pytestmark = pytest.mark.usefixtures("queue")


WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


@pytest.mark.conformance("SI-02")
async def test_objects_are_cached_by_namespace_and_name() -> None:
    pods, nodes = Collection(), Collection(resource=built_in("v1/nodes"))
    pods.put("a", "one")
    pods.put("a", "two")
    nodes.put("n1", "")
    async with informer_of(pods) as (_, informer, _), informer_of(nodes) as (_, cluster_scoped, _):
        assert cluster_scoped.get_store().list_keys() == ["n1"]
        assert sorted(informer.get_store().list_keys()) == ["one/a", "two/a"]
        pods.put("a", "one", metadata={"uid": "another"})
        pods.delete("a", "two")
        await settled()
        assert informer.get_store().list_keys() == ["one/a"]


@pytest.mark.conformance("CTL-12")
@pytest.mark.parametrize("queue", QUEUES)
async def test_cache_content_decides_between_add_and_update(queue: QueueName) -> None:
    async with informer_of("a", options=RunOptions(queue=queue)) as (pods, _, received):
        for kind, name, version in ("MODIFIED", "b", 7), ("ADDED", "a", 8), ("ADDED", "b", 9):
            metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
            pods.send(line(kind, {"metadata": metadata}))
            await settled()
    assert received == ["add! a 1", "add b 7", "update a 1 8", "update b 7 9"]


@pytest.mark.conformance("ARC-01")
@pytest.mark.parametrize("queue", ["the default"])
@pytest.mark.parametrize("made_by", ["itself", "a factory"])
async def test_default_queue_groups_by_object_and_delivers_deletes(made_by: str, queue: str) -> None:
    pods = Collection("a", "b")
    factory = SharedInformerFactory(Cluster(pods))
    informer = SharedIndexInformer(pods) if made_by == "itself" else factory.informer_for(pods.resource)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await asyncio.sleep(2)
        pods.end_watches()
        pods.delete("a")
        pods.put("b")
        pods.unseen()
        await settled()
    assert recorder.received == ["add! a 1", "add! b 2", "update b 2 4", "tombstone a 1"]


@pytest.mark.conformance("SI-12", "STO-15")
async def test_store_from_before_the_start_shows_the_cache() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    store, indexer = informer.get_store(), informer.get_indexer()
    assert store.list() == []
    indexer.get_indexers().clear()  # a copy
    assert list(indexer.get_indexers()) == [NAMESPACE_INDEX]
    async with informer:
        await informer.wait_for_sync()
        assert store.list_keys() == indexer.index_keys(NAMESPACE_INDEX, "default") == ["default/a"]
        pods.put("b")
        await settled()
        assert sorted(store.list_keys()) == sorted(indexer.index_keys(NAMESPACE_INDEX, "default"))
    assert sorted(store.list_keys()) == ["default/a", "default/b"]


@pytest.mark.conformance("FAC-12")
async def test_custom_resource_lister_raises_not_found_as_the_server() -> None:
    widgets = Collection(resource=WIDGETS)
    widgets.put("w", "shop", spec={"size": 3})
    async with informer_of(widgets) as (_, informer, _):
        lister = informer.lister().namespaced("shop")
        assert lister.get("w")["spec"]["size"] == 3
        with pytest.raises(NotFound, match=r'widgets\.example\.com "gone" not found') as raised:
            lister.get("gone")
    assert (raised.value.status, raised.value.reason) == (404, "NotFound")


NAMES = [f"pod-{number}" for number in range(64)]


def by_name(pod: Any) -> list[str]:
    return [pod.metadata.name]


@pytest.mark.usefixtures("fine_slices")
async def test_adding_indexers_yields_to_other_tasks() -> None:
    async with informer_of(*NAMES) as (_, informer, _):
        adding = asyncio.create_task(informer.add_indexers_in_slices({"name": by_name}))
        turns = 0
        while not adding.done():
            await asyncio.sleep(0)
            turns += 1
        await adding
    assert turns >= 8
    assert [pod.metadata.name for pod in informer.get_indexer().by_index("name", "pod-7")] == ["pod-7"]


@pytest.mark.usefixtures("fine_slices")
async def test_cancelled_addition_adds_no_indexers() -> None:
    async with informer_of(*NAMES) as (_, informer, _):
        adding = asyncio.create_task(informer.add_indexers_in_slices({"name": by_name}))
        await asyncio.sleep(0)
        adding.cancel()
        await asyncio.wait({adding})
        assert "name" not in informer.get_indexer().get_indexers()
        informer.add_indexers({"name": by_name})


async def test_unreferenced_cache_is_freed_outside_the_loop() -> None:
    informer = SharedIndexInformer(Collection(*NAMES))
    async with informer:
        await informer.wait_for_sync()
    cells = informer.get_indexer().store
    items, gone = cells._items, weakref.ref(cells)
    del informer, cells
    gc.collect()
    assert gone() is None
    assert len(items) == len(NAMES)
    await settled()
    assert not items


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "pages"])
async def test_relist_of_unchanged_objects_has_no_effect(streaming: bool) -> None:
    calls: list[str] = []

    def by_name(pod: Any) -> list[str]:
        calls.append(pod.metadata.name)
        return calls[-1:]

    options = RunOptions(streaming_list=streaming, page_size=2)
    async with informer_of("a", "b", "c", indexers={"name": by_name}, options=options) as (pods, informer, received):
        bodies = {record.key: record.raw for record in informer.get_indexer().store.items()}
        lists = len(pods.requests)
        calls.clear()
        pods.expire_watches()
        await settled()
        again = pods.requests[lists]
        assert again.send_initial_events if streaming else not again.watch
        assert received == ["add! a 1", "add! b 2", "add! c 3"]
        assert calls == []
        for record in informer.get_indexer().store.items():
            assert record.raw is bodies[record.key]


async def test_entry_run_and_shutdown_count_as_started() -> None:
    factory, stopped = SharedInformerFactory(Cluster()), SharedInformerFactory(Cluster())
    lister, other = factory.core.v1.pods.lister(), stopped.core.v1.pods.lister()
    async with factory:
        assert lister.list() == []
    await stopped.shutdown()
    assert other.list() == []
    for_itself = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match="never started: enter `async with informer`, or await"):
        for_itself.lister().list()
    async with for_itself:
        assert for_itself.lister().list() == []
    running = SharedIndexInformer(Collection())
    task = asyncio.create_task(running.run())
    await settled()
    assert running.lister().list() == []
    task.cancel()
    await asyncio.wait({task})


STARTS: dict[str, Callable[[], Any]] = {
    "informer": lambda: step(SharedIndexInformer(Collection()).__aenter__()),
    "run": lambda: step(SharedIndexInformer(Collection()).run()),
    "factory": lambda: step(SharedInformerFactory(Cluster()).__aenter__()),
    "start": lambda: SharedInformerFactory(Cluster()).start(),
    "elector": lambda: step(LeaderElector(Cluster(), "a").leading().__aenter__()),
    "broadcaster": lambda: step(EventBroadcaster().__aenter__()),
}


async def test_lister_of_an_unstarted_factory_raises() -> None:
    lister = SharedInformerFactory(Cluster(Collection("a"))).core.v1.pods.lister()
    reads: list[Callable[[], Any]] = [
        lister.list,
        lambda: lister.get("default/a"),
        lister.namespaced("default").list,
        lambda: lister.namespaced("default").get("a"),
        lister.undecodable,
    ]
    for read in reads:
        with pytest.raises(UsageError) as caught:
            read()
        assert str(caught.value) == (
            "the informer of pods was never started: create it before `async with factory`, "
            "or call factory.start() afterwards"
        )


async def test_start_counts_before_the_first_step() -> None:
    factory = SharedInformerFactory(Cluster(Collection("a")))
    lister = factory.core.v1.pods.lister()
    factory.start()
    assert lister.list() == []
    late = factory.core.v1.nodes.lister()
    with pytest.raises(UsageError, match="the informer of nodes was never started"):
        late.list()
    factory.start()
    assert late.list() == []
    with pytest.raises(NotFound):
        late.get("n1")
    await factory.wait_for_cache_sync()
    assert len(lister.list()) == 1
    await factory.shutdown()
    assert len(lister.list()) == 1


async def test_manually_filled_cache_is_readable() -> None:
    informer = SharedIndexInformer(Collection())
    indexer = informer.get_indexer()
    indexer.add({"metadata": {"name": "a", "namespace": "default"}, "spec": {"nodeName": "n1"}})
    spec = V1PodSpec(node_name="n2", containers=[])
    indexer.add(V1Pod(metadata=V1ObjectMeta(name="c", namespace="default"), spec=spec))
    lister = informer.lister()
    assert sorted(pod.spec.node_name for pod in lister.list()) == ["n1", "n2"]
    assert lister.get("default/a").metadata.name == "a"
    indexer.delete(lister.get("default/a"))
    assert len(lister.list()) == 1
    assert lister.undecodable() == []
    with pytest.raises(NotFound):
        lister.get("default/b")


# Without asyncio.


def step(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine without asyncio."""
    try:
        coroutine.send(None)
    finally:
        coroutine.close()


@pytest.mark.parametrize("name", STARTS)
def test_start_without_asyncio_raises_clearly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"in a running event loop of asyncio, and none runs in this thread"):
        STARTS[name]()
    monkeypatch.setitem(sys.modules, "sniffio", SimpleNamespace(current_async_library=lambda: "trio"))
    with pytest.raises(UsageError, match=r"and this is trio: run the program with asyncio\.run"):
        STARTS[name]()


def test_event_from_another_thread_raises_clearly() -> None:
    broadcaster = EventBroadcaster()
    broadcaster.start_recording_to_sink(CoreEventSink(Cluster()))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}}
    with pytest.raises(UsageError, match="an event is recorded in a running event loop of asyncio, and none runs"):
        broadcaster.new_recorder("me").event(pod, "Normal", "Started", "it runs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, "Normal", "Started", "it runs"), "^obj: expected an object of the API or an ObjectReference, not None"),
        (("ns/a", "Normal", "Started", "it runs"), "^obj: expected an object of the API .*, not the text of a key"),
        (({}, "Normal", None, "it runs"), 'reason of an event must be a word such as "FailedMount", not None'),
        (({}, "Normal", "Started", None), "message of an event must be a string, not None"),
    ],
)
def test_invalid_event_raises_clearly(arguments: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FakeRecorder().event(*arguments)


@pytest.mark.parametrize("sink", [None, Cluster()])
def test_invalid_sink_is_refused(sink: Any) -> None:
    with pytest.raises(UsageError, match="sink: expected a sink such as CoreEventSink"):
        EventBroadcaster().start_recording_to_sink(sink)
    unawaited: Any = discover_event_sink(Cluster())
    with pytest.raises(UsageError, match=r"not coroutine; write `await discover_event_sink\(\.\.\.\)`"):
        EventBroadcaster().start_recording_to_sink(unawaited)
    with pytest.raises(UsageError, match="handler: expected a function of an Event, not"):
        EventBroadcaster().start_event_watcher(5)  # type: ignore[arg-type]
