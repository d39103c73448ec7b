"""Objects whose view fails after they were decoded, for example by an erratic decoder: they are skipped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.recorder import Recorder
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The states whose view fails, such as "a 1"."""
    states: set[str] = set()
    to_view: Any = ObjectType.to_view

    def fickle(self: ObjectType[Any]) -> Any:
        def shown(record: Any) -> Any:
            if f"{record.name} {record.resource_version}" in states:
                raise ValueError("not again")
            return to_view.fget(self)(record)

        return shown

    monkeypatch.setattr(ObjectType, "to_view", property(fickle))
    return states


async def test_late_handler_gets_the_others_and_syncs(hidden: set[str]) -> None:
    errors: list[str] = []
    informer = SharedIndexInformer(
        Collection("a", "b", "c"), watch_error_handler=lambda error: errors.append(str(error))
    )
    async with informer:
        await informer.wait_for_sync()
        hidden.add("b 2")
        recorder = Recorder()
        late = informer.add_event_handler(recorder)
        await late.wait_for_sync()
        assert recorder.received == ["add! a 1", "add! c 3"]
        assert (late.errors, informer.skipped, informer.is_stopped()) == (1, 1, False)
    assert errors == ["default/b cannot be decoded: ValueError"]


async def test_failing_update_is_not_delivered_or_cached(hidden: set[str]) -> None:
    pods, recorder = Collection("a"), Recorder()
    hidden.add("a 2")
    informer = SharedIndexInformer(pods)
    informer.add_event_handler(recorder)
    async with informer:
        await informer.wait_for_sync()
        pods.put("a")
        pods.put("b")
        await settled()
        assert sorted(pod.metadata.resource_version for pod in informer.get_store().list()) == ["1", "3"]
        pods.put("a")
        await settled()
    assert recorder.received == ["add! a 1", "add b 3", "update a 1 4"]


async def test_list_skips_failing_objects(hidden: set[str]) -> None:
    hidden.add("a 1")
    informer = SharedIndexInformer(Collection("a", "b"))
    async with informer:
        await informer.wait_for_sync()
        assert informer.get_store().list_keys() == ["default/b"]
        assert informer.skipped == 1


async def test_failing_old_state_is_left_out(hidden: set[str]) -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    received: list[str] = []
    informer.add_event_handler(
        on_add=lambda obj: received.append(f"add {obj.metadata.name} {obj.metadata.resource_version}"),
        on_update=lambda old, new: received.append("update"),
        on_delete=lambda gone: received.append(f"delete {gone.key} {gone.obj}"),
    )
    async with informer:
        await settled()
        hidden |= {"a 1", "b 4"}
        pods.put("a")
        pods.delete("b")
        await settled()
    assert received == ["add a 1", "add b 2", "add a 3", "delete default/b None"]


async def test_resync_skips_failing_objects(hidden: set[str]) -> None:
    informer = SharedIndexInformer(Collection("a", "b"), 10)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        hidden.add("a 1")
        await asyncio.sleep(15)
        assert recorder.received[2:] == ["update b 2 2"]
