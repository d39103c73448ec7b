"""Waits for own writes end, and end truthfully, while watches break and lists expire."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection, cut
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


class Writer:
    """Changes a collection at random, waits for each write, and checks what the cache has when the wait ends."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pods = Collection("a", "b")
        self.informer: SharedIndexInformer[Any] = SharedIndexInformer(self.pods)
        #: uid -> the version of the deletion.
        self.deleted: dict[str, int] = {}
        self.ended = 0

    async def written(self, obj: Any) -> None:
        cached = await self.informer.wait_for(obj, timeout=3600)
        uid, version = obj["metadata"]["uid"], int(obj["metadata"]["resourceVersion"])
        if cached is None:
            assert self.deleted[uid] >= version
        else:
            assert (cached.metadata.uid, int(cached.metadata.resource_version) >= version) == (uid, True)
        self.ended += 1

    async def gone(self, obj: Any) -> None:
        assert await self.informer.wait_for(obj, gone=True, timeout=3600) is None
        uid = obj["metadata"]["uid"]
        assert all(each.metadata.uid != uid for each in self.informer.get_indexer().list())
        assert uid in self.deleted
        self.ended += 1

    def step(self) -> Any:
        """Do something, and return the wait for it, or None."""
        pods, name = self.pods, self.random.choice("abc")
        key = f"default/{name}"
        match self.random.randrange(10):
            case 0 | 1 | 2 | 3:
                pods.put(name)
                return self.written(deepcopy(pods.objects[key]))
            case 4 | 5 if key in pods.objects:
                obj = deepcopy(pods.objects[key])
                self.deleted[obj["metadata"]["uid"]] = int(pods.delete(name))
                return self.gone(obj)
            case 6:
                pods.end_watches(cut() if self.random.random() < 0.5 else None)
            case 7:
                pods.expire_watches()
            case 8:
                pods.bookmark()
            case 9:
                pods.refusals.append(cut())
        return None

    async def run(self, steps: int) -> int:
        async with self.informer, asyncio.TaskGroup() as tasks:
            waits = 0
            for _ in range(steps):
                if (wait := self.step()) is not None:
                    tasks.create_task(wait)
                    waits += 1
                if self.random.random() < 0.5:
                    await settled() if self.random.random() < 0.5 else await asyncio.sleep(self.random.random() * 5)
            self.pods.put("z")  # what comes later proves all earlier writes
        return waits


@pytest.mark.parametrize("seed", range(20))
async def test_every_wait_ends_with_what_the_cache_has(seed: int) -> None:
    writer = Writer(seed)
    assert await writer.run(80) == writer.ended > 20
    assert not writer.informer._keys._waiters
    assert not writer.informer._versions._waiters
