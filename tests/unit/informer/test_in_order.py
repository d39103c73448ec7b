"""Informers with the in-order queue: their additional guarantees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.errors import UsageError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import settled

#: Yield to the loop as often as possible.
IN_ORDER: dict[str, Any] = {"queue": "in_order", "options": ReflectorOptions(slice_seconds=1e-9)}


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
        factory.core.v1.pods.informer(queue="in_order").add_event_handler(recorder)
        await factory.wait_for_cache_sync()
        with pods.at_once():
            for name in ("a", "b", "a"):
                pods.put(name)
        await settled()
    assert recorder.received[2:] == ["update a 1 3", "update b 2 4", "update a 3 5"]


def test_unknown_queue_is_refused() -> None:
    with pytest.raises(UsageError, match="queue='fifo' does not exist; choose one of delta, in_order"):
        SharedIndexInformer(Collection(), queue="fifo")  # type: ignore[call-overload]
