"""Informers with storage tiers, declared fields and indexes by path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.objects.compression import SAMPLES, PackedRecord
from aioinformer.cache.objects.record import labels_of
from aioinformer.errors import UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.cache.objects.storage import StorageTier

pytestmark = pytest.mark.usefixtures("queue")


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


@pytest.mark.parametrize("storage", ["bytes", "stripped", "compressed", "projection", "metadata"])
async def test_every_tier_delivers_the_same_notifications(storage: StorageTier) -> None:
    pods = some_pods()
    informer = SharedIndexInformer(pods, storage=storage, fields=["spec.nodeName"])
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.put("pod-0", spec={"nodeName": "node-9"})
        pods.delete("pod-1")
        await settled()
    assert recorder.received[:6] == [f"add! pod-{n} {n + 1}" for n in range(6)]
    assert recorder.received[6:] == ["update pod-0 1 7", "delete pod-1 8"]


@pytest.mark.conformance("SI-01", "WEAK-22")
async def test_path_index_follows_changes() -> None:
    pods = some_pods()
    informer = SharedIndexInformer(pods, indexers={"node": "spec.nodeName"})
    async with informer:
        await settled()
        assert names(informer.get_indexer().by_index("node", "node-1")) == ["pod-1", "pod-3", "pod-5"]
        pods.put("pod-1", spec={"nodeName": "node-0"})
        await settled()
        assert names(informer.get_indexer().by_index("node", "node-1")) == ["pod-3", "pod-5"]


async def test_path_index_added_while_running_is_complete() -> None:
    informer = SharedIndexInformer(some_pods())
    async with informer:
        await settled()
        informer.add_indexers({"app": "metadata.labels.app"})
        assert names(informer.get_indexer().by_index("app", "app-2")) == ["pod-2", "pod-5"]


@pytest.mark.parametrize("indexers", [{}, {"app": "metadata.labels.app", "node": "spec.nodeName"}])
async def test_list_is_equal_with_and_without_an_index(indexers: dict[str, str]) -> None:
    pods = some_pods(12)
    pods.put("pod-1", "elsewhere", metadata={"labels": {"app": "app-1"}}, spec={"nodeName": "node-1"})
    informer = SharedIndexInformer(pods, indexers=indexers)
    async with informer:
        await settled()
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
    informer = SharedIndexInformer(some_pods(30), indexers={"app": "metadata.labels.app"})
    async with informer:
        await settled()
        informer.lister().list("app=app-1")
    assert len(looked_at) == 10


async def test_earlier_objects_are_packed_with_the_dictionary() -> None:
    pods = some_pods(SAMPLES + 50)
    informer = SharedIndexInformer(pods, storage="compressed")
    async with informer:
        await informer.wait_for_sync()
        cells = informer.get_indexer().store
        await informer.wait_for("default/pod-0", lambda pod: pod is not None)
        for _ in range(10_000):
            if all(isinstance(record, PackedRecord) for record in cells.items()):
                break
            await settled()
        assert {type(record) for record in cells.items()} == {PackedRecord}
        assert informer.lister().namespaced("default").get("pod-7").spec.node_name == "node-1"


async def test_invalid_path_is_refused_at_construction() -> None:
    with pytest.raises(UsageError, match="field path"):
        SharedIndexInformer(some_pods(), fields=["spec..nodeName"])
