"""What the helpers of controllers do with parts of objects and changing definitions, and waits for own writes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Client, Condition, Resource, SharedInformerFactory, evolve
from aioinformer.controller import Manager, Request, finalizing, set_status
from aioinformer.controller.writes import OwnWrites
from aioinformer.errors import ApiError, ApiNotFound
from aioinformer.models import ObjectMeta, apps_v1
from aioinformer.resources import ObjectName, object_name
from tests.support.bench import CLEANUP, Bench, definition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from aioinformer import SharedIndexInformer
    from aioinformer.transport import HttpRequest, Response, Transport


OTHER = "example.org/other"
READY = Condition("Ready", "True", "There")


class Writes:
    """A transport that records the paths of patches."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.paths: list[str] = []

    async def request(self, request: HttpRequest) -> Response:
        if request.method == "PATCH":
            self.paths.append(request.path.partition("/web")[2])
        return await self._transport.request(request)

    async def close(self) -> None:
        """The owner closes the transport."""

    def sent(self) -> list[str]:
        """Return the subresources of the patches since the last call, "" for the object."""
        found, self.paths = self.paths, []
        return found


@asynccontextmanager
async def widgets_of(client: Client, **options: Any) -> AsyncIterator[Resource[Any]]:
    """Define a kind of its own for a namespace, with one object, "web"."""
    group = f"{client.namespace}.example.com"
    made = evolve(definition(**options), {"metadata": {"name": f"widgets.{group}"}, "spec": {"group": group}})
    definitions = client.apiextensions.v1.customresourcedefinitions
    await definitions.create(made)
    resource: Resource[Any] = Resource(group, "v1", "widgets", "Widget")
    await until(lambda: client.resource(resource).create({"metadata": {"name": "web"}, "spec": {"size": 3}}))
    try:
        yield resource
    finally:
        await definitions.delete(made["metadata"]["name"])


async def until(attempt: Callable[[], Awaitable[Any]]) -> None:
    """Repeat what a server does a moment after a definition has changed."""
    async with asyncio.timeout(200):
        while True:
            try:
                await attempt()
            except (ApiError, AssertionError):
                await asyncio.sleep(0.05)
            else:
                return


async def request_for(client: Client, resource: Resource[Any], bench: Bench | None = None) -> Request[Any]:
    """Return a request for the object "web", of a run of its own unless a bench is given."""
    obj = await client.resource(resource).get("web")
    key = object_name({"metadata": {"name": "web", "namespace": client.namespace}})
    context = bench or Bench(None, client, resource)  # type: ignore[arg-type]
    return Request(key, obj, context, resource=resource)


class Class(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: dict[str, Any] | None = None


def without_others(widget: Any) -> Any:
    """Leave out what this controller does not read, as a transform that saves memory does."""
    kept = [each for each in widget["metadata"].get("finalizers", ()) if each == CLEANUP]
    return evolve(widget, {"metadata": {"finalizers": kept, "managedFields": None}, "status": {"conditions": None}})


def of_class(widget: Class) -> Any:
    document = msgspec.to_builtins(widget.status)
    return {
        "metadata": {**widget.metadata.to_dict(), "finalizers": None},
        "status": {**(document or {}), "conditions": None},
    }


TIMES = ["metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.generation"]
PARTS: dict[str, tuple[type[Any] | None, dict[str, Any]]] = {
    "transform": (None, {"transform": without_others}),
    "dict": (None, {"transform": without_others, "storage": "dict"}),
    "class": (Class, {"transform": of_class}),
    "projection": (None, {"storage": "projection", "fields": TIMES}),
    "projection-class": (Class, {"storage": "projection", "fields": TIMES}),
    "metadata": (None, {"storage": "metadata"}),
}


@pytest.mark.behaviour("C-105")
@pytest.mark.parametrize(("kind", "informer"), PARTS.values(), ids=PARTS)
async def test_parts_of_objects_remove_nothing_of_others(client: Client, kind: type[Any] | None, informer: Any) -> None:
    async with widgets_of(client) as resource:
        live, reconciled = client.resource(resource), asyncio.Event()
        await live.patch("web", {"metadata": {"finalizers": [OTHER]}})
        theirs = {"type": "Other", "status": "True", "reason": "There", "message": "", "lastTransitionTime": None}
        await live.status.patch("web", {"status": {"conditions": [theirs], "theirs": 1}})
        manager = Manager("parts", client=client.transport, namespaces=[client.namespace])

        @manager.controller(msgspec.structs.replace(resource, decoder=kind), informer=informer)
        async def parts(request: Request[Any]) -> None:
            async with finalizing(request, CLEANUP) as ending:
                if not ending:
                    await set_status(request, [READY], ours=2)
            reconciled.set()

        async with manager, asyncio.timeout(200):
            await reconciled.wait()
            found = (await live.get("web")).to_dict()
            assert found["metadata"]["finalizers"] == [OTHER, CLEANUP]
            assert [each["type"] for each in found["status"]["conditions"]] == ["Other", "Ready"]
            assert (found["status"]["theirs"], found["status"]["ours"]) == (1, 2)
            await live.delete("web")
            await until(lambda: released(client, resource))
        await live.patch("web", {"metadata": {"finalizers": None}})


async def released(client: Client, resource: Resource[Any]) -> None:
    assert (await client.resource(resource).get("web")).to_dict()["metadata"]["finalizers"] == [OTHER]


@pytest.mark.behaviour("C-84")
async def test_status_follows_a_definition_that_is_upgraded(client: Client) -> None:
    writes = Writes(client.transport)
    ours = Client(writes, namespace=client.namespace, field_manager="tests")
    definitions = client.apiextensions.v1.customresourcedefinitions
    async with widgets_of(client, subresource=False) as resource:
        await set_status(await request_for(ours, resource), [READY], size=1)
        assert writes.sent() == ["/status", ""]
        name = f"widgets.{resource.group}"
        for subresource, value in ((True, 2), (False, 3)):
            changed: dict[str, Any] = definition(subresource=subresource)["spec"]["versions"]
            await definitions.patch(name, {"spec": {"versions": changed}})
            await until(lambda is_served=subresource: serves_status(client, resource, is_served))  # type: ignore[misc]

            async def write(value: int = value) -> None:  # a real server goes on as before for a moment
                await set_status(await request_for(ours, resource), [READY], size=value)
                assert (await client.resource(resource).get("web"))["status"]["size"] == value

            await until(write)


async def serves_status(client: Client, resource: Resource[Any], is_served: bool) -> None:
    found = next((each for each in await client.discover() if each.gvr == resource.gvr), None)
    assert found is not None
    assert ("status" in found.subresources) == is_served
    try:
        await client.resource(resource).status.patch("web", {"status": {"probe": is_served}})
    except ApiNotFound:
        assert not is_served
    else:
        assert is_served


@pytest.mark.behaviour("C-84")
async def test_member_that_is_empty_and_left_out_is_written_once(client: Client) -> None:
    writes = Writes(client.transport)
    ours = Client(writes, namespace=client.namespace, field_manager="tests")
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example.com/web"}]}}
    await client.apps.v1.replicasets.create(
        {
            "metadata": {"name": "web"},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        }
    )
    bench = Bench(None, ours, apps_v1.REPLICA_SETS)  # type: ignore[arg-type]
    for value in (0, 0, 2, 2, 0, 0):
        await set_status(await request_for(ours, apps_v1.REPLICA_SETS, bench), replicas=2, readyReplicas=value)
        status = (await client.apps.v1.replicasets.get("web")).to_dict()["status"]
        assert status.get("readyReplicas", 0) == value
    assert writes.sent() == ["/status"] * 3


# Waits for own writes.

WEB = {"app": "web"}
SPEC = {"containers": [{"name": "main", "image": "example.com/web"}]}
FINALIZERS = ["example.com/kept"]
#: Seconds by which watches are late.
LAG = 0.05


@dataclass(frozen=True)
class Row:
    """A write, and whether the server stores another version of an object."""

    write: Callable[[Client], Awaitable[Any]]
    changes: bool = True


def deployment(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": WEB}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": WEB}, "template": template}
    return {"metadata": {"name": name, "labels": WEB}, "spec": spec}


def pod(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"labels": WEB, **metadata}, "spec": SPEC}


async def remove_last_finalizer(client: Client) -> None:
    await client.core.v1.pods.delete("kept", grace=0)
    await client.core.v1.pods.patch("kept", {"metadata": {"finalizers": None}})


WRITES: Mapping[str, Row] = {
    "create": Row(lambda client: client.apps.v1.deployments.create(deployment("new"))),
    "generated name": Row(lambda client: client.core.v1.pods.create(pod(generateName="web-"))),
    "patch": Row(lambda client: client.apps.v1.deployments.patch("web", {"metadata": {"labels": {"seen": "yes"}}})),
    "no change": Row(
        lambda client: client.apps.v1.deployments.patch("web", {"metadata": {"labels": WEB}}), changes=False
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
    "delete a collection": Row(lambda client: client.core.v1.pods.delete_collection(WEB, grace=0)),
    "evict": Row(lambda client: client.core.v1.pods.evict("web-0", grace=0)),
}


@pytest.mark.behaviour("C-37", "C-42", "C-43")
@pytest.mark.parametrize("row", WRITES.values(), ids=WRITES)
async def test_caches_show_each_write_when_the_wait_ends(client: Client, row: Row) -> None:
    transport, namespace = client.transport, client.namespace
    plain = Client(transport, namespace=namespace, field_manager="test")
    await plain.apps.v1.deployments.create(deployment("web"))
    await plain.core.v1.pods.create(pod(name="web-0"))
    await plain.core.v1.pods.create(pod(name="kept", finalizers=FINALIZERS))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(200))
        factory = await stack.enter_async_context(SharedInformerFactory(Late(transport), namespace=namespace))
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
            listed: Any = await resource.list(WEB)
            stored |= {obj.metadata.uid: obj.metadata.resource_version for obj in listed}
        assert cached == stored


class Late:
    """A transport whose watches are late."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: HttpRequest) -> Response:
        response = await self._transport.request(request)
        return LateResponse(response) if ("watch", "true") in request.query else response


class LateResponse:
    def __init__(self, response: Response) -> None:
        self._response = response
        self.status, self.headers = response.status, response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            await asyncio.sleep(LAG)
            yield chunk

    async def close(self) -> None:
        await self._response.close()
