"""A manager whose own caches are filled from lists that it converts itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.controller import Manager, Request
from aioinformer.webhooks import WebhookServer
from tests.support.converted_classes import gates

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer

OURS = WebhookServer("gates", "shop", port=0, host="127.0.0.1", hosts=("127.0.0.1",))


async def test_manager_is_ready_before_the_cache_that_it_converts(api_server: ApiServer) -> None:
    resource, old = gates("example.com")
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    manager = Manager("gates", client=api_server.url, webhooks=OURS)
    manager.convert(resource)
    reconciled: asyncio.Queue[Any] = asyncio.Queue()

    @manager.controller(old)
    async def watch(request: Request[Any]) -> None:
        if request.object is not None:
            reconciled.put_nowait(request.object.spec.size)

    # Nothing answers yet at the address that the definition names: the list of the old version fails.
    body = resource.crd({"url": "https://127.0.0.1:1/convert"})
    definition = api_server.create("customresourcedefinitions.apiextensions.k8s.io", body)
    api_server.create(resource, {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"replicas": 3}})
    async with asyncio.timeout(50), manager:
        while not manager.ready():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
        assert reconciled.empty()
        definition = api_server.get("customresourcedefinitions.apiextensions.k8s.io", "gates.example.com")
        config = definition["spec"]["conversion"]["webhook"]["clientConfig"]
        config["url"] = f"https://127.0.0.1:{manager.admission.port}/convert"
        api_server.update("customresourcedefinitions.apiextensions.k8s.io", definition)
        assert await reconciled.get() == 3
