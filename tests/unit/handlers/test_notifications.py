"""Handlers with missing functions, filters, and slow handlers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.handlers.notifications import (
    FilteringResourceEventHandler,
    ResourceEventHandlerDetailedFuncs,
    ResourceEventHandlerFuncs,
)
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("on_add", "on_update", "on_delete")


@pytest.mark.conformance("CTL-06", "CTL-08")
@pytest.mark.parametrize("make", [ResourceEventHandlerFuncs, ResourceEventHandlerDetailedFuncs])
@pytest.mark.parametrize("name", NAMES)
async def test_missing_handler_functions_are_skipped(make: Callable[..., Any], name: str) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    delivered: list[Any] = []
    registration = informer.add_event_handler(make(**{name: lambda *what: delivered.append(what)}))
    async with informer:
        await settled()
        pods.put("a")
        pods.delete("a")
        await settled()
    assert (len(delivered), registration.errors) == (1, 0)


@pytest.mark.conformance("CTL-07")
async def test_filter_receives_last_known_state_of_a_missed_delete() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    deleted: list[str] = []
    informer.add_event_handler(
        FilteringResourceEventHandler(
            lambda pod: pod.metadata.name == "a",
            ResourceEventHandlerFuncs(on_delete=lambda tombstone: deleted.append(tombstone.key)),
        )
    )
    async with informer:
        await settled()
        pods.mute()
        pods.delete("a")
        pods.delete("b")
        pods.unseen()
        pods.end_watches()
        await settled()
        await informer.wait_for("default/a", lambda pod: pod is None)
        await settled()
    assert deleted == ["default/a"]


@pytest.mark.conformance("SI-31", "ARC-10")
async def test_slow_handler_receives_every_update() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    delivered: list[str] = []

    async def on_update(old: Any, new: Any) -> None:
        await asyncio.sleep(1)
        delivered.append(new.metadata.resource_version)

    informer.add_event_handler(on_update=on_update)
    async with informer:
        await informer.wait_for_sync()
        versions = [pods.put("a") for _ in range(3000)]
        await informer.wait_for_resource_version(versions[-1])
        assert len(delivered) < 2
        await asyncio.sleep(3001)
    assert delivered == versions
