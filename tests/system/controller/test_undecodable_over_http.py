"""Widgets that do not fit their class, on the API server of `aioinformer.testing`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from aioinformer import Resource, SharedInformerFactory
from aioinformer.controller import Manager, Request, finalizing
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec resolves it
from aioinformer.prometheus import PrometheusMetrics
from tests.system.controller.test_health_server import get
from tests.system.controller.test_manager_over_http import DEFINITION

if TYPE_CHECKING:
    from aioinformer.errors import DecodeError
    from aioinformer.testing import ApiServer

CLEANUP = "example.com/cleanup"


class Spec(msgspec.Struct, frozen=True):
    size: int


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


WIDGETS = Resource("example.com", "v1", "widgets", kind="Widget", decoder=Widget)


def widget(name: str, size: Any, *finalizers: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


@pytest.mark.behaviour("C-126")
async def test_event_metric_and_probe_tell_of_a_widget(api_server: ApiServer, unused_tcp_port: int) -> None:
    api_server.create("customresourcedefinitions", DEFINITION)
    api_server.create("widgets", widget("bad", "a secret value"))
    options: dict[str, Any] = {"metrics": PrometheusMetrics(registry=CollectorRegistry())}
    manager = Manager("shop", client=api_server.url, health_host="127.0.0.1", health_port=unused_tcp_port, **options)
    sizes: asyncio.Queue[int] = asyncio.Queue()

    @manager.controller(WIDGETS)
    async def widgets(request: Request[Widget]) -> None:
        if request.object is not None:
            sizes.put_nowait(request.object.spec.size)

    async with asyncio.timeout(20), SharedInformerFactory(api_server.url) as factory, manager:
        events: asyncio.Queue[Any] = asyncio.Queue()
        factory.core.v1.events.informer().add_event_handler(on_add=events.put_nowait)
        factory.start()
        event = await events.get()
        assert (event.type, event.reason) == ("Warning", "Undecodable")
        assert event.involved_object.uid == api_server.get("widgets", "bad")["metadata"]["uid"]
        assert "spec.size" in event.message
        assert "secret" not in event.message
        status, text = await get(unused_tcp_port, "/readyz")
        assert status == 503
        assert "controller widgets failed: 1 object cannot be decoded (default/bad), and no handler" in text
        metrics = (await get(unused_tcp_port, "/metrics"))[1].splitlines()
        assert [each[-4:] for each in metrics if each.startswith("informer_undecodable_objects{")] == [" 1.0"]
        api_server.patch("widgets", "bad", {"spec": {"size": 3}})
        assert await sizes.get() == 3
        assert (await get(unused_tcp_port, "/readyz"))[0] == 200


@pytest.mark.behaviour("C-125")
async def test_handler_lets_a_deleted_widget_go(api_server: ApiServer) -> None:
    api_server.create("customresourcedefinitions", DEFINITION)
    api_server.create("widgets", widget("bad", "large", CLEANUP))
    api_server.delete("widgets", "bad")
    manager = Manager("shop", client=api_server.url)
    sizes: list[Any] = []

    @manager.controller(WIDGETS)
    async def widgets(request: Request[Widget]) -> None:
        if request.object is None:
            manager.stop()

    @widgets.undecodable
    async def release(request: Request[Any], error: DecodeError) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending and request.object is not None:
                sizes.append(request.object["spec"]["size"])

    async with asyncio.timeout(20):
        await manager.run()
    assert (sizes, api_server.list("widgets")) == (["large"], [])
