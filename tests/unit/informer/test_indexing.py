"""Adding index functions to a running informer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")

NAMES = [f"pod-{number}" for number in range(64)]
#: So short that each check of the clock yields to the loop.
TINY = ReflectorOptions(slice_seconds=1e-9)


def by_name(pod: Any) -> list[str]:
    return [pod.metadata.name]


async def test_adding_indexers_yields_to_other_tasks() -> None:
    informer = SharedIndexInformer(Collection(*NAMES), options=TINY)
    async with informer:
        await informer.wait_for_sync()
        adding = asyncio.create_task(informer.add_indexers_in_slices({"name": by_name}))
        turns = 0
        while not adding.done():
            await asyncio.sleep(0)
            turns += 1
        await adding
    assert turns >= 8
    assert [pod.metadata.name for pod in informer.get_indexer().by_index("name", "pod-7")] == ["pod-7"]


async def test_cancelled_addition_adds_no_indexers() -> None:
    informer = SharedIndexInformer(Collection(*NAMES), options=TINY)
    async with informer:
        await informer.wait_for_sync()
        adding = asyncio.create_task(informer.add_indexers_in_slices({"name": by_name}))
        await asyncio.sleep(0)
        adding.cancel()
        await asyncio.wait({adding})
        assert "name" not in informer.get_indexer().get_indexers()
        informer.add_indexers({"name": by_name})


async def test_unreferenced_cache_is_freed_outside_the_loop() -> None:
    informer = SharedIndexInformer(Collection(*NAMES))
    async with informer:
        await informer.wait_for_sync()
    cells = informer.get_indexer().store
    items, gone = cells._items, weakref.ref(cells)
    del informer, cells
    gc.collect()
    assert gone() is None
    assert len(items) == len(NAMES)
    await settled()
    assert not items
