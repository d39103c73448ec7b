"""A small controller and its test: it creates a config map "settings" in every namespace."""

import asyncio

from aiohttp import ClientError
from kubernetes_asyncio.client import ApiClient, ApiException, CoreV1Api, V1ConfigMap, V1ObjectMeta

from aioinformer import RateLimitingQueue, SharedInformerFactory
from aioinformer.testing import ApiServer, FaultController

SETTINGS = V1ConfigMap(metadata=V1ObjectMeta(name="settings"))


async def keep_settings(factory: SharedInformerFactory, client: ApiClient) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    namespaces = factory.core.v1.namespaces.informer()
    namespaces.add_event_handler(on_add=lambda namespace: queue.add(namespace.metadata.name))
    factory.start()
    async with queue:
        async for name in queue:
            try:
                await CoreV1Api(client).create_namespaced_config_map(name, SETTINGS)
            except (ApiException, ClientError, OSError) as error:
                if getattr(error, "status", 0) != 409:  # 409: it exists already
                    queue.add_rate_limited(name)


async def test_controller_catches_up_after_an_outage(
    api_server: ApiServer,
    api_client: ApiClient,
    api_faults: FaultController,
    informer_factory: SharedInformerFactory,
) -> None:
    settings = informer_factory.core.v1.configmaps.informer()
    controller = asyncio.create_task(keep_settings(informer_factory, api_client))
    await settings.wait_for("default/settings", timeout=10)
    async with api_faults("outage"):
        api_server.create("namespaces", {"metadata": {"name": "shop"}})
        api_server.compact()  # the server forgets the history, so the informer must relist
    await settings.wait_for("shop/settings", timeout=10)
    controller.cancel()
