"""DynamicInformer: an informer of a resource that may not be served."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.factory.dynamic import DynamicInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import Phase
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled


@pytest.mark.parametrize("queue", ["delta", "in_order"])
async def test_withdrawn_resource_is_deleted_and_not_requested(queue: str) -> None:
    pods = Collection("a", "b")
    informer = DynamicInformer(pods, queue=queue)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        informer.serve(False)
        await settled()
        requests = len(pods.requests)
        pods.put("a")
        await asyncio.sleep(600)
        assert len(pods.requests) == requests
        assert pods.open_watches == 0
        assert informer.state.phase is Phase.NOT_FOUND
        assert len(informer.get_store()) == 0
    assert sorted(recorder.received) == ["add! a 1", "add! b 2", "tombstone a 1", "tombstone b 2"]


@pytest.mark.parametrize("queue", ["delta", "in_order"])
@pytest.mark.parametrize("turns", range(0, 30, 3))
async def test_resource_served_again_is_listed(queue: str, turns: int) -> None:
    pods = Collection("a", "b")
    informer = DynamicInformer(pods, queue=queue)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        informer.serve(False)
        for _ in range(turns):
            await asyncio.sleep(0)
        pods.put("c")
        pods.delete("a")
        informer.serve(True)
        await asyncio.sleep(30)
        assert sorted(informer.get_store().list_keys()) == ["default/b", "default/c"]
        pods.put("d")
        await settled()
    known: set[str] = set()
    for words in recorder.received:
        what, name, _ = words.split()
        assert (what.rstrip("!") == "add") == (name not in known)
        (known.add if what.rstrip("!") == "add" else known.remove)(name)
    assert known == {"b", "c", "d"}


@pytest.mark.parametrize("queue", ["delta", "in_order"])
@pytest.mark.parametrize("turns", range(0, 260, 5))
async def test_changes_in_flight_at_withdrawal_are_dropped(queue: str, turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(60)))
    informer = DynamicInformer(pods, queue=queue, options=ReflectorOptions(slice_seconds=1e-9))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        for _ in range(turns):
            await asyncio.sleep(0)
        informer.serve(False)
        await settled()
        for number in range(60):
            pods.delete(f"p{number}")
        version = pods.put("z")
        del recorder.received[:]
        informer.serve(True)
        await settled()
    assert [words.replace("!", "") for words in recorder.received] == [f"add z {version}"]


async def test_unserved_resource_has_not_synced() -> None:
    informer = DynamicInformer(Collection("a"))
    informer.serve(False)
    async with informer:
        await asyncio.sleep(10)
        synced = [informer.has_synced()]
        informer.serve(True)
        await informer.wait_for_sync()
        synced.append(informer.has_synced())
    assert synced == [False, True]
