"""Controllers that create a child if the cache shows none, while the cache lags behind the server."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Self

import pytest

from aioinformer.controller.writes import OwnWrites
from aioinformer.errors import AlreadyExists, WriteOutcomeUnknown
from aioinformer.resources import ObjectName
from tests.support.written_collection import CONFIG_MAPS, Server

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest

OWNERS = 100
RUNS = 100
#: Seconds by which the cache is behind.
DELAY = 2.0


class Simulation:
    """A controller of `OWNERS` keys, each of which runs `RUNS` times and wants one child.

    Every second key names its child, so that the server refuses a second one. Others leave the name to the server.
    Children are deleted at random, and some answers are lost, before or after the server has processed the write.

    Args:
        seed: of everything that happens.
        gate: whether the next run waits for own writes.

    Attributes:
        runs: how many runs have read the cache.
        created: how many children were created.
        lost: how many answers were lost.
        duplicates: how many creates reached the server while it had a child of their owner.
    """

    def __init__(self, seed: int, *, gate: bool = True) -> None:
        self.runs = self.created = self.lost = self.duplicates = 0
        self._random = Random(seed)
        self._gate = gate
        self._server = Server()
        self._server.delay = lambda: self._random.random() * DELAY
        self._server.fault = self._fault

    async def run(self) -> Self:
        by_owner = {"owner": "metadata.labels.owner"}
        async with self._server.informer(indexers=by_owner) as informer, asyncio.TaskGroup() as tasks:
            await informer.wait_for_sync()
            self._cache = informer.get_indexer()
            self._writes = OwnWrites(lambda group, plural: (informer,), self._server)
            for number in range(OWNERS):
                tasks.create_task(self._work(ObjectName("shop", f"owner-{number}"), named=number % 2 == 0))
        return self

    async def _work(self, key: ObjectName, *, named: bool) -> None:
        for _ in range(RUNS):
            await asyncio.sleep(self._random.random())
            if self._gate and self._writes.pending(key):
                await self._writes.settle(key)
            with suppress(WriteOutcomeUnknown, AlreadyExists):
                await self._reconcile(key, named=named)
            for child in self._children(key.name):
                if self._random.random() < 0.5:
                    self._server.remove("configmaps", child)

    async def _reconcile(self, key: ObjectName, *, named: bool) -> None:
        self.runs += 1
        if self._cache.by_index("owner", key.name):
            return
        name = {"name": f"{key.name}-child"} if named else {"generateName": f"{key.name}-"}
        body = {"metadata": {**name, "labels": {"owner": key.name}}}
        await self._writes.client(key).resource(CONFIG_MAPS).create(body, namespace=key.namespace)
        self.created += 1

    def _fault(self, request: HttpRequest) -> str:
        chance = self._random.random()
        self.lost += chance < 0.1
        if chance < 0.05:
            return "before"
        assert request.body is not None
        self.duplicates += bool(self._children(json.loads(request.body)["metadata"]["labels"]["owner"]))
        return "after" if chance < 0.1 else ""

    def _children(self, owner: str) -> list[str]:
        objects = self._server.objects["configmaps"]
        return [key for key, obj in objects.items() if obj["metadata"]["labels"]["owner"] == owner]


@pytest.mark.behaviour("C-38")
async def test_no_stale_duplicate_create_in_10000_runs() -> None:
    shown = await Simulation(1).run()
    assert shown.runs == OWNERS * RUNS == 10_000
    assert shown.created > 2000
    assert shown.lost > 200
    assert shown.duplicates == 0


async def test_stale_duplicates_without_waiting() -> None:
    assert (await Simulation(1, gate=False).run()).duplicates > 100
