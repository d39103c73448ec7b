"""A small controller, tested through an outage: every namespace is to have a config map "settings"."""

import asyncio

from aiohttp import ClientError
from kubernetes_asyncio.client import ApiClient, ApiException, CoreV1Api, V1ConfigMap, V1ObjectMeta

from aioinformer import RateLimitingQueue, SharedInformerFactory
from aioinformer.testing import ApiServer, FaultController

SETTINGS = V1ConfigMap(metadata=V1ObjectMeta(name="settings"))


async def keep_settings(factory: SharedInformerFactory, client: ApiClient) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    factory.core.v1.namespaces.informer().add_event_handler(on_add=lambda namespace: queue.add(namespace.metadata.name))
    factory.start()
    async with queue:
        async for name in queue:
            try:
                await CoreV1Api(client).create_namespaced_config_map(name, SETTINGS)
            except (ApiException, ClientError, OSError) as error:
                if getattr(error, "status", 0) != 409:  # what is there already needs no other try
                    queue.add_rate_limited(name)


async def test_what_happened_in_an_outage_is_made_up_for(
    api_server: ApiServer, api_client: ApiClient, api_faults: FaultController, informer_factory: SharedInformerFactory
) -> None:
    settings = informer_factory.core.v1.configmaps.informer()
    controller = asyncio.create_task(keep_settings(informer_factory, api_client))
    await settings.wait_for("default/settings", timeout=10)
    async with api_faults("outage"):
        api_server.create("namespaces", {"metadata": {"name": "shop"}})
        api_server.compact()  # nobody can be told any more what happened
    await settings.wait_for("shop/settings", timeout=10)
    controller.cancel()
