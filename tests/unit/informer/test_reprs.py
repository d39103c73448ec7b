"""Reprs of the parts: names and counts, but no credentials."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.real_fifo import RealFIFO
from tests.support.collection import Collection

NOBODY: Any = None
QUEUES = [DeltaFIFO(str), RealFIFO(NOBODY, str)]


async def test_informer_and_listers_show_object_counts() -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    assert repr(informer) == "<informer of pods, new, 0 objects, not synced>"
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(0.1)
        lister = informer.lister()
        assert repr(informer) == "<informer of pods, watching, 2 objects>"
        assert repr(lister) == "<Lister of v1/pods, 2 objects in the cache>"
        assert repr(lister.namespaced("default")) == ("<NamespaceLister of v1/pods in default, 2 objects in the cache>")
        assert repr(informer.get_indexer()) == "<Indexer, 2 objects, indices: namespace>"
        assert repr(informer.reflectors()[""]) == "<Reflector informer of pods, watching, version '2'>"


@pytest.mark.parametrize("queue", QUEUES, ids=["delta", "real"])
async def test_queue_shows_its_length(queue: Any) -> None:
    assert repr(queue) == f"<{type(queue).__name__}, 0 queued, not synced, version ''>"
    await queue.add("a")
    await queue.add("b")
    assert repr(queue).startswith(f"<{type(queue).__name__}, 2 queued, ")
    await queue.close()
    assert repr(queue).endswith("closed>")
