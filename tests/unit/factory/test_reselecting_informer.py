"""ReselectingInformer: the selection changes while the informer runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.factory.reselecting import ReselectingInformer
from aioinformer.resources.resource import Resource
from tests.support.collection import Collection, Response
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled


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
async def test_only_differences_of_selections_are_delivered(queue: str) -> None:
    first, second = selections()
    recorder = Recorder()
    informer = ReselectingInformer(first, queue=queue)
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


@pytest.mark.conformance("WEAK-30")
async def test_only_the_new_selection_is_watched() -> None:
    first, second = selections()
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        await informer.select(second)
        first.put("x")
        second.put("d")
        await settled()
        assert names(informer) == ["b", "c", "d"]


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


async def test_selection_before_the_start_is_the_first() -> None:
    first, second = selections()
    informer = ReselectingInformer(first)
    await informer.select(second)
    async with informer:
        await informer.wait_for_sync()
        assert names(informer) == ["b", "c"]
    assert first.requests == []


async def test_stop_fails_waits_for_a_selection() -> None:
    first, second = selections()
    second.refuse(500, "InternalError")
    async with ReselectingInformer(first) as informer:
        await informer.wait_for_sync()
        selecting = asyncio.create_task(informer.select(second))
        await settled()
    with pytest.raises(InformerStopped):
        await selecting
    with pytest.raises(InformerStopped):
        await informer.select(first)


async def test_another_resource_is_refused() -> None:
    informer = ReselectingInformer(Collection("a"))
    with pytest.raises(UsageError, match="create another informer"):
        await informer.select(Collection(resource=Resource("", "v1", "configmaps", kind="ConfigMap")))
