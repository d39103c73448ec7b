"""An object that was stored before its class became stricter: it can be labelled and deleted, and not changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from aioinformer import ApiError, Client, Resource, evolve
from aioinformer.controller import Manager, RetryAfter, finalizing
from aioinformer.crds import custom_resource
from aioinformer.errors import Invalid
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec needs it
from aioinformer.webhooks import AdmissionRequest, WebhookServer
from tests.support.webhooks import KINDS, resource_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.controller import Request
    from aioinformer.errors import DecodeError

FINALIZER = "example.com/register"


class LaxSpec(msgspec.Struct, frozen=True):
    size: int = 1
    count: int = 1


class Lax(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: LaxSpec = LaxSpec()


class StrictSpec(msgspec.Struct, frozen=True):
    size: Annotated[int, msgspec.Meta(le=10)] = 1
    count: Annotated[int, msgspec.Meta(le=10)] = 1


class Strict(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: StrictSpec = StrictSpec()


class Setting:
    """A manager whose class refuses an object that is stored, and what its functions saw."""

    def __init__(self, client: Client, group: str) -> None:
        self.plain: Resource[Any] = Resource(group, "v1", "widgets", "Widget")
        self.strict = Resource(group, "v1", "widgets", "Widget", decoder=Strict)
        server = WebhookServer("widgets", client.namespace, port=0, host="127.0.0.1", hosts=("127.0.0.1",))
        self.manager = Manager("widgets", client=client.transport, webhooks=server, namespaces=[client.namespace])
        self.validated: list[str] = []
        self.manager.validate(self.strict, operations=["create", "update", "delete"])(self.check)
        self.configuration = server.configuration
        self.released: list[str] = []
        self.may_release = asyncio.Event()

        @self.manager.controller(self.strict)
        async def widgets(request: Request[Strict]) -> None: ...

        @widgets.undecodable
        async def release(request: Request[Any], error: DecodeError) -> None:
            if not self.may_release.is_set():
                raise RetryAfter(0.2)
            async with finalizing(request, FINALIZER) as ending:
                if ending:
                    self.released.append(request.name)

    async def check(self, request: AdmissionRequest[Strict]) -> None:
        self.validated.append(f"{request.operation} {request.name}")


def configuration(manager: Manager, purpose: str, resource: Resource[Any]) -> dict[str, Any]:
    """Return the configuration of a webhook that is reached by URL."""
    assert manager.webhooks is not None
    rule = {"apiGroups": [resource.group], "apiVersions": ["v1"], "resources": [resource.plural], "operations": ["*"]}
    hook = {
        "name": f"{purpose}.{resource.group_resource}",
        "clientConfig": {"url": f"https://127.0.0.1:{manager.admission.port}/{purpose}/{resource.group_resource}"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": KINDS[purpose],
        "metadata": {"name": manager.webhooks.configuration},
        "webhooks": [hook],
    }


@pytest.fixture
async def setting(client: Client) -> AsyncIterator[Setting]:
    group = f"{client.namespace}.example.com"
    await client.apply_all([custom_resource(Lax, group, "v1", kind="Widget").crd()])
    made = Setting(client, group)
    stored = {"metadata": {"name": "old", "finalizers": [FINALIZER]}, "spec": {"size": 50}}
    await client.resource(made.plain).create(stored)
    configurations = client.resource(resource_of("ValidatingWebhookConfiguration"))
    async with made.manager, asyncio.timeout(200):
        await configurations.create(configuration(made.manager, "validate", made.plain))
        try:
            await _called(client, made.plain, made.validated)
            made.validated.clear()
            yield made
        finally:
            await configurations.delete(made.configuration)


async def _called(client: Client, resource: Resource[Any], calls: list[str]) -> None:
    dry = client.with_options(dry_run=True, retry=False).resource(resource)
    while not calls:
        try:
            await dry.create({"metadata": {"name": "probe"}})
        except ApiError as error:
            assert "failed calling webhook" in str(error)  # noqa: PT017 - its CA is not yet in the configuration
        await asyncio.sleep(0.1)


@pytest.mark.behaviour("C-131")
async def test_object_that_the_class_refuses_lives_and_ends(
    setting: Setting, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    widgets = client.with_options(retry=False).resource(setting.plain)

    async def refused(patch: dict[str, Any], field: str = "spec.size") -> None:
        with pytest.raises(Invalid) as caught:
            await widgets.patch("old", patch)
        assert list(caught.value.fields) == [field]

    await widgets.patch("old", {"metadata": {"labels": {"team": "a"}}})
    assert "spec.size: the class refuses it, but it is unchanged" in caplog.text
    await refused({"spec": {"size": 60}})
    await refused({"spec": {"count": 50}}, "spec.count")
    await refused({"metadata": {"labels": {"team": "b"}}, "spec": {"count": 2}})
    await widgets.delete("old")
    await refused({"spec": {"count": 2}})
    await refused({"metadata": {"finalizers": []}, "spec": {"size": 60}})
    assert setting.validated == ["delete old"]  # a delete always reaches the function
    setting.validated.clear()
    warned = caplog.text.count("the server warns")
    setting.may_release.set()
    while await widgets.get_or_none("old") is not None:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.05)
    assert setting.released == ["old"]
    assert caplog.text.count("the server warns") == warned

    made = await widgets.create({"metadata": {"name": "new"}, "spec": {"size": 5}})
    await widgets.edit(made, lambda each: evolve(each, "spec.size", 6))
    await widgets.delete("new")
    assert setting.validated == ["create new", "update new", "delete new"]


async def test_schema_names_all_mistakes_although_there_is_a_default(client: Client) -> None:
    resource = custom_resource(Strict, f"{client.namespace}.example.com", "v1", kind="Widget")
    await client.apply_all([resource.crd()])
    server = WebhookServer("widgets", client.namespace, port=0, host="127.0.0.1", hosts=("127.0.0.1",))
    manager = Manager("widgets", client=client.transport, webhooks=server, namespaces=[client.namespace])
    calls: list[str] = []

    @manager.default(resource)
    async def fill(request: AdmissionRequest[Strict]) -> Strict:
        calls.append(request.name)
        return request.object

    configurations = client.resource(resource_of(KINDS["default"]))
    async with manager, asyncio.timeout(200):
        await configurations.create(configuration(manager, "default", resource))
        try:
            await _called(client, resource, calls)
            plain = client.resource(Resource(resource.group, "v1", "widgets", "Widget"))
            with pytest.raises(Invalid) as caught:
                await plain.create({"metadata": {"name": "bad"}, "spec": {"size": 50, "count": 60}})
        finally:
            await configurations.delete(server.configuration)
    assert sorted(caught.value.fields) == ["spec.count", "spec.size"]
    assert "Invalid value: 60: " in str(caught.value)
