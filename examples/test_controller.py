"""A small controller and its test: it creates a config map "settings" in every namespace."""

import asyncio

from aioinformer import (
    AioinformerError,
    AlreadyExists,
    Client,
    HttpTransport,
    RateLimitingQueue,
    SharedInformerFactory,
)
from aioinformer.testing import ApiServer, FaultController

SETTINGS = {"metadata": {"name": "settings"}}


async def keep_settings(factory: SharedInformerFactory, client: Client) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    namespaces = factory.core.v1.namespaces.informer()
    namespaces.add_event_handler(on_add=lambda namespace: queue.add(namespace.metadata.name))
    factory.start()
    async with queue:
        async for name in queue:
            try:
                await client.core.v1.configmaps.create(SETTINGS, namespace=name)
            except AlreadyExists:
                pass
            except AioinformerError:
                queue.add_rate_limited(name)


async def test_controller_catches_up_after_an_outage(
    api_server: ApiServer,
    api_faults: FaultController,
    informer_factory: SharedInformerFactory,
) -> None:
    settings = informer_factory.core.v1.configmaps.informer()
    async with HttpTransport(api_server.url) as transport:
        controller = asyncio.create_task(keep_settings(informer_factory, Client(transport)))
        await settings.wait_for("default/settings", timeout=10)
        async with api_faults("outage"):
            api_server.create("namespaces", {"metadata": {"name": "shop"}})
            api_server.compact()  # the server forgets the history, so the informer must relist
        await settings.wait_for("shop/settings", timeout=10)
        controller.cancel()
