"""The next run of a key waits until the caches show the key's own writes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.controller import OwnWrites
from aioinformer.resources.keys import ObjectName
from tests.controller.writes.model import CONFIG_MAPS, Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.informer.shared_informer import SharedIndexInformer

KEY = ObjectName("shop", "a")


@asynccontextmanager
async def running(server: Server, *informers: SharedIndexInformer[Any], **options: Any) -> AsyncIterator[OwnWrites]:
    """Run informers, those of all ConfigMaps by default, and yield the own writes of a controller with them."""
    async with AsyncExitStack() as stack:
        for informer in informers or (server.informer(),):
            await stack.enter_async_context(informer)
            await informer.wait_for_sync()
            informers = informers or (informer,)

        def inputs(group: str, plural: str) -> list[Any]:
            return [each for each in informers if (each.resource.group, each.resource.plural) == (group, plural)]

        yield OwnWrites(inputs, server, **options)


async def test_run_waits_for_create() -> None:
    server = Server()
    server.delay = lambda: 2.0
    async with running(server) as writes:
        maps = writes.client(KEY).resource(CONFIG_MAPS).namespaced("shop")
        assert not writes.pending(KEY)
        await maps.create({"metadata": {"name": "b"}})
        assert writes.pending(KEY)
        begun = asyncio.get_running_loop().time()
        await writes.settle(KEY)
        assert asyncio.get_running_loop().time() - begun >= 2
        assert not writes.pending(KEY)
        assert len(writes) == 0
        assert server.reads == []
