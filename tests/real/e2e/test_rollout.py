"""Replicas of a manager are replaced while a real API server asks their webhooks: no review is refused."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, connect
from aioinformer.errors import ApiError
from aioinformer.models import core_v1
from tests.real.e2e.rollouts import LAG, Replica, Service
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster


@pytest.mark.behaviour("C-129")
async def test_rolling_update_refuses_no_review(cluster: RealCluster) -> None:
    async with AsyncExitStack() as stack:
        transport = (await stack.enter_async_context(await connect(kubeconfig=cluster.kubeconfig))).transport
        made = await Client(transport).core.v1.namespaces.create({"metadata": {"generateName": "rollout-"}})
        namespace = made.metadata.name
        client = Client(transport, namespace=namespace)
        service = await stack.enter_async_context(Service())
        module = "tests.real.e2e.hooks_replica"
        old, new = ([Replica(namespace, str(cluster.kubeconfig), module) for _ in range(2)] for _ in range(2))
        for each in (*old, *new):
            stack.push_async_callback(each.kill)
        async with asyncio.timeout(600):
            resource, body = await _registered(client, service)
            stack.push_async_callback(resource.delete, body["metadata"]["name"])
            for each in old:
                await each.start()
                await each.until_ready()
                service.endpoints.append(each.port)
            refused: list[str] = []
            ended = asyncio.Event()
            await _until_called(client)
            async with asyncio.TaskGroup() as tasks:
                loads = [tasks.create_task(_load(client, refused, ended)) for _ in range(4)]
                for before, after in zip(old, new, strict=True):
                    await after.start()
                    await after.until_ready()
                    service.endpoints.append(after.port)
                    ending = tasks.create_task(before.end())
                    await asyncio.sleep(LAG)
                    service.endpoints.remove(before.port)
                    assert await ending == 0
                await asyncio.sleep(1)
                ended.set()
        assert refused == []
        assert sum(each.result() for each in loads) > 200


async def _registered(client: Client, service: Service) -> tuple[Any, dict[str, Any]]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": client.namespace}}
    url = f"https://127.0.0.1:{service.port}/validate/configmaps"
    hook = webhook("check", {"url": url}, rules=[rule], namespaceSelector=selector)
    body = configuration("ValidatingWebhookConfiguration", hook, name=f"hooks.{client.namespace}")
    resource = await client.resource_for(body)
    await resource.create(body)
    return resource, body


async def _until_called(client: Client) -> None:
    """Wait until the API server has noticed the CA."""
    dry = client.with_options(dry_run=True, retry=False).resource(core_v1.CONFIG_MAPS)
    in_a_row = 0
    while in_a_row < 20:
        try:
            await dry.create({"metadata": {"name": "probe"}})
            in_a_row += 1
        except ApiError:
            in_a_row = 0
        await asyncio.sleep(0.05)


async def _load(client: Client, refused: list[str], ended: asyncio.Event) -> int:
    """Write until the end, and return how often."""
    dry = client.with_options(dry_run=True, retry=False).resource(core_v1.CONFIG_MAPS)
    count = 0
    while not ended.is_set():
        try:
            await dry.create({"metadata": {"generateName": "probe-"}})
        except ApiError as error:
            refused.append(str(error))
        count += 1
        await asyncio.sleep(0.01)
    return count
