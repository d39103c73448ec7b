"""Transforms, decoders and index functions, including those that raise."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.pipeline import QueueKind
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.state import Phase
from tests.support.collection import Collection, line
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.informer.pipeline import QueueName

pytestmark = pytest.mark.usefixtures("queue")


def phase_of(informer: SharedIndexInformer[Any]) -> Phase:
    return informer.state.phase


def cached_version(informer: SharedIndexInformer[Any], key: str) -> str:
    return str(informer.lister().namespaced("default").get(key).metadata.resource_version)


def node_of(pod: Any) -> list[str]:
    return [pod.spec.node_name] if pod.spec is not None else []


@pytest.mark.conformance("SI-10", "CTL-16", "STO-02")
async def test_transform_result_is_cached_and_delivered() -> None:
    pods = Collection()
    pods.put("a", spec={"nodeName": "n1"}, status={"phase": "Running"})
    informer = SharedIndexInformer(pods)
    seen: list[str] = []

    def without_status(pod: Any) -> Any:
        seen.append(pod.metadata.resource_version)
        document = pod.to_dict()
        del document["status"]
        return document

    informer.set_transform(without_status)
    informer.add_indexers({"node": node_of})
    received: list[Any] = []
    informer.add_event_handler(on_add=received.append)
    async with informer:
        await settled()
        pods.put("a", spec={"nodeName": "n2"}, status={"phase": "Running"})
        await settled()
        assert [pod.status for pod in (*received, *informer.get_store().list())] == [None, None]
        assert informer.get_indexer().index_keys("node", "n2") == ["default/a"]
    assert seen == ["1", "2"]


@pytest.mark.conformance("WEAK-08")
async def test_refused_object_is_skipped_until_a_version_passes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)

    def picky(pod: Any) -> Any:
        if pod.status is not None and pod.status.phase == "Failed":
            raise LookupError("no such phase")
        return pod

    informer.set_transform(picky)
    async with informer:
        await settled()
        caplog.set_level(logging.INFO)
        pods.put("a", status={"phase": "Failed"})
        pods.put("b")
        await settled()
        assert phase_of(informer) is Phase.DEGRADED
        assert "default/a" in informer.state.reason
        assert informer.skipped == 1
        assert cached_version(informer, "a") == "1"
        assert "default/a is skipped: " in caplog.text
        assert "skipped: default/a" not in caplog.text
        pods.put("a")
        await settled()
        assert phase_of(informer) is Phase.WATCHING
    assert recorder.received == ["add! a 1", "add! b 2", "update b 2 4", "update a 1 5"]


async def test_object_refused_in_the_first_list_affects_no_other() -> None:
    informer = SharedIndexInformer(
        Collection("a", "b"), transform=lambda pod: pod if pod.metadata.name == "b" else None
    )
    async with informer:
        await informer.wait_for_sync()
        assert phase_of(informer) is Phase.DEGRADED
        assert informer.get_store().list_keys() == ["default/b"]


async def test_object_refused_in_a_relist_is_not_deleted() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    broken = False

    def sometimes(pod: Any) -> Any:
        if broken and pod.metadata.name == "a":
            raise LookupError
        return pod

    informer.set_transform(sometimes)
    async with informer:
        await settled()
        broken = True
        pods.put("a")
        pods.expire_watches()
        await settled()
        assert cached_version(informer, "a") == "1"
        assert phase_of(informer) is Phase.DEGRADED
    assert recorder.received == ["add! a 1", "add! b 2"]


@pytest.mark.parametrize("queue", QueueKind)
@pytest.mark.parametrize("nameless", [{}, {"metadata": {"namespace": "default"}}, {"metadata": {"name": 5}}])
async def test_list_with_an_unnamed_item_removes_nothing(queue: QueueKind, nameless: dict[str, Any]) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods, queue=queue)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        del pods.objects["default/b"]
        pods.objects["?"] = nameless
        pods.put("c")
        pods.expire_watches()
        await settled()
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b", "default/c"]
        assert phase_of(informer) is Phase.DEGRADED
        assert "deletes nothing" in informer.state.reason
        del pods.objects["?"]
        pods.expire_watches()
        await asyncio.sleep(60)
        assert phase_of(informer) is Phase.WATCHING
    assert recorder.received == ["add! a 1", "add! b 2", "add c 3", "tombstone b 2"]


async def test_delete_of_a_refused_object_has_the_cached_state() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    informer.set_transform(lambda pod: pod if pod.metadata.resource_version == "1" else None)
    async with informer:
        await settled()
        pods.put("a")
        pods.delete("a")
        await settled()
        assert phase_of(informer) is Phase.WATCHING
    assert recorder.received == ["add! a 1", "tombstone a 1"]


async def test_delete_of_a_refused_object_has_the_last_state() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    informer.set_transform(lambda pod: None if pod.metadata.resource_version == "3" else pod)
    async with informer:
        await settled()
        with pods.at_once():
            pods.put("a")
            pods.delete("a")
        await settled()
    assert recorder.received == ["add! a 1", "update a 1 2", "tombstone a 2"]


class Meta(msgspec.Struct):
    name: str
    resource_version: str = msgspec.field(name="resourceVersion")
    namespace: str = ""


class Status(msgspec.Struct):
    phase: str = ""


class Pod(msgspec.Struct):
    metadata: Meta
    status: Status = msgspec.field(default_factory=Status)


async def test_objects_may_have_a_user_class() -> None:
    pods = Collection()
    pods.put("a", status={"phase": "Running"})
    informer = SharedIndexInformer(pods, decoder=Pod)
    async with informer:
        await settled()
        (pod,) = informer.get_store().list()
        assert isinstance(pod, Pod)
        assert pod.status.phase == "Running"


async def test_object_that_does_not_fit_the_class_is_skipped() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods, decoder=Pod)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.put("a", status=["Running"])
        pods.put("b")
        await settled()
        assert (informer.state.phase, informer.skipped) == (Phase.DEGRADED, 1)
    assert recorder.received == ["add! a 1", "add! b 2", "update b 2 4"]


async def test_undecodable_event_is_skipped() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    async with informer:
        await settled()
        pods.send(line("MODIFIED", {"metadata": "none"}))
        pods.put("b")
        await settled()
        assert len(informer.get_store()) == 2
        assert (informer.state.phase, informer.skipped) == (Phase.DEGRADED, 1)
    assert [request.watch for request in pods.requests] == [True]


@pytest.mark.conformance("SI-11")
async def test_index_added_while_running_is_complete() -> None:
    pods = Collection()
    pods.put("a", spec={"nodeName": "n1"})
    informer = SharedIndexInformer(pods)
    async with informer:
        await settled()
        informer.add_indexers({"node": node_of})
        assert informer.get_indexer().index_keys("node", "n1") == ["default/a"]
        pods.put("b", spec={"nodeName": "n1"})
        pods.put("a", spec={"nodeName": "n2"})
        await settled()
        assert informer.get_indexer().index_keys("node", "n1") == ["default/b"]
        with pytest.raises(UsageError, match="index node exists already"):
            informer.add_indexers({"node": node_of})
    with pytest.raises(InformerStopped, match="because it has stopped already"):
        informer.add_indexers({"other": node_of})


@pytest.mark.conformance("WEAK-09")
async def test_object_with_a_failing_index_is_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    informer = SharedIndexInformer(Collection("a"), indexers={"node": lambda pod: [pod.spec.node_name]})
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        assert informer.get_indexer().by_index("node", "n1") == []
    assert recorder.received == ["add! a 1"]
    assert "index function 'node' raised for default/a" in caplog.text


@pytest.mark.conformance("SI-09", "SI-10")
async def test_settings_are_refused_after_the_start() -> None:
    informer = SharedIndexInformer(Collection())
    async with informer:
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="was started already: set the transform before that"):
            informer.set_transform(lambda pod: pod)
        with pytest.raises(UsageError, match="was started already: set the watch error handler before that"):
            informer.set_watch_error_handler(lambda error: None)


async def test_undecodable_item_keeps_the_queued_version(
    queue: QueueName,
) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, queue=queue)
    seen: list[str] = []

    def refuse_the_third(pod: Any) -> Any:
        seen.append(pod.metadata.resource_version)
        if pod.metadata.resource_version == "3":
            raise ValueError
        return pod

    informer.set_transform(refuse_the_third)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.put("a", spec={"nodeName": "n1"})
        with pods.at_once():
            pods.unseen()
            pods.put("a", spec={"nodeName": "n2"})
            pods.expire_watches()
        await settled()
        assert recorder.received == ["add! a 1", "update a 1 2"]
        assert informer.state.phase is Phase.DEGRADED
    assert "3" in seen
