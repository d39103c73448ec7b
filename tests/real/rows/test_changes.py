"""What edits, applies and waits for own writes do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from pydantic import BaseModel

from aioinformer import ApiError, Conflict, ListWatch, Resource, SharedIndexInformer, UsageError, evolve
from aioinformer.client import add_finalizer, get_condition, remove_finalizer, set_condition, set_controller_reference
from aioinformer.client.changes.applied import difference
from aioinformer.client.changes.patches import document_of
from aioinformer.models import core_v1
from tests.support.deployment_changes import CHANGES, DEPLOYMENT, LABELS, changed, without_version

if TYPE_CHECKING:
    from aioinformer import Client


LIST_ITEM = {"name": "http", "port": 80}
#: Configurations whose second apply is proven to change nothing.
PROVEN: list[tuple[str, dict[str, Any]]] = [
    ("apps/v1/deployments", DEPLOYMENT),
    ("v1/configmaps", {"metadata": {"name": "a", "annotations": {"b/c": "d"}}, "data": {"x": "1", "y": ""}}),
    ("v1/secrets", {"metadata": {"name": "a"}, "type": "Opaque", "data": {"x": "MQ=="}}),
    ("v1/services", {"metadata": {"name": "a"}, "spec": {"selector": LABELS, "ports": [LIST_ITEM]}}),
    (
        "v1/services",
        {
            "metadata": {"name": "b"},
            "spec": {
                "selector": LABELS,
                "ports": [LIST_ITEM, {"name": "dns", "port": 80, "protocol": "UDP", "targetPort": "dns"}],
            },
        },
    ),
    (
        "autoscaling/v2/horizontalpodautoscalers",
        {
            "metadata": {"name": "a"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                    }
                ],
            },
        },
    ),
]


def reason_of(client: Any, name: str, desired: dict[str, Any], cached: Any) -> str:
    resource = client.resource(name).resource
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **desired}
    return difference(document_of(whole), document_of(cached), "tests", client.namespace)


async def test_repeated_applies_are_proven_to_change_nothing(client: Any) -> None:
    sent = []
    for name, desired in PROVEN:
        here = evolve(desired, {"metadata": {"namespace": client.namespace}})
        cached = await client.resource(name).apply(here)
        if reason := reason_of(client, name, here, cached):
            sent.append(f"{name}: {reason}")
        again = await client.resource(name).apply(here)
        assert without_version(again) == without_version(cached), name
    assert sent == []


async def test_configuration_without_fields_is_always_sent(client: Any) -> None:
    desired = {"metadata": {"name": "a", "namespace": client.namespace}}
    cached = await client.core.v1.configmaps.apply(desired)  # the server records nothing
    assert reason_of(client, "v1/configmaps", desired, cached)
    assert not (await client.core.v1.configmaps.apply_if_changed(desired, cached)).skipped


async def test_proof_of_no_change_is_never_wrong(client: Any) -> None:
    """An apply that is proven to change nothing changes nothing, for many configurations, beside another writer."""
    deployments, name = client.apps.v1.deployments, "apps/v1/deployments"
    others = [{"spec": {"replicas": 7}}, {"spec": {"replicas": 2}}, {"metadata": {"labels": {"app": "web", "x": "y"}}}]
    proven = 0
    for number, change in enumerate([DEPLOYMENT, *CHANGES[:-1]]):
        if isinstance(change["spec"].get("replicas"), float):
            continue  # servers store it in different forms
        desired = evolve(change, {"metadata": {"namespace": client.namespace}})
        try:
            cached = await deployments.apply(desired, force=True)
        except ApiError:
            continue  # it breaks rules of the kind
        for _ in range(2):
            if not reason_of(client, name, desired, cached):
                proven += 1
                assert without_version(await deployments.apply(desired)) == without_version(cached)
            cached = await deployments.patch("web", others[number % 3], field_manager="another")
    assert proven > 15


async def test_selector_that_becomes_empty_is_sent(client: Any) -> None:
    """An empty selector selects everything: it replaces the former one, and is not merged with it."""
    policies = client.networking.v1.networkpolicies
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}
    desired = {"metadata": {"name": "all", "namespace": client.namespace}, "spec": spec}
    cached = await policies.apply(desired)
    applied = await policies.apply_if_changed({**desired, "spec": {**spec, "podSelector": {}}}, cached)
    assert not applied.skipped
    assert not applied.object.spec.pod_selector.match_labels


async def test_text_that_becomes_empty_in_a_created_object_is_sent(client: Any) -> None:
    """What a creation records does not say which members of an element a configuration has stated."""
    deployments = client.apps.v1.deployments

    def desired(prefix: str) -> dict[str, Any]:
        source = {"prefix": prefix, "configMapRef": {"name": "settings"}}
        container = {"name": "main", "image": "x:1", "envFrom": [source]}
        labels = {"app": "emptied"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        return {"metadata": {"name": "emptied", "namespace": client.namespace}, "spec": spec}

    created = await deployments.apply_new(desired("X"))
    applied = await deployments.apply_if_changed(desired(""), created)
    assert not applied.skipped
    assert not applied.object.spec.template.spec.containers[0].env_from[0].prefix


async def test_custom_resources_are_proven_by_their_schema(client: Any) -> None:
    group = f"{client.namespace}.example.com"
    item = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 1}}}
    by_key = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    spec = {
        "type": "object",
        "properties": {
            "parts": {"type": "array", "items": {**item, "required": ["name"]}, **by_key},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "steps": {"type": "array", "items": item},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    await client.apiextensions.v1.customresourcedefinitions.create(
        {"metadata": {"name": f"widgets.{group}"}, "spec": crd}
    )
    widgets = client.resource(Resource(group, "v1", "widgets", "Widget"))
    desired: dict[str, Any] = {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": client.namespace},
        "spec": {
            "parts": [{"name": "b", "size": 2}, {"name": "a", "size": 1}],
            "tags": ["y", "x"],
            "steps": [{"name": "one", "size": 3}],
            "whole": {"k": "v"},
            "open": {"deep": {"list": [1, {"a": 1.5}]}, "flag": True},
        },
    }
    async with asyncio.timeout(200):
        while True:  # a definition is served a moment after its creation
            try:
                cached = await widgets.apply(desired)
                break
            except Exception:
                await asyncio.sleep(0.1)

    def reason(*path: Any, to: Any = ...) -> str:
        other = changed(*path, to=to, by=desired) if path else desired
        return difference(document_of(other), document_of(cached), "tests", client.namespace)

    assert reason() == ""
    assert without_version(await widgets.apply(desired)) == without_version(cached)
    spec_of = desired["spec"]
    assert reason("spec", "parts", to=spec_of["parts"][::-1])
    assert reason("spec", "parts", 0, "size")  # the default, but not the recorded set
    assert reason("spec", "tags", to=["x", "y"])
    assert reason("spec", "tags", to=["y", "x", "z"])
    assert reason("spec", "tags", to=["y"])
    assert reason("spec", "steps", 0, "size", to=4)
    assert reason("spec", "whole", to={"k": "v", "l": "w"})
    assert reason("spec", "whole", to={})
    assert reason("spec", "open", "flag", to=1)
    assert reason("spec", "open", "deep", "list", 1, "a", to=2)


async def test_edits_of_many_writers_are_all_kept(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create({"metadata": {"name": "count"}, "data": {"n": "0"}})

    async def count() -> None:
        await config_maps.edit(made, lambda each: evolve(each, "data.n", str(int(each.data["n"]) + 1)), attempts=100)

    await asyncio.gather(*(count() for _ in range(5)))
    assert (await config_maps.get("count")).data["n"] == "5"
    with pytest.raises(Conflict):
        await config_maps.edit(made, lambda each: evolve(each, "data.n", "9"), attempts=1)


class NarrowMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata without its managed fields."""

    name: str
    namespace: str
    resource_version: str


class NarrowPort(msgspec.Struct, frozen=True):
    """A port without a protocol, which is a part of its key."""

    port: int
    name: str = ""


class NarrowPorts(msgspec.Struct, frozen=True):
    """The ports of a Service."""

    ports: tuple[NarrowPort, ...] = ()


class NarrowService(msgspec.Struct, frozen=True):
    """A part of a Service."""

    metadata: NarrowMetadata
    spec: NarrowPorts


@dataclass(frozen=True)
class NarrowServiceData:
    """The same as a dataclass."""

    metadata: NarrowMetadata
    spec: NarrowPorts


class ModelPort(BaseModel):
    """The same port for pydantic."""

    port: int
    name: str = ""


class ModelPorts(BaseModel):
    """The ports of a Service for pydantic."""

    ports: list[ModelPort] = []


class NarrowServiceModel(BaseModel):
    """The same as a pydantic model."""

    metadata: dict[str, Any]
    spec: ModelPorts


@pytest.mark.behaviour("C-105")
@pytest.mark.parametrize("cls", [NarrowService, NarrowServiceData, NarrowServiceModel])
async def test_edit_keeps_what_the_class_lacks_in_lists(client: Client, cls: Any) -> None:
    wide = [{"name": str(port), "port": port, "targetPort": port + 1, "appProtocol": "x"} for port in (1, 2, 3)]
    await client.core.v1.services.create({"metadata": {"name": "a"}, "spec": {"ports": wide}})
    services: Any = client.resource(core_v1.SERVICES, decoder=cls)

    def change(obj: Any) -> Any:
        first, _, third = obj.spec.ports
        renamed, new = evolve(third, "name", "changed"), type(first)(port=4, name="4")
        return evolve(obj, "spec.ports", [renamed, new, first])

    edited = await services.edit(await services.get("a"), change)
    assert [each.port for each in edited.spec.ports] == [3, 4, 1]
    spec = (await client.core.v1.services.get("a")).to_dict()["spec"]
    assert spec["type"] == "ClusterIP"
    assert [[each.get(name) for name in ("name", "targetPort", "appProtocol")] for each in spec["ports"]] == [
        ["changed", 4, "x"],
        ["4", 4, None],
        ["1", 2, "x"],
    ]


@pytest.mark.behaviour("C-101")
async def test_fields_of_former_updates_leave_after_the_upgrade(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.create({"metadata": {"name": "a"}, "data": {"kept": "1", "left": "2"}})
    await config_maps.patch("a", {"data": {"patched": "3"}}, field_manager="old")
    await config_maps.patch("a", {"data": {"others": "4"}}, field_manager="others")
    before = await config_maps.get("a")
    wanted = {"metadata": {"name": "a"}, "data": {"kept": "1"}}

    with pytest.raises(Conflict, match=r"field manager 'tests' has written these fields .* upgrade_managed_fields\(\)"):
        await config_maps.apply(evolve(wanted, "data.kept", "9"))
    with pytest.raises(Conflict) as other:
        await config_maps.apply(wanted | {"data": {"others": "9"}})
    assert "upgrade_managed_fields" not in str(other.value)
    assert dict((await config_maps.apply(wanted)).data) == {"kept": "1", "left": "2", "patched": "3", "others": "4"}

    dry = await config_maps.upgrade_managed_fields("a", ["tests", "old"], dry_run=True)
    assert [each.manager for each in dry.metadata.managed_fields or () if each.operation == "Update"] == ["others"]
    stored = await config_maps.get("a")
    assert (stored.metadata.uid, len(stored.metadata.managed_fields)) == (before.metadata.uid, 4)
    upgraded = await config_maps.upgrade_managed_fields("a", ["tests", "old"])
    assert dict(upgraded.data) == dict(stored.data)
    assert dict((await config_maps.apply(wanted)).data) == {"kept": "1", "others": "4"}
    again = await config_maps.upgrade_managed_fields("a", ["tests", "old"])
    assert again == await config_maps.get("a")


@pytest.mark.behaviour("C-101")
async def test_all_objects_of_a_resource_are_upgraded(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    for name in "abc":
        await config_maps.create({"metadata": {"name": name, "labels": {"of": "us"}}, "data": {"x": "1"}})
    await config_maps.create({"metadata": {"name": "other"}, "data": {"x": "1"}})
    await config_maps.upgrade_managed_fields("b")
    for dry_run in (True, False):
        changed = await config_maps.upgrade_all_managed_fields(label_selector="of=us", dry_run=dry_run)
        assert [each.metadata.name for each in changed] == ["a", "c"]
    assert await config_maps.upgrade_all_managed_fields(label_selector="of=us") == []
    found = await config_maps.list(field_selector="metadata.name!=kube-root-ca.crt")
    operations = [each.metadata.managed_fields[0].operation for each in found]
    assert operations == ["Apply", "Apply", "Apply", "Update"]
    with pytest.raises(UsageError, match="a list of names, not the text 'op'"):
        await config_maps.upgrade_managed_fields("a", "op")


async def test_bookkeeping_of_controllers_is_accepted(client: Any) -> None:
    owner = await client.core.v1.configmaps.create({"metadata": {"name": "owner"}})
    child = {"metadata": {"name": "child", "namespace": client.namespace}}
    made = await client.core.v1.configmaps.create(
        add_finalizer(set_controller_reference(child, owner), "example.com/a")
    )
    assert (made.metadata.owner_references[0].uid, list(made.metadata.finalizers)) == (
        owner.metadata.uid,
        ["example.com/a"],
    )
    edited = await client.core.v1.configmaps.edit(made, lambda each: remove_finalizer(each, "example.com/a"))
    assert edited.metadata.finalizers is None
    spec = {"containers": [{"name": "main", "image": "example.com/a"}], "serviceAccountName": "default"}
    pod = await client.core.v1.pods.create({"metadata": {"name": "a"}, "spec": spec})
    ready = await client.core.v1.pods.status.edit(pod, lambda each: set_condition(each, "Ready", True, "Started"))
    condition = get_condition(ready, "Ready")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "Started")
    same = await client.core.v1.pods.status.edit(ready, lambda each: set_condition(each, "Ready", True, "Started"))
    assert same is ready


def informer_of(client: Client, **selection: Any) -> SharedIndexInformer[Any]:
    return SharedIndexInformer(ListWatch(client.transport, core_v1.CONFIG_MAPS, client.namespace, **selection))


async def test_own_writes_are_in_the_cache_after_the_wait(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    async with informer_of(client) as informer:
        await informer.wait_for_sync()
        written = await config_maps.create({"metadata": {"name": "a"}, "data": {"n": "0"}})
        assert await informer.wait_for(written, timeout=50) == written
        for number in range(5):
            written = await config_maps.patch("a", {"data": {"n": str(number)}})
            lister = await informer.lister().after(written, timeout=50)
            assert lister.get(f"{client.namespace}/a").data["n"] == str(number)
        same = await config_maps.patch("a", {"data": {"n": "4"}})  # changes nothing, so that no event comes
        assert await informer.wait_for(same, timeout=50) == written
        assert await informer.wait_for(await config_maps.get("a"), timeout=50) == written


async def test_deletions_are_waited_for_by_mark_and_by_uid(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    async with informer_of(client) as informer:
        await informer.wait_for_sync()
        body = {"metadata": {"name": "a", "finalizers": ["example.com/a"]}}
        made = await informer.wait_for(await config_maps.create(body), timeout=50)
        marked = await informer.wait_for(await config_maps.delete(made), timeout=50)
        assert marked.metadata.deletion_timestamp is not None
        gone = asyncio.ensure_future(informer.wait_for(made, gone=True, timeout=50))
        await config_maps.edit(marked, lambda each: remove_finalizer(each, "example.com/a"))
        assert await gone is None
        plain = await config_maps.create({"metadata": {"name": "b"}})
        await informer.wait_for(plain, timeout=50)
        assert await informer.wait_for(await config_maps.delete(plain), timeout=50) is None
        assert not {f"{client.namespace}/a", f"{client.namespace}/b"} & set(informer.get_indexer().list_keys())


async def test_writes_outside_of_the_selection_are_not_waited_for(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    async with informer_of(client, label_selector="app=x", field_selector="metadata.name!=c") as informer:
        await informer.wait_for_sync()
        outside = await config_maps.create({"metadata": {"name": "a"}})
        assert await informer.wait_for(outside, timeout=0) is None
        excluded = await config_maps.create({"metadata": {"name": "c", "labels": {"app": "x"}}})
        assert await informer.wait_for(excluded, timeout=0) is None
        inside = await config_maps.create({"metadata": {"name": "b", "labels": {"app": "x"}}})
        assert (await informer.wait_for(inside, timeout=50)).metadata.name == "b"
        moved = await config_maps.patch("b", {"metadata": {"labels": {"app": "y"}}})
        assert await informer.wait_for(moved, timeout=50) is None
        assert informer.lister().list() == []
