"""Transforms, decoders, index functions, and storage tiers of objects."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.cache import Storage
from aioinformer.cache.objects.compression import SAMPLES, PackedRecord
from aioinformer.cache.objects.record import labels_of
from aioinformer.errors import InformerStopped, UsageError
from tests.support.collection import Collection
from tests.support.queues import QUEUES
from tests.support.recorder import informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.cache import StorageTier
    from aioinformer.informer import QueueName

pytestmark = pytest.mark.usefixtures("queue")


def cached_version(informer: SharedIndexInformer[Any], key: str) -> str:
    return str(informer.lister().namespaced("default").get(key).metadata.resource_version)


def node_of(pod: Any) -> list[str]:
    return [pod.spec.node_name] if pod.spec is not None else []


@pytest.mark.conformance("SI-10", "CTL-16", "STO-02")
async def test_transform_result_is_cached_and_delivered() -> None:
    pods = Collection()
    pods.put("a", spec={"nodeName": "n1"}, status={"phase": "Running"})
    seen: list[str] = []

    def without_status(pod: Any) -> Any:
        seen.append(pod.metadata.resource_version)
        document = pod.to_dict()
        del document["status"]
        return document

    received: list[Any] = []
    indexers = {"node": node_of}
    async with informer_of(pods, transform=without_status, indexers=indexers, on_add=received.append) as (_, it, _):
        pods.put("a", spec={"nodeName": "n2"}, status={"phase": "Running"})
        await settled()
        assert [pod.status for pod in (*received, *it.get_store().list())] == [None, None]
        assert it.get_indexer().index_keys("node", "n2") == ["default/a"]
    assert seen == ["1", "2"]


async def test_watch_and_waits_follow_the_versions_that_a_transform_leaves_out() -> None:
    def slim(pod: Any) -> Any:
        return {"metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace}}

    async with informer_of("a", transform=slim) as (pods, informer, received):
        version = pods.put("a")
        await settled()
        assert informer.last_sync_resource_version == version
        await informer.wait_for(pods.objects["default/a"], timeout=1)
        assert cached_version(informer, "a") == version
        pods.end_watches()
        await asyncio.sleep(5)
        assert pods.requests[-1].resource_version == version
    assert received == ["add! a 1", "update a 1 2"]


async def test_object_that_a_transform_renames_is_skipped_and_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    def rename(pod: Any) -> Any:
        renamed = {**pod.to_dict()["metadata"], "name": "other"}
        return {"metadata": renamed} if pod.status is not None else pod

    caplog.set_level(logging.INFO)
    async with informer_of("a", transform=rename) as (pods, informer, received):
        pods.put("a", status={})
        await settled()
        assert "the transform returned an object with another name or namespace" in informer.undecodable()["default/a"]
        assert informer.state.phase == "degraded"
        assert cached_version(informer, "a") == "1"
        pods.put("a")
        await settled()
        assert informer.state.phase == "watching"
    assert received == ["add! a 1", "update a 1 3"]
    assert "default/a is skipped: the transform returned an object with another name or namespace" in caplog.text


def picky(pod: Any) -> Any:
    if pod.status is not None and pod.status.phase == "Failed":
        raise LookupError("no such phase")
    return pod


@pytest.mark.conformance("WEAK-08")
async def test_refused_object_is_skipped_until_a_version_passes(caplog: pytest.LogCaptureFixture) -> None:
    async with informer_of("a", "b", transform=picky) as (pods, informer, received):
        caplog.set_level(logging.INFO)
        pods.put("a", status={"phase": "Failed"})
        pods.put("b")
        await settled()
        assert informer.skipped == 1
        for _ in range(2):
            assert informer.state.phase == "degraded"
            assert "default/a" in informer.state.reason
            assert cached_version(informer, "a") == "1"
            pods.expire_watches()  # the list has the refused version, too
            await asyncio.sleep(5)
        assert "default/a is skipped: " in caplog.text
        assert "skipped: default/a" not in caplog.text
        pods.put("a")
        await settled()
        assert informer.state.phase == "watching"
    assert received == ["add! a 1", "add! b 2", "update b 2 4", "update a 1 5"]


@pytest.mark.parametrize("at_once", [False, True])
async def test_delete_of_a_refused_object_has_the_last_cached_state(at_once: bool) -> None:
    async with informer_of("a", transform=picky) as (pods, informer, received):
        with pods.at_once() if at_once else nullcontext():
            pods.put("a", status={"phase": "Failed"})
            pods.delete("a")
        await settled()
        assert informer.state.phase == "watching"
    assert received == ["add! a 1", "tombstone a 1"]


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("nameless", [{}, {"metadata": {"namespace": "default"}}, {"metadata": {"name": 5}}])
async def test_list_with_an_unnamed_item_removes_nothing(queue: QueueName, nameless: dict[str, Any]) -> None:
    async with informer_of("a", "b", options=RunOptions(queue=queue)) as (pods, informer, received):
        del pods.objects["default/b"]
        pods.objects["?"] = nameless
        pods.put("c")
        pods.expire_watches()
        await settled()
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b", "default/c"]
        assert informer.state.phase == "degraded"
        assert "deletes nothing" in informer.state.reason
        del pods.objects["?"]
        pods.expire_watches()
        await asyncio.sleep(60)
        assert informer.state.phase == "watching"
    assert received == ["add! a 1", "add! b 2", "add c 3", "tombstone b 2"]


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
    async with informer_of(pods, decoder=Pod) as (_, informer, _):
        (pod,) = informer.get_store().list()
        assert isinstance(pod, Pod)
        assert pod.status.phase == "Running"


@pytest.mark.conformance("SI-11")
async def test_index_added_while_running_is_complete() -> None:
    pods = Collection()
    pods.put("a", spec={"nodeName": "n1"})
    async with informer_of(pods) as (_, informer, _):
        informer.add_indexers({"node": node_of, "path": "spec.nodeName"})
        assert informer.get_indexer().index_keys("node", "n1") == ["default/a"]
        pods.put("b", spec={"nodeName": "n1"})
        pods.put("a", spec={"nodeName": "n2"})
        await settled()
        for name in ("node", "path"):
            assert informer.get_indexer().index_keys(name, "n1") == ["default/b"]
        with pytest.raises(UsageError, match="index node exists already"):
            informer.add_indexers({"node": node_of})
    with pytest.raises(InformerStopped, match="because it has stopped already"):
        informer.add_indexers({"other": node_of})


@pytest.mark.conformance("WEAK-09")
async def test_object_with_a_failing_index_is_delivered(caplog: pytest.LogCaptureFixture) -> None:
    indexers = {"node": lambda pod: [pod.spec.node_name]}
    async with informer_of("a", indexers=indexers) as (_, informer, received):
        assert informer.get_indexer().by_index("node", "n1") == []
    assert received == ["add! a 1"]
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


async def test_undecodable_item_keeps_the_queued_version(queue: QueueName) -> None:
    seen: list[str] = []

    def refuse_the_third(pod: Any) -> Any:
        seen.append(pod.metadata.resource_version)
        if pod.metadata.resource_version == "3":
            raise ValueError
        return pod

    async with informer_of("a", options=RunOptions(queue=queue), transform=refuse_the_third) as (
        pods,
        informer,
        received,
    ):
        pods.put("a", spec={"nodeName": "n1"})
        with pods.at_once():
            pods.unseen()
            pods.put("a", spec={"nodeName": "n2"})
            pods.expire_watches()
        await settled()
        assert received == ["add! a 1", "update a 1 2"]
        assert informer.state.phase == "degraded"
    assert "3" in seen


def some_pods(count: int = 6) -> Collection:
    pods = Collection()
    for number in range(count):
        pods.put(
            f"pod-{number}",
            metadata={"labels": {"app": f"app-{number % 3}"}},
            spec={"nodeName": f"node-{number % 2}"},
            status={"phase": "Running"},
        )
    return pods


def names(objects: Any) -> list[str]:
    return sorted(obj.metadata.name for obj in objects)


@pytest.mark.parametrize("storage", sorted({*Storage} - {Storage.DICT}))  # the recorder reads attributes
async def test_every_tier_delivers_the_same_notifications(storage: StorageTier) -> None:
    pods = some_pods()
    async with informer_of(pods, storage=storage, fields=["spec.nodeName"]) as (_, _, received):
        pods.put("pod-0", spec={"nodeName": "node-9"})
        pods.delete("pod-1")
        await settled()
    assert received[:6] == [f"add! pod-{n} {n + 1}" for n in range(6)]
    assert received[6:] == ["update pod-0 1 7", "delete pod-1 8"]


@pytest.mark.parametrize("indexers", [{}, {"app": "metadata.labels.app", "node": "spec.nodeName"}])
async def test_list_is_equal_with_and_without_an_index(indexers: dict[str, str]) -> None:
    pods = some_pods(12)
    pods.put("pod-1", "elsewhere", metadata={"labels": {"app": "app-1"}}, spec={"nodeName": "node-1"})
    async with informer_of(pods, indexers=indexers) as (_, informer, _):
        lister = informer.lister()
        assert names(lister.list("app=app-1")) == ["pod-1", "pod-1", "pod-10", "pod-4", "pod-7"]
        assert names(lister.namespaced("elsewhere").list("app=app-1")) == ["pod-1"]
        assert names(lister.list("app=app-1,app!=x", field_selector="spec.nodeName=node-0")) == ["pod-10", "pod-4"]
        assert names(lister.namespaced("default").list(field_selector="spec.nodeName!=node-0,status.phase=")) == []
        assert names(lister.list("app in (app-0,app-2)", field_selector="spec.nodeName=node-1")) == [
            "pod-11", "pod-3", "pod-5", "pod-9"
        ]  # fmt: skip


async def test_list_by_index_visits_matching_objects_only(monkeypatch: pytest.MonkeyPatch) -> None:
    import aioinformer.cache.lister

    looked_at: list[Any] = []

    def noting(item: Any) -> Any:
        looked_at.append(item)
        return labels_of(item)

    monkeypatch.setattr(aioinformer.cache.lister, "labels_of", noting)
    async with informer_of(some_pods(30), indexers={"app": "metadata.labels.app"}) as (_, informer, _):
        informer.lister().list("app=app-1")
    assert len(looked_at) == 10


async def test_earlier_objects_are_packed_with_the_dictionary() -> None:
    pods = some_pods(SAMPLES + 50)
    async with informer_of(pods, storage="compressed") as (_, informer, _):
        cells = informer.get_indexer().store
        await informer.wait_for("default/pod-0", lambda pod: pod is not None)
        for _ in range(10_000):
            if all(isinstance(record, PackedRecord) for record in cells.items()):
                break
            await settled()
        assert {type(record) for record in cells.items()} == {PackedRecord}
        assert informer.lister().namespaced("default").get("pod-7").spec.node_name == "node-1"


async def test_object_that_changes_while_others_are_packed_keeps_its_change() -> None:
    pods = some_pods(SAMPLES + 50)
    async with informer_of(pods, storage="compressed") as (_, informer, _):
        cells = informer.get_indexer().store
        await informer.wait_for("default/pod-0", lambda pod: pod is not None)
        for _ in range(100_000):
            if isinstance(cells.item("default/pod-0"), PackedRecord):
                break
            await asyncio.sleep(0)
        last = f"pod-{SAMPLES - 1}"  # packed last: all after it arrived with the dictionary
        pods.put(last, spec={"nodeName": "another"})
        for _ in range(100_000):
            if all(isinstance(record, PackedRecord) for record in cells.items()):
                break
            await asyncio.sleep(0)
        await settled()
        assert informer.lister().get(f"default/{last}").spec.node_name == "another"
