"""Managers and controllers over HTTP, with the API server of `aioinformer.testing`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.client import Client
from aioinformer.controller import Manager, Request
from aioinformer.models import core_v1
from aioinformer.transport import HttpTransport

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_reconciler_makes_a_child_and_sees_it(api_server: ApiServer) -> None:
    manager = Manager("shop", client=api_server.url)
    seen: asyncio.Queue[list[str]] = asyncio.Queue()

    @manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS])
    async def maps(request: Request[Any]) -> None:
        if request.name != "parent":
            return
        children = [each.metadata.name for each in request.owned(core_v1.SECRETS)]
        seen.put_nowait(children)
        if not children:
            owner = {**request.reference.to_dict(), "controller": True}
            del owner["namespace"]
            await request.client.core.v1.secrets.create(
                {"metadata": {"name": "child", "namespace": request.namespace, "ownerReferences": [owner]}}
            )

    async with manager, HttpTransport(api_server.url) as transport:
        await Client(transport).core.v1.configmaps.create(config_map("parent"))
        assert await seen.get() == []
        assert await seen.get() == ["child"]
