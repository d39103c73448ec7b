"""Informers whose resource or selection changes while they run: DynamicInformer, ReselectingInformer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Resource, RunOptions
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.factory import DynamicInformer, ReselectingInformer
from aioinformer.reflector import Phase
from tests.support.collection import Collection, Response
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from aioinformer.informer import QueueName


@pytest.mark.parametrize("queue", ["delta", "in_order"])
async def test_withdrawn_resource_is_deleted_and_not_requested(queue: QueueName) -> None:
    pods = Collection("a", "b")
    informer = DynamicInformer(pods, options=RunOptions(queue=queue))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    informer.serve(False)
    async with informer:
        await asyncio.sleep(10)
        assert (informer.has_synced(), pods.requests) == (False, [])
        informer.serve(True)
        await informer.wait_for_sync()
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
async def test_resource_served_again_is_listed(queue: QueueName, turns: int) -> None:
    pods = Collection("a", "b")
    informer = DynamicInformer(pods, options=RunOptions(queue=queue))
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


@pytest.mark.usefixtures("fine_slices")
@pytest.mark.parametrize("queue", ["delta", "in_order"])
@pytest.mark.parametrize("turns", range(0, 260, 5))
async def test_changes_in_flight_at_withdrawal_are_dropped(queue: QueueName, turns: int) -> None:
    pods = Collection(*(f"p{number}" for number in range(60)))
    informer = DynamicInformer(pods, options=RunOptions(queue=queue))
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


def selections() -> tuple[Collection, Collection]:
    """Return two selections of one server: `a` and `b`, and `b` and `c`, with the same `b`."""
    first, second = Collection("a"), Collection()
    for each in (first, second):
        each.version = 4
        each.put("b")
    second.put("c")
    return first, second


@pytest.fixture
def slow_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it take a second to close a response."""
    close = Response.close

    async def slowly(self: Response) -> None:
        await asyncio.sleep(1)
        await close(self)

    monkeypatch.setattr(Response, "close", slowly)


def names(informer: ReselectingInformer[Any]) -> list[str]:
    return sorted(each.metadata.name for each in informer.lister().list())


@pytest.mark.conformance("WEAK-30")
@pytest.mark.parametrize("queue", ["delta", "in_order"])
async def test_only_differences_of_selections_are_delivered(queue: QueueName) -> None:
    first, second = selections()
    recorder = Recorder()
    informer = ReselectingInformer(first, options=RunOptions(queue=queue))
    informer.add_event_handler(recorder)
    async with informer:
        await informer.wait_for_sync()
        await settled()
        received = len(recorder.received)
        await informer.select(second)
        assert names(informer) == ["b", "c"]
        await settled()
        assert sorted(recorder.received[received:]) == ["add! c 6", "tombstone a 1"]
        assert first.open_watches == 0
        first.put("x")
        second.put("d")
        await settled()
        assert names(informer) == ["b", "c", "d"]
        with pytest.raises(UsageError, match="create another informer"):
            await informer.select(Collection(resource=Resource("", "v1", "configmaps", kind="ConfigMap")))


async def test_selection_before_the_start_and_none_after_the_stop() -> None:
    first, second = selections()
    informer = ReselectingInformer(first)
    await informer.select(second)
    async with informer:
        await informer.wait_for_sync()
        assert names(informer) == ["b", "c"]
        assert first.requests == []
        first.refuse(500, "InternalError")
        selecting = asyncio.create_task(informer.select(first))
        await settled()
    with pytest.raises(InformerStopped):
        await selecting
    with pytest.raises(InformerStopped):
        await informer.select(second)


async def test_cache_keeps_the_old_selection_until_the_new_list() -> None:
    first, second = selections()
    second.refuse(500, "InternalError")
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        selecting = asyncio.create_task(informer.select(second))
        await settled()
        assert names(informer) == ["a", "b"]
        assert not selecting.done()
        await selecting
        assert names(informer) == ["b", "c"]


async def test_batch_of_the_former_selection_does_not_end_the_wait() -> None:
    for turns in range(12):
        first, second = selections()
        second.refuse(500, "InternalError")
        async with ReselectingInformer(first) as informer:
            await informer.wait_for_sync()
            await settled()
            first.put("x")
            for _ in range(turns):
                await asyncio.sleep(0)
            selecting = asyncio.create_task(informer.select(second))
            first.put("y")
            await settled()
            assert not selecting.done(), f"after {turns} turns"
            await selecting
            assert names(informer) == ["b", "c"]


async def test_former_selection_does_not_show_what_is_absent() -> None:
    first, second = selections()
    second.refuse(500, "InternalError")
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        selecting = asyncio.create_task(informer.select(second))
        await settled()
        absent = asyncio.create_task(informer.wait_for("default/c", lambda pod: pod is None, timeout=60))
        await settled()
        assert not absent.done()
        await selecting
        second.delete("c")
        assert await absent is None


async def test_version_of_the_former_selection_does_not_show_a_write() -> None:
    first, second = selections()
    first.version = 20
    first.put("x")
    second.refuse(500, "InternalError")
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        selecting = asyncio.create_task(informer.select(second))
        await settled()
        shown = asyncio.create_task(informer.wait_for(second.objects["default/c"], timeout=60))
        await settled()
        assert not shown.done()
        await selecting
        pod = await shown
        assert pod is not None
        assert pod.metadata.name == "c"


async def test_last_of_several_selections_wins() -> None:
    first, second = selections()
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        await asyncio.gather(informer.select(second), informer.select(first), informer.select(second))
        assert names(informer) == ["b", "c"]


@pytest.mark.usefixtures("slow_close")
async def test_selections_in_a_row_close_the_response() -> None:
    first, second = selections()
    third = Collection("d")
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        selecting = asyncio.create_task(informer.select(second))
        await asyncio.sleep(0.1)
        await asyncio.gather(informer.select(third), selecting)
        assert (names(informer), second.requests) == (["d"], [])
        assert all(response.closed for response in first.responses)


@pytest.mark.usefixtures("slow_close")
async def test_stop_during_a_change_closes_the_response() -> None:
    first, second = selections()
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        selecting = asyncio.create_task(informer.select(second))
        await asyncio.sleep(0.1)
    assert all(response.closed for response in first.responses)
    with pytest.raises(InformerStopped):
        await selecting
