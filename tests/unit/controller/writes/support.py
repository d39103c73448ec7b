"""Own writes of a controller with informers of a model server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.controller.writes import OwnWrites
from aioinformer.resources import ObjectName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import SharedIndexInformer
    from tests.support.written_collection import Server

KEY = ObjectName("shop", "a")


@asynccontextmanager
async def running(server: Server, *informers: SharedIndexInformer[Any], **options: Any) -> AsyncIterator[OwnWrites]:
    """Run informers, by default one of all ConfigMaps, and yield the own writes of a controller with these inputs."""
    inputs = informers or (server.informer(),)

    def inputs_of(group: str, plural: str) -> list[Any]:
        return [each for each in inputs if (each.resource.group, each.resource.plural) == (group, plural)]

    async with AsyncExitStack() as stack:
        for informer in inputs:
            await stack.enter_async_context(informer)
            await informer.wait_for_sync()
        yield OwnWrites(inputs_of, server, **options)


async def settling(writes: OwnWrites) -> float:
    """Wait for the own writes; return how many seconds that took."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    if writes.pending(KEY):
        await writes.settle(KEY)
    assert not writes.pending(KEY)
    return clock() - begun


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", **metadata}}
