"""The cache of an informer: keys, add and update, indices, listers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.store import NAMESPACE_INDEX
from aioinformer.errors import NotFound
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.informer.pipeline import QueueKind
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.resources.resource import Resource
from tests.support.cluster import Cluster, built_in
from tests.support.collection import Collection, line
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.informer.pipeline import QueueName

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


@pytest.mark.conformance("SI-02")
async def test_objects_are_cached_by_namespace_and_name() -> None:
    pods = Collection()
    pods.put("a", "one")
    pods.put("a", "two")
    informer = SharedIndexInformer(pods)
    async with informer:
        await informer.wait_for_sync()
        assert sorted(informer.get_store().list_keys()) == ["one/a", "two/a"]
        pods.put("a", "one", metadata={"uid": "another"})
        pods.delete("a", "two")
        await settled()
        assert informer.get_store().list_keys() == ["one/a"]


@pytest.mark.conformance("SI-02")
async def test_cluster_scoped_objects_are_cached_by_name() -> None:
    nodes = Collection(resource=built_in("v1/nodes"))
    nodes.put("n1", "")
    informer = SharedIndexInformer(nodes)
    async with informer:
        await informer.wait_for_sync()
        assert informer.get_store().list_keys() == ["n1"]


@pytest.mark.conformance("CTL-12")
@pytest.mark.parametrize("queue", list(QueueKind))
async def test_cache_content_decides_between_add_and_update(queue: QueueName) -> None:
    pods = Collection("a")
    recorder = Recorder()
    informer = SharedIndexInformer(pods, queue=queue)
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        for kind, name, version in ("MODIFIED", "b", 7), ("ADDED", "a", 8), ("ADDED", "b", 9):
            metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
            pods.send(line(kind, {"metadata": metadata}))
            await settled()
    assert recorder.received == ["add! a 1", "add b 7", "update a 1 8", "update b 7 9"]


@pytest.mark.conformance("ARC-01")
@pytest.mark.parametrize("made_by", ["itself", "a factory"])
async def test_default_queue_groups_by_object_and_delivers_deletes(
    made_by: str,
) -> None:
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


@pytest.mark.conformance("ARC-04")
@pytest.mark.parametrize("queue", list(QueueKind))
@pytest.mark.parametrize("missed", [False, True])
async def test_update_is_cached_and_indexed_before_it_is_delivered(queue: QueueName, missed: bool) -> None:
    pods = Collection()
    pods.put("a", metadata={"labels": {"app": "old"}})
    informer = SharedIndexInformer(pods, queue=queue, indexers={"app": lambda pod: [pod.metadata.labels["app"]]})
    seen: list[Any] = []

    def on_update(old: Any, new: Any) -> None:
        indexer = informer.get_indexer()
        cached = indexer.get_by_key("default/a")
        assert cached is not None
        seen.append((cached.metadata.labels["app"], indexer.list_index_func_values("app")))

    informer.add_event_handler(on_update=on_update)
    async with informer:
        await informer.wait_for_sync()
        if missed:
            pods.mute()
        pods.put("a", metadata={"labels": {"app": "new"}})
        if missed:
            pods.expire_watches()
        await settled()
        await informer.wait_for("default/a", lambda pod: pod is not None and pod.metadata.labels["app"] == "new")
    assert seen == [("new", ["new"])]


@pytest.mark.conformance("SI-12")
async def test_store_from_before_the_start_shows_the_cache() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    store, indexer = informer.get_store(), informer.get_indexer()
    assert store.list() == []
    async with informer:
        await informer.wait_for_sync()
        assert store.list_keys() == indexer.index_keys(NAMESPACE_INDEX, "default") == ["default/a"]
        pods.put("b")
        await settled()
        assert sorted(store.list_keys()) == sorted(indexer.index_keys(NAMESPACE_INDEX, "default"))
    assert sorted(store.list_keys()) == ["default/a", "default/b"]


@pytest.mark.conformance("STO-15")
def test_get_indexers_returns_a_copy() -> None:
    indexer = SharedIndexInformer(Collection()).get_indexer()
    mine = indexer.get_indexers()
    mine.clear()
    assert list(indexer.get_indexers()) == [NAMESPACE_INDEX]


@pytest.mark.conformance("FAC-12")
async def test_custom_resource_lister_raises_not_found_as_the_server() -> None:
    widgets = Collection(resource=WIDGETS)
    widgets.put("w", "shop", spec={"size": 3})
    informer = SharedIndexInformer(widgets)
    async with informer:
        await informer.wait_for_sync()
        lister = informer.lister().namespaced("shop")
        assert lister.get("w")["spec"]["size"] == 3
        with pytest.raises(NotFound, match=r'widgets\.example\.com "gone" not found') as raised:
            lister.get("gone")
    assert (raised.value.status, raised.value.reason) == (404, "NotFound")
