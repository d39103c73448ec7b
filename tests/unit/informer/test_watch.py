"""InformerWatch, and waiting for the end of a handler."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.watch import Event, InformerWatch, WatchClosed, until
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection
from tests.support.virtual_time import settled


def text_of(event: Event[Any]) -> str:
    return f"{event.type} {event.object.metadata.name} {event.object.metadata.resource_version}"


async def take(events: InformerWatch[Any], count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [text_of(await anext(events)) for _ in range(count)]


@pytest.mark.conformance("TW-07")
async def test_cached_objects_come_before_changes() -> None:
    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer, InformerWatch(informer) as events:
        assert await take(events, 1) == ["ADDED a 1"]
        pods.put("a")
        pods.put("b")
        await settled()
        pods.delete("a")
        assert await take(events, 3) == ["MODIFIED a 2", "ADDED b 3", "DELETED a 4"]


@pytest.mark.conformance("TW-07")
async def test_missed_deletion_has_the_last_known_state() -> None:
    pods = Collection("a", "b")
    options = ReflectorOptions(streaming_list=False)
    async with SharedIndexInformer(pods, options=options) as informer, InformerWatch(informer) as events:
        await take(events, 2)
        pods.unseen()
        pods.delete("a")
        pods.expire_watches()
        [last] = await take(events, 1)
    assert last.startswith("DELETED a")


@pytest.mark.conformance("TW-07")
async def test_events_end_with_the_informer() -> None:
    informer = SharedIndexInformer(Collection("a"))
    async with InformerWatch(informer) as events:
        async with informer:
            await take(events, 1)
        assert [event async for event in events] == []
        assert [event async for event in events] == []
        with pytest.raises(WatchClosed):
            await until(events, lambda event: True)
    with pytest.raises(InformerStopped):
        async with InformerWatch(informer):
            pass


async def test_events_end_with_a_never_started_informer() -> None:
    informer = SharedIndexInformer(Collection("a"))
    async with InformerWatch(informer) as events:
        informer.retire()
        assert [event async for event in events] == []


async def test_no_events_after_exit() -> None:
    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer:
        async with InformerWatch(informer) as events:
            await take(events, 1)
        assert [event async for event in events] == []


class Slow:
    """A handler whose calls take a minute."""

    def __init__(self) -> None:
        self.ended = 0

    async def on_add(self, obj: Any) -> None:
        await asyncio.sleep(60)
        self.ended += 1


@pytest.mark.conformance("SI-23")
async def test_removed_handler_ends_with_its_last_call() -> None:
    slow = Slow()
    async with SharedIndexInformer(Collection("a", "b")) as informer:
        registration = informer.add_event_handler(slow)
        await informer.wait_for_sync()
        await settled()
        informer.remove_event_handler(registration)
        assert slow.ended == 0
        await registration.wait_for_end()
        assert slow.ended == 1


@pytest.mark.conformance("SI-23")
async def test_never_called_handler_ends_at_its_removal() -> None:
    informer = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(Slow())
    informer.remove_event_handler(registration)
    async with asyncio.timeout(1):
        await registration.wait_for_end()


@pytest.mark.conformance("SI-23")
async def test_handler_cannot_wait_for_its_own_end() -> None:
    errors: list[str] = []

    async def wait(obj: Any) -> None:
        informer.remove_event_handler(registration)
        try:
            await registration.wait_for_end()
        except UsageError as error:
            errors.append(str(error))

    informer = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(on_add=wait)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert len(errors) == 1
    assert "cannot wait for its own end" in errors[0]


@pytest.mark.conformance("SI-23")
async def test_handlers_end_with_the_informer() -> None:
    informer = SharedIndexInformer(Collection("a"))
    registration = informer.add_event_handler(on_add=lambda obj: None)
    async with informer:
        waiting = asyncio.create_task(registration.wait_for_end())
        await informer.wait_for_sync()
        assert not waiting.done()
    async with asyncio.timeout(1):
        await waiting


async def test_watch_can_be_entered_once() -> None:
    async with SharedIndexInformer(Collection("a")) as informer:
        watch = InformerWatch(informer)
        async with watch:
            pass
        with pytest.raises(UsageError, match="entered once; create another one"):
            await watch.__aenter__()
