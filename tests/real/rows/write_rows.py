"""Writes of all kinds, for servers that answer over HTTP: afterwards, the caches agree with the server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from aioinformer import Client, SharedInformerFactory
from aioinformer.controller import OwnWrites
from aioinformer.resources.keys import ObjectName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.transport import Request, Response, Transport

LABELS = {"app": "web"}
SPEC = {"containers": [{"name": "main", "image": "example.com/web"}]}
FINALIZERS = ["example.com/kept"]
#: Seconds by which watches are late.
LAG = 0.05


class Row:
    """A write, and the objects that are there before.

    Args:
        write: sends it.
        changes: the server stores another version of an object.
    """

    def __init__(self, write: Callable[[Client], Awaitable[Any]], *, changes: bool = True) -> None:
        self.write = write
        self.changes = changes


def deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    return {"metadata": {"name": name, "labels": LABELS}, "spec": spec}


def pod(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS, **metadata}, "spec": SPEC}


async def remove_last_finalizer(client: Client) -> None:
    await client.core.v1.pods.delete("kept", grace=0)
    await client.core.v1.pods.patch("kept", {"metadata": {"finalizers": None}})


ROWS: Mapping[str, Row] = {
    "create": Row(lambda client: client.apps.v1.deployments.create(deployment("new"))),
    "generated name": Row(lambda client: client.core.v1.pods.create(pod(generateName="web-"))),
    "patch": Row(lambda client: client.apps.v1.deployments.patch("web", {"metadata": {"labels": {"seen": "yes"}}})),
    "no change": Row(
        lambda client: client.apps.v1.deployments.patch("web", {"metadata": {"labels": LABELS}}), changes=False
    ),
    "out of the selection": Row(
        lambda client: client.apps.v1.deployments.patch("web", {"metadata": {"labels": {"app": None}}})
    ),
    "apply": Row(lambda client: client.apps.v1.deployments.apply(deployment("new"), field_manager="test")),
    "status": Row(lambda client: client.apps.v1.deployments.status.patch("web", {"status": {"replicas": 1}})),
    "scale": Row(lambda client: client.apps.v1.deployments.scale.patch("web", {"spec": {"replicas": 2}})),
    "delete": Row(lambda client: client.apps.v1.deployments.delete("web")),
    "delete in the foreground": Row(lambda client: client.apps.v1.deployments.delete("web", propagation="Foreground")),
    "delete with a finalizer": Row(lambda client: client.core.v1.pods.delete("kept", grace=0)),
    "remove the last finalizer": Row(remove_last_finalizer),
    "delete a pod": Row(lambda client: client.core.v1.pods.delete("web-0", grace=0)),
    "delete a collection": Row(lambda client: client.core.v1.pods.delete_collection(LABELS, grace=0)),
    "evict": Row(lambda client: client.core.v1.pods.evict("web-0", grace=0)),
}


async def check_row(row: Row, transport: Transport, namespace: str) -> None:
    """Send a write, wait, and compare the caches with the server, in an empty namespace."""
    plain = Client(transport, namespace=namespace, field_manager="test")
    await plain.apps.v1.deployments.create(deployment("web"))
    await plain.core.v1.pods.create(pod(name="web-0"))
    await plain.core.v1.pods.create(pod(name="kept", finalizers=FINALIZERS))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(30))
        factory = await stack.enter_async_context(SharedInformerFactory(_Late(transport), namespace=namespace))
        informers: list[SharedIndexInformer[Any]] = [
            factory.apps.v1.deployments.informer(label_selector="app=web"),
            factory.core.v1.pods.informer(label_selector="app=web"),
        ]
        factory.start()
        await factory.wait_for_cache_sync()
        inputs = {each.resource.plural: [each] for each in informers}
        writes = OwnWrites(lambda group, plural: inputs[plural], plain)
        key = ObjectName(namespace, "web")
        await row.write(writes.client(key))
        assert writes.pending(key) == row.changes
        await writes.settle(key)
        assert not writes.pending(key)
        cached = {obj.metadata.uid: obj.metadata.resource_version for each in informers for obj in each.lister().list()}
        stored: dict[str, str] = {}
        for resource in (plain.apps.v1.deployments, plain.core.v1.pods):
            listed: Any = await resource.list(LABELS)
            stored |= {obj.metadata.uid: obj.metadata.resource_version for obj in listed}
        assert cached == stored


class _Late:
    """A transport whose watches are late."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Response:
        response = await self._transport.request(request)
        return _LateResponse(response) if ("watch", "true") in request.query else response


class _LateResponse:
    def __init__(self, response: Response) -> None:
        self._response = response
        self.status, self.headers = response.status, response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            await asyncio.sleep(LAG)
            yield chunk

    async def close(self) -> None:
        await self._response.close()
