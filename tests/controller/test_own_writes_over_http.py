"""Own writes on a server that answers as kube-apiserver does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedInformerFactory
from aioinformer.controller import OwnWrites
from aioinformer.resources.keys import ObjectName
from aioinformer.transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.client import Client
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.testing import ApiServer

KEY = ObjectName("shop", "web")
SPEC = {"containers": [{"name": "main", "image": "example.com/web"}]}
LABELS = {"app": "web"}


def deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    return {"metadata": {"name": name, "namespace": "shop", "labels": LABELS}, "spec": spec}


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "shop", "labels": LABELS, **metadata}, "spec": SPEC}


UNNAMED = {"metadata": {"generateName": "web-", "namespace": "shop", "labels": LABELS}, "spec": SPEC}
WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create": lambda client: client.apps.v1.deployments.create(deployment("new")),
    "generated name": lambda client: client.core.v1.pods.create(UNNAMED),
    "patch": lambda client: client.apps.v1.deployments.patch("shop/web", {"metadata": {"labels": {"seen": "yes"}}}),
    "no change": lambda client: client.apps.v1.deployments.patch("shop/web", {"metadata": {"labels": LABELS}}),
    "out of the selection": lambda client: client.apps.v1.deployments.patch(
        "shop/web", {"metadata": {"labels": {"app": None}}}
    ),
    "apply": lambda client: client.apps.v1.deployments.apply(deployment("new"), field_manager="test"),
    "status": lambda client: client.apps.v1.deployments.status.patch("shop/web", {"status": {"replicas": 1}}),
    "scale": lambda client: client.apps.v1.deployments.scale.patch("shop/web", {"spec": {"replicas": 2}}),
    "delete": lambda client: client.apps.v1.deployments.delete("shop/web"),
    "delete in the foreground": lambda client: client.apps.v1.deployments.delete("shop/web", propagation="Foreground"),
    "delete with a finalizer": lambda client: client.core.v1.pods.delete("shop/kept", grace=0),
    "delete a pod": lambda client: client.core.v1.pods.delete("shop/web-0", grace=0),
    "delete a collection": lambda client: client.core.v1.pods.delete_collection(LABELS, namespace="shop", grace=0),
    "evict": lambda client: client.core.v1.pods.evict("shop/web-0", grace=0),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.behaviour("C-37", "C-42", "C-43")
async def test_caches_show_each_write_when_the_wait_ends(api_server: ApiServer, name: str) -> None:
    write, changes = WRITES[name], name != "no change"
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    api_server.create("deployments", deployment("web"), "shop")
    api_server.create("pods", pod("web-0"), "shop")
    api_server.create("pods", pod("kept", finalizers=["example.com/kept"]), "shop")
    async with (
        HttpTransport(api_server.url) as transport,
        SharedInformerFactory(transport) as factory,
        asyncio.timeout(30),
    ):
        informers: list[SharedIndexInformer[Any]] = [
            factory.apps.v1.deployments.informer(label_selector="app=web"),
            factory.core.v1.pods.informer(label_selector="app=web"),
        ]
        factory.start()
        await factory.wait_for_cache_sync()
        inputs = {each.resource.plural: [each] for each in informers}
        writes = OwnWrites(lambda group, plural: inputs[plural], transport)
        client = writes.client(KEY)
        async with api_server.fault("slow", verbs=("watch",), seconds=0.05):
            await write(client)
            assert writes.pending(KEY) == changes
            await writes.settle(KEY)
        assert not writes.pending(KEY)
        cached = {obj.metadata.uid: obj.metadata.resource_version for each in informers for obj in each.lister().list()}
        stored: dict[str, str] = {}
        for resource in (client.apps.v1.deployments, client.core.v1.pods):
            listed: Any = await resource.list(LABELS)
            stored |= {obj.metadata.uid: obj.metadata.resource_version for obj in listed}
        assert cached == stored
