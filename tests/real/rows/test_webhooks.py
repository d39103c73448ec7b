"""Admission functions of a manager, registered by URL: the server for tests calls them as kube-apiserver does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import ApiError, ApiNotFound, Client, evolve, load_manifests
from aioinformer.cli.projects.kustomize import Deployed, base_files
from aioinformer.controller import Manager
from aioinformer.errors import Invalid
from aioinformer.models import apps_v1, core_v1, rbac_v1
from aioinformer.webhooks import AdmissionRequest, Denied, WebhookServer
from tests.support.webhooks import KINDS, resource_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAPS = core_v1.CONFIG_MAPS


class Served:
    """A manager with admission functions for ConfigMaps of one namespace.

    Attributes:
        seen: the requests of the validating function.
        new: the objects that the defaulting function got, as documents.
    """

    def __init__(self, client: Client) -> None:
        server = WebhookServer("hooks", client.namespace, port=0, host="127.0.0.1", hosts=("127.0.0.1",))
        self.manager = Manager("hooks", client=client.transport, webhooks=server, namespaces=[client.namespace])
        self.seen: list[AdmissionRequest[Any]] = []
        self.new: list[Any] = []
        self.client = client
        self.configuration = server.configuration
        self.manager.default(MAPS)(self.fill)
        self.manager.validate(MAPS, operations=["create", "update", "delete"])(self.check)

    @property
    def operations(self) -> list[str]:
        return [each.operation for each in self.seen]

    async def fill(self, request: AdmissionRequest[Any]) -> Any:
        self.new.append(request.object.to_dict())
        return evolve(request.object, {"metadata": {"labels": {"owner": "hooks"}}})

    async def check(self, request: AdmissionRequest[Any]) -> None:
        self.seen.append(request)
        request.warn("it is only a test")
        data = request.object.data or {}
        if data.get("size") == "big":
            raise Denied({"data.size": "must be small"})
        if data.get("size") == "broken":
            raise RuntimeError("no luck")
        if request.operation == "delete" and data.get("kept"):
            raise Denied("it is kept")

    def bodies(self) -> list[dict[str, Any]]:
        made = []
        for purpose, kind in KINDS.items():
            rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            hook = {
                "name": f"{purpose}.configmaps.core",
                "clientConfig": {"url": f"https://127.0.0.1:{self.manager.admission.port}/{purpose}/configmaps"},
                "rules": [{**rule, "operations": ["CREATE", "UPDATE", "DELETE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.client.namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 5,
            }
            api_version = "admissionregistration.k8s.io/v1"
            metadata = {"name": self.configuration}
            made.append({"apiVersion": api_version, "kind": kind, "metadata": metadata, "webhooks": [hook]})
        return made


@pytest.fixture
async def served(client: Client) -> AsyncIterator[Served]:
    """Provide webhooks that the server calls already: a real one notices them after a while."""
    made = Served(client)
    async with made.manager, asyncio.timeout(200):
        for body in made.bodies():
            await client.resource(resource_of(body["kind"])).create(body)
        try:
            await _called(made)
            made.seen.clear()
            made.new.clear()
            yield made
        finally:
            for kind in KINDS.values():
                await client.resource(resource_of(kind)).delete(made.configuration)


async def _called(served: Served) -> None:
    dry = served.client.with_options(dry_run=True, retry=False).resource(MAPS)
    while not (served.seen and served.new):
        try:
            await dry.create({"metadata": {"name": "probe"}})
        except ApiError as error:
            assert "failed calling webhook" in str(error)  # noqa: PT017 - its CA is not yet in the configuration
        await asyncio.sleep(0.1)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


@pytest.mark.behaviour("C-128")
async def test_server_calls_the_functions_of_a_manager(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    maps = served.client.resource(MAPS)
    made = await maps.create(config_map("a", size="small"))
    assert made.metadata.labels == {"owner": "hooks"}
    lines = [each.getMessage() for each in caplog.get_records("setup")]  # a client logs a warning once
    assert "the server warns: it is only a test" in lines
    assert served.operations[-1] == "create"
    assert served.seen[-1].object.metadata.labels == {"owner": "hooks"}
    assert (served.new[-1]["metadata"]["name"], served.new[-1]["metadata"].get("uid")) == ("a", None)
    assert "system:masters" in served.seen[-1].user.groups
    owned = [entry.to_dict().get("fieldsV1", {}) for entry in made.metadata.managed_fields or ()]
    assert ["f:labels" in str(each) for each in owned] == [False]

    changed = await maps.edit(made, lambda each: evolve(each, "data.colour", "red"))
    assert changed.data == {"size": "small", "colour": "red"}
    assert served.operations[-1] == "update"
    assert served.seen[-1].old is not None
    assert served.seen[-1].old.data == {"size": "small"}

    with pytest.raises(Invalid) as refused:
        await maps.patch("a", {"data": {"size": "big"}})
    denied = 'admission webhook "validate.configmaps.core" denied the request: '
    assert refused.value.message == f'{denied}ConfigMap "a" is invalid: data.size: must be small'
    assert [each.message for each in refused.value.fields["data.size"]] == ["must be small"]

    with pytest.raises(ApiError) as failed:
        await served.client.with_options(retry=False).resource(MAPS).patch("a", {"data": {"size": "broken"}})
    assert (failed.value.status, failed.value.reason) == (500, "InternalError")
    assert 'failed calling webhook "validate.configmaps.core": failed to call webhook: ' in failed.value.message
    assert "no luck" in failed.value.message

    applied = await maps.apply({"metadata": {"name": "b"}, "data": {"kept": "yes"}})
    assert applied.metadata.labels == {"owner": "hooks"}
    with pytest.raises(Invalid, match="it is kept"):
        await maps.delete("b")
    assert served.operations[-1] == "delete"

    dry = await served.client.with_options(dry_run=True).resource(MAPS).create(config_map("c"))
    assert dry.metadata.labels == {"owner": "hooks"}
    assert served.seen[-1].dry_run
    with pytest.raises(ApiNotFound):
        await maps.get("c")


async def test_manifests_are_accepted(client: Client) -> None:
    manager = Manager("hooks", webhooks=WebhookServer("hooks", client.namespace))

    async def function(request: AdmissionRequest[Any]) -> Any: ...

    manager.default(MAPS)(function)
    manager.validate(MAPS, operations=["create", "delete"])(function)
    manager.validate(rbac_v1.CLUSTER_ROLES)(function)
    manager.validate(
        apps_v1.DEPLOYMENTS,
        subresources=["scale", "status"],
        operations=["update"],
        namespace_selector={"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        object_selector={"matchLabels": {"a": "b"}},
        match_conditions={f"people-{at}": "request.userInfo.username != 'me'" for at in range(63)},
        match_policy="Exact",
        side_effects="NoneOnDryRun",
    )(function)
    files = base_files(manager, Deployed("hooks:manager", ("hooks", client.namespace)))
    report = await client.apply_all(load_manifests(files["webhooks.yaml"]), dry_run=True)
    assert [each.change for each in report.objects] == ["created"] * 3


async def test_manager_can_start_although_its_functions_cannot_be_called(client: Client) -> None:
    own, others = client.with_options(retry=False), client.with_options(namespace="default", retry=False)
    manager = Manager("own-role", webhooks=WebhookServer("hooks", client.namespace))

    async def function(request: AdmissionRequest[Any]) -> None: ...

    manager.validate(core_v1.SECRETS)(function)
    manager.validate(rbac_v1.CLUSTER_ROLES)(function)
    name = f"own-{client.namespace}"
    files = base_files(manager, Deployed("hooks:manager", (name, client.namespace)))
    configurations = client.resource(resource_of("ValidatingWebhookConfiguration"))
    [_, body] = load_manifests(files["webhooks.yaml"])
    await configurations.create(body)
    try:
        async with asyncio.timeout(200):
            while await _is_created(others, core_v1.SECRETS, {"metadata": {"generateName": "a-"}}):  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.1)
        assert await _is_created(own, core_v1.SECRETS, {"metadata": {"name": "a"}})
        system = client.with_options(namespace="kube-system", retry=False)
        assert await _is_created(system, core_v1.SECRETS, {"metadata": {"generateName": "a-"}})
        assert await _is_created(own, rbac_v1.CLUSTER_ROLES, {"metadata": {"name": name}, "rules": []})
        assert not await _is_created(own, rbac_v1.CLUSTER_ROLES, {"metadata": {"name": f"{name}-2"}, "rules": []})
    finally:
        await configurations.delete(f"hooks.{client.namespace}")


async def _is_created(client: Client, resource: Any, body: dict[str, Any]) -> bool:
    try:
        await client.with_options(dry_run=True).resource(resource).create(body)
    except ApiError as error:
        assert "failed calling webhook" in str(error)  # noqa: PT017 - it is no other error
        return False
    return True
