"""Reading caches of unstarted informers, and starting informers without asyncio."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod, V1PodSpec

from aioinformer.errors import NotFound, UsageError
from aioinformer.events.broadcaster import EventBroadcaster
from aioinformer.events.recorder import FakeRecorder
from aioinformer.events.sink import CoreEventSink, discover_event_sink
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.leaderelection.elector import LeaderElector
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

pytestmark = pytest.mark.usefixtures("queue")


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


async def test_lister_of_an_unstarted_informer_raises() -> None:
    informer = SharedIndexInformer(Collection("a"))
    with pytest.raises(UsageError, match="never started: enter `async with informer`, or await"):
        informer.lister().list()


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


async def test_entry_and_run_count_as_started() -> None:
    factory = SharedInformerFactory(Cluster())
    lister = factory.core.v1.pods.lister()
    async with factory:
        assert lister.list() == []
    for_itself = SharedIndexInformer(Collection())
    async with for_itself:
        assert for_itself.lister().list() == []
    running = SharedIndexInformer(Collection())
    task = asyncio.create_task(running.run())
    await settled()
    assert running.lister().list() == []
    task.cancel()
    await asyncio.wait({task})


async def test_factory_stopped_before_its_start_is_readable() -> None:
    factory = SharedInformerFactory(Cluster())
    lister = factory.core.v1.pods.lister()
    await factory.shutdown()
    assert lister.list() == []


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


def starts() -> dict[str, Callable[[], Any]]:
    def enters(manager: Any) -> Callable[[], Any]:
        return lambda: step(manager.__aenter__())

    return {
        "informer": enters(SharedIndexInformer(Collection())),
        "run": lambda: step(SharedIndexInformer(Collection()).run()),
        "factory": enters(SharedInformerFactory(Cluster())),
        "start": SharedInformerFactory(Cluster()).start,
        "elector": enters(LeaderElector(Cluster(), "a").leading()),
        "broadcaster": enters(EventBroadcaster()),
    }


@pytest.mark.parametrize("name", starts())
def test_start_without_asyncio_raises_clearly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"in a running event loop of asyncio, and none runs in this thread"):
        starts()[name]()
    monkeypatch.setitem(sys.modules, "sniffio", SimpleNamespace(current_async_library=lambda: "trio"))
    with pytest.raises(UsageError, match=r"and this is trio: run the program with asyncio\.run"):
        starts()[name]()


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
