"""A manager converts between the versions of a resource, for a real API server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, Conflict, connect
from aioinformer.controller import Manager
from aioinformer.models import apiextensions_v1
from aioinformer.webhooks import WebhookServer
from tests.support.converted_classes import gates
from tests.support.limits import watch_certificates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.real_cluster import RealCluster


@asynccontextmanager
async def converting(cluster: RealCluster, group: str) -> AsyncIterator[tuple[Client, Any, Any]]:
    """Serve the conversion, and create the definition; yield the client, and the resource in both versions."""
    resource, old = gates(group)
    async with AsyncExitStack() as stack:
        transport = (await stack.enter_async_context(await connect(kubeconfig=cluster.kubeconfig))).transport
        client = Client(transport, namespace="default", field_manager="tests")
        webhooks = WebhookServer(f"gates-{group.partition('.')[0]}", port=0, host="127.0.0.1", hosts=("127.0.0.1",))
        manager = Manager("gates", client=transport, webhooks=webhooks)
        manager.convert(resource)
        await stack.enter_async_context(manager)
        body = resource.crd({"url": f"https://127.0.0.1:{manager.admission.port}/convert"})
        definitions = client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
        await definitions.create(body)
        stack.push_async_callback(definitions.delete, body["metadata"]["name"])
        await answering(client.resource(resource), client.resource(old))
        yield client, client.resource(resource), client.resource(old)


async def answering(new: Any, old: Any) -> None:
    """Wait until the API server reaches the webhook, in both directions."""
    async with asyncio.timeout(200):
        while True:
            try:
                await old.apply({"metadata": {"name": "probe"}, "spec": {"size": 1}}, field_manager="probe")
                await new.get("default/probe")
                await old.delete("default/probe")
            except Exception:  # the definition is not served yet, or the CA is not in it
                await asyncio.sleep(0.2)
            else:
                return


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the definition more often."""
    watch_certificates(monkeypatch, 0.5)


async def test_two_managers_apply_in_two_versions(cluster: RealCluster) -> None:
    async with converting(cluster, "applied.example.com") as (_, new, old):
        ports = [{"name": "http", "port": 80}]
        body: dict[str, Any] = {"size": 2, "address": "web/eu", "weight": "7", "ports": ports, "legacy": "x"}
        await old.apply({"metadata": {"name": "gate"}, "spec": body}, field_manager="old")
        found = await new.get("default/gate")
        assert (found.spec.replicas, found.spec.host, found.spec.zone, found.spec.weight) == (2, "web", "eu", 7)
        spec = {"extra": {"a": 1}, "ports": [{"name": "dns", "number": 53, "protocol": "UDP"}]}
        await new.apply({"metadata": {"name": "gate"}, "spec": spec}, field_manager="new")
        before = await old.get("default/gate")
        assert [(each.name, each.port) for each in before.spec.ports] == [("http", 80), ("dns", 53)]
        assert before.spec.legacy == "x"
        # The old manager changes one field, and gives up another one.
        del body["weight"]
        await old.apply({"metadata": {"name": "gate"}, "spec": {**body, "size": 5}}, field_manager="old")
        found = await new.get("default/gate")
        assert (found.spec.replicas, found.spec.weight, found.spec.extra) == (5, None, {"a": 1})
        assert {each.name: each.protocol for each in found.spec.ports} == {"http": None, "dns": "UDP"}
        # The new manager gives up its port: the other one stays.
        await new.apply({"metadata": {"name": "gate"}, "spec": {"extra": {"a": 2}}}, field_manager="new")
        found = await old.get("default/gate")
        assert [(each.name, each.port) for each in found.spec.ports] == [("http", 80)]
        assert (found.spec.legacy, found.spec.address) == ("x", "web/eu")


async def test_conflicts_are_those_of_the_fields_in_any_version(cluster: RealCluster) -> None:
    async with converting(cluster, "conflicts.example.com") as (_, new, old):
        await old.apply({"metadata": {"name": "gate"}, "spec": {"size": 2, "weight": "7"}}, field_manager="old")
        with pytest.raises(Conflict, match=r"conflict with \"old\": \.spec\.size"):
            await new.apply({"metadata": {"name": "gate"}, "spec": {"replicas": 3}}, field_manager="new")
        await new.apply({"metadata": {"name": "gate"}, "spec": {"replicas": 2}}, field_manager="new")
