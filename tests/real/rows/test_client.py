"""What each verb, option and error of the client does.

The client is untyped: the types say where a field may be missing, and here all of them are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from contextlib import suppress
from typing import Any

import msgspec
import pydantic
import pytest

from aioinformer import AlreadyExists, ApiError, ApiNotFound, Conflict, NotFound, Resource, UsageError
from aioinformer.client import Impersonation, Status
from aioinformer.errors import DecodeError, Forbidden, Invalid, OptionError, TooManyRequests, UnknownOption
from aioinformer.resources import UnknownResource


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.com/main"}], "serviceAccountName": "default"},
    }


# Verbs.


async def test_created_object_is_what_listers_return(client: Any) -> None:
    made = await client.core.v1.configmaps.create(config_map("a", x="1"))
    assert (made.kind, made.metadata.namespace, made.data) == ("ConfigMap", client.namespace, {"x": "1"})
    with pytest.raises((AttributeError, TypeError)):
        made.data["x"] = "2"


async def test_object_is_read_by_name_by_key_and_by_object(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create(config_map("a"))
    for target in ("a", f"{client.namespace}/a", made, made.to_dict()):
        assert await config_maps.get(target) == made
    anywhere = client.with_options(namespace="").core.v1.configmaps
    assert await anywhere.get("a", namespace=client.namespace) == made
    assert await anywhere.namespaced(client.namespace).get("a", resource_version="0") == made


async def test_replaced_object_has_the_new_state(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create(config_map("a", x="1"))
    written = await config_maps.replace({**made.to_dict(), "data": {"y": "2"}})
    assert written.data == (await config_maps.get("a")).data == {"y": "2"}
    assert written.metadata.resource_version != made.metadata.resource_version


async def test_each_type_of_patch_is_applied(client: Any) -> None:
    pods = client.core.v1.pods
    await pods.create(pod("a"))
    merged = await pods.patch("a", {"metadata": {"labels": {"tier": "web"}}})
    assert merged.metadata.labels == {"app": "a", "tier": "web"}
    operations = [{"op": "replace", "path": "/metadata/labels/tier", "value": "db"}]
    assert (await pods.patch("a", operations, "json")).metadata.labels == {"app": "a", "tier": "db"}
    container = {"name": "main", "image": "example.com/other"}
    changed = await pods.patch("a", {"spec": {"containers": [container]}}, "strategic")
    assert [each.image for each in changed.spec.containers] == ["example.com/other"]


async def test_apply_creates_and_removes_own_fields(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.apply(config_map("a", x="1", y="1"))
    assert made.data == {"x": "1", "y": "1"}
    assert [each.manager for each in made.metadata.managed_fields] == ["tests"]
    assert (await config_maps.apply(config_map("a", x="1"))).data == {"x": "1"}


async def test_apply_takes_over_fields_by_force_alone(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.apply(config_map("a", x="1"), field_manager="other")
    with pytest.raises(Conflict) as caught:
        await config_maps.apply(config_map("a", x="2"))
    assert caught.value.causes == ("FieldManagerConflict",)
    assert (await config_maps.apply(config_map("a", x="2"), force=True)).data == {"x": "2"}


async def test_apply_of_a_whole_object_that_was_read_names_the_remedy(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.apply(config_map("a", x="1"))
    for whole in (made, made.to_dict()):
        with pytest.raises(
            ApiError, match=r"managedFields must be nil; an apply states the fields that you own"
        ) as refused:
            await config_maps.apply(whole)
        assert refused.value.status == 400
    assert (await config_maps.get("a")).metadata.resource_version == made.metadata.resource_version


async def test_apply_requires_a_field_manager(client: Any) -> None:
    with pytest.raises(UsageError, match="field manager"):
        await client.with_options(field_manager=None).core.v1.configmaps.apply(config_map("a"))


async def test_deletion_answers_with_a_status_or_the_object(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.create(config_map("a"))
    answer = await config_maps.delete("a")
    assert isinstance(answer, Status)
    assert answer.status == "Success"
    kept = await config_maps.create({"metadata": {"name": "b", "finalizers": ["example.com/keep"]}})
    deleted = await config_maps.delete(kept)
    assert not isinstance(deleted, Status)
    assert deleted.metadata.deletion_timestamp is not None
    await config_maps.patch("b", {"metadata": {"finalizers": None}})


async def test_deletion_of_another_uid_or_version_is_a_conflict(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create(config_map("a"))
    with pytest.raises(Conflict):
        await config_maps.delete("a", uid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(Conflict):
        await config_maps.delete("a", resource_version="1")
    await config_maps.delete("a", uid=made.metadata.uid, resource_version=made.metadata.resource_version)


async def test_propagation_and_grace_reach_the_server(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.create(config_map("a"))
    deleted = await config_maps.delete("a", propagation="Foreground", grace=0)
    assert not isinstance(deleted, Status)
    assert deleted.metadata.finalizers == ("foregroundDeletion",)
    with suppress(NotFound):  # if there are controllers
        await config_maps.patch("a", {"metadata": {"finalizers": None}})
    with pytest.raises(OptionError, match="propagation"):
        await config_maps.delete("a", propagation="Foregrund")


async def test_collection_is_deleted_by_selector(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    for name in "abc":
        await config_maps.create({"metadata": {"name": name, "labels": {"keep": str(name == "c").lower()}}})
    deleted = await config_maps.delete_collection({"keep": "false"})
    assert [each.metadata.name for each in deleted] == ["a", "b"]
    assert [each.metadata.name for each in await config_maps.list("keep")] == ["c"]


async def test_list_is_read_page_by_page_or_as_a_whole(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    for name in "abcde":
        await config_maps.create({"metadata": {"name": name, "labels": {"of": "tests"}}})
    assert [each.metadata.name async for each in config_maps.list("of=tests", page_size=2)] == list("abcde")
    pages = [page async for page in config_maps.list("of=tests", page_size=2).pages()]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({page.resource_version for page in pages}) == 1
    whole = await config_maps.list({"of": "tests"}, page_size=2)
    assert [each.metadata.name for each in whole] == list("abcde")
    assert int(whole.resource_version) > 0
    assert [each.metadata.name for each in await config_maps.list("of=tests", page_size=2, limit=3)] == list("abc")
    assert [each.metadata.name for each in await config_maps.list("", "metadata.name=b")] == ["b"]


# Subresources.


async def test_status_is_written_apart_from_the_object(client: Any) -> None:
    pods = client.core.v1.pods
    made = await pods.create(pod("a"))
    patched = await pods.status.patch("a", {"metadata": {"labels": {"x": "1"}}, "status": {"message": "hello"}})
    assert (patched.status.message, patched.spec) == ("hello", made.spec)
    body = {**patched.to_dict(), "status": {"message": "again"}}
    assert (await pods.status.replace(body)).status.message == "again"
    assert (await pods.status.get("a")).status.message == "again"
    assert (await pods.replace({**(await pods.get("a")).to_dict(), "status": {}})).status.message == "again"
    applied = await pods.status.apply({**pod("a"), "status": {"reason": "Applied"}}, force=True)
    assert applied.status.reason == "Applied"


async def test_scale_has_one_form_for_all_resources(client: Any) -> None:
    deployments = client.apps.v1.deployments
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    await deployments.create({"metadata": {"name": "a"}, "spec": spec})
    scale = await deployments.scale.get("a")
    assert (scale.kind, scale.spec.replicas) == ("Scale", 1)
    assert (await deployments.scale.replace({**scale.to_dict(), "spec": {"replicas": 2}})).spec.replicas == 2
    await deployments.scale.patch("a", {"spec": {"replicas": 3}})
    assert (await deployments.get("a")).spec.replicas == 3
    with pytest.raises(UsageError, match="no subresource 'scale'"):
        client.core.v1.configmaps.scale  # noqa: B018


async def test_pod_is_bound_once_and_then_evicted(client: Any) -> None:
    pods = client.core.v1.pods
    await pods.create(pod("a"))
    assert (await pods.bind("a", "node-of-tests")).status == "Success"
    assert (await pods.get("a")).spec.node_name == "node-of-tests"
    with pytest.raises(Conflict):
        await pods.bind("a", "node-of-tests")
    assert (await pods.evict("a", grace=0)).status == "Success"
    with pytest.raises(NotFound):
        await pods.get("a")


async def test_eviction_against_a_budget_is_refused_at_once(client: Any) -> None:
    pods = client.core.v1.pods
    await pods.create(pod("a"))
    ready = {"type": "Ready", "status": "True"}
    await pods.status.patch("a", {"status": {"phase": "Running", "conditions": [ready]}})
    budgets = client.policy.v1.poddisruptionbudgets
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    made = await budgets.create({"metadata": {"name": "a"}, "spec": spec})
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
    await budgets.status.patch("a", {"status": {**counts, "observedGeneration": made.metadata.generation}})
    with pytest.raises(TooManyRequests) as caught:
        await pods.evict("a")
    assert caught.value.causes == ("DisruptionBudget",)


async def test_token_of_a_service_account_is_created(client: Any) -> None:
    accounts = client.core.v1.serviceaccounts
    await accounts.create({"metadata": {"name": "robot"}})
    made = await accounts.create_token("robot", seconds=600, audiences=["shop"])
    assert made.status.token.count(".") == 2
    assert made.spec.audiences == ("shop",)
    assert made.status.token not in repr(made)


async def test_any_other_subresource_has_a_name(client: Any) -> None:
    pods = client.core.v1.pods
    await pods.create(pod("a"))
    with pytest.raises(ApiError):  # its limit is no quantity
        await pods.subresource("resize").patch(
            "a", {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "lots"}}}]}}, "strategic"
        )
    with pytest.raises(UsageError, match="no subresource 'rezise'"):
        pods.subresource("rezise")


# Options.


async def test_dry_run_stores_nothing(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create(config_map("a"), dry_run=True)
    assert made.metadata.uid
    with pytest.raises(ApiNotFound):
        await config_maps.get("a")
    await config_maps.create(config_map("a", x="1"))
    dry = client.with_options(dry_run=True).core.v1.configmaps
    assert (await dry.patch("a", {"data": {"x": "2"}})).data == {"x": "2"}
    await dry.delete("a")
    await dry.delete_collection()
    assert (await config_maps.get("a")).data == {"x": "1"}


async def test_strict_validation_refuses_unknown_fields(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    body = {**config_map("a"), "dota": {"x": "1"}}
    with pytest.raises(ApiError, match="dota") as caught:
        await config_maps.create(body, field_validation="Strict")
    assert caught.value.status == 400
    await config_maps.create(body, field_validation="Ignore")


async def test_impersonated_user_has_the_rights_of_that_user(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    with pytest.raises(Forbidden, match="nobody"):
        await config_maps.get("a", impersonate="nobody")
    admin = Impersonation("somebody", groups=("some", "system:masters"), extra={"example.com/why": ("a", "b")})
    with pytest.raises(ApiNotFound):
        await config_maps.get("a", impersonate=admin)
    review = await client.with_options(impersonate=admin).authentication.v1.selfsubjectreviews.create({})
    user = review.status.user_info
    assert (user.username, list(user.extra["example.com/why"])) == ("somebody", ["a", "b"])
    assert {"some", "system:masters"} <= set(user.groups)


async def test_misspelt_option_is_named(client: Any) -> None:
    with pytest.raises(UnknownOption, match="did you mean timeout"):
        await client.core.v1.configmaps.get("a", timeuot=1)


# Errors.


async def test_absent_object_is_the_not_found_of_listers(client: Any) -> None:
    with pytest.raises(NotFound) as caught:
        await client.apps.v1.deployments.get("a")
    error = caught.value
    assert isinstance(error, ApiNotFound)
    assert (error.group_resource, error.name, error.status) == ("deployments.apps", "a", 404)


async def test_replace_of_an_old_version_is_a_conflict(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    old = await config_maps.create(config_map("a", x="1"))
    await config_maps.replace({**old.to_dict(), "data": {"x": "2"}})
    with pytest.raises(Conflict):
        await config_maps.replace(old)
    version = old.metadata.resource_version
    with pytest.raises(Conflict):
        await config_maps.patch("a", {"metadata": {"resourceVersion": version}, "data": {"x": "3"}})


async def test_second_create_says_that_the_object_exists(client: Any) -> None:
    await client.core.v1.configmaps.create(config_map("a"))
    with pytest.raises(AlreadyExists):
        await client.core.v1.configmaps.create(config_map("a"))


async def test_invalid_object_names_its_fields(client: Any) -> None:
    with pytest.raises(Invalid) as caught:
        await client.core.v1.pods.create({"metadata": {"name": "A"}, "spec": {"containers": []}})
    fields = caught.value.fields
    assert set(fields) == {"metadata.name", "spec.containers"}
    assert [cause.reason for cause in fields["spec.containers"]] == ["FieldValueRequired"]


async def test_resource_that_is_not_served_is_not_found(client: Any) -> None:
    missing: Resource[Any] = Resource("example.com", "v1", "missing", "Missing")
    with pytest.raises(ApiNotFound) as caught:
        await client.resource(missing).get("a")
    assert caught.value.name == ""
    with pytest.raises(UnknownResource):
        await client.resource_for({"apiVersion": "example.com/v1", "kind": "Missing"})


async def test_missing_and_contradicting_namespaces_are_refused(client: Any) -> None:
    anywhere = client.with_options(namespace="").core.v1.configmaps
    with pytest.raises(UsageError, match="no namespace is given"):
        await anywhere.get("a")
    with pytest.raises(UsageError, match="that of the client is"):
        await client.core.v1.configmaps.get("other/a")
    with pytest.raises(UsageError, match="cluster-scoped"):
        await client.core.v1.namespaces.get("a", namespace="b")


# Bodies.


class OwnStruct(msgspec.Struct, omit_defaults=True):
    metadata: dict[str, Any]
    data: dict[str, str] = {}


@dataclasses.dataclass
class OwnDataclass:
    metadata: dict[str, Any]
    data: dict[str, str]


class OwnModel(pydantic.BaseModel):
    metadata: dict[str, Any]
    data: dict[str, str]
    binary_data: dict[str, str] | None = pydantic.Field(None, alias="binaryData")


async def test_body_may_be_of_any_class(client: Any) -> None:
    from kubernetes_asyncio.client import V1ConfigMap, V1ObjectMeta

    config_maps = client.core.v1.configmaps
    data = {"x": "1"}
    bodies: dict[str, Any] = {
        "mapping": config_map("mapping", x="1"),
        "struct": OwnStruct({"name": "struct"}, data),
        "dataclass": OwnDataclass({"name": "dataclass"}, data),
        "pydantic": OwnModel(metadata={"name": "pydantic"}, data=data, binaryData=None),
        "library": V1ConfigMap(metadata=V1ObjectMeta(name="library"), data=data),
    }
    for name, body in bodies.items():
        made = await config_maps.create(body)
        assert (made.metadata.name, made.data) == (name, data)
        assert (await config_maps.replace(made)).data == data
    applied = await config_maps.apply(V1ConfigMap(metadata=V1ObjectMeta(name="applied"), data=data))
    assert applied.data == data


async def test_decoder_makes_the_objects_that_are_returned(client: Any) -> None:
    resource: Resource[Any] = Resource("", "v1", "configmaps", "ConfigMap")
    config_maps = client.resource(resource, decoder=OwnStruct)
    made = await config_maps.create(OwnStruct({"name": "a"}, {"x": "1"}))
    assert type(made) is OwnStruct
    assert made.data == {"x": "1"}
    assert [type(each) for each in await config_maps.list("", "metadata.name=a")] == [OwnStruct]
    refusing = client.resource(resource, decoder=msgspec.json.Decoder(int).decode)
    with pytest.raises(DecodeError):
        await refusing.get("a")


async def test_custom_resource_is_found_by_its_object(client: Any) -> None:
    widgets: Resource[Any] = Resource("shop.example.com", "v1", "widgets", "Widget")
    await ensure_widgets(client)
    body = {"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    found = await client.resource_for(body)
    assert (found.resource.plural, found.resource.namespaced) == ("widgets", True)
    made = await found.create(body)
    assert made["spec"]["size"] == 1
    assert (await (await client.resource_for(made)).get(made)) == made
    assert (await client.resource(widgets).apply({"metadata": {"name": "b"}, "spec": {"size": 2}}))["spec"] == {
        "size": 2
    }
    with pytest.raises(UsageError, match=r"not of shop\.example\.com/v1 Widget"):
        await client.core.v1.configmaps.replace(made)


async def ensure_widgets(client: Any) -> None:
    """Define the resource `widgets`, and wait until the server serves it."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": "shop.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = client.apiextensions.v1.customresourcedefinitions
    body = {"metadata": {"name": "widgets.shop.example.com"}, "spec": spec}
    await definitions.apply(body, force=True)
    for _ in range(100):
        found = await definitions.get("widgets.shop.example.com")
        states = {each.type: each.status for each in found.status.conditions or ()}
        if states.get("Established") == "True":
            break
        await asyncio.sleep(0.1)
    widgets: Resource[Any] = Resource("shop.example.com", "v1", "widgets", "Widget")
    for _ in range(100):
        try:
            await client.resource(widgets).list()
        except ApiNotFound:
            await asyncio.sleep(0.1)
        else:
            return


# Requests without an informer.


async def test_missing_object_is_none_and_a_missing_resource_is_raised(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    assert await config_maps.get_or_none("a") is None
    assert await config_maps.get_or_none(made := await config_maps.create(config_map("a"))) == made
    assert await client.core.v1.pods.status.get_or_none("a") is None
    for resource in (Resource("example.invalid", "v1", "widgets", "Widget"), Resource("", "v1", "widgets", "Widget")):
        with pytest.raises(ApiNotFound):
            await client.resource(resource).get_or_none("a")


async def test_watch_yields_the_objects_and_their_changes(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    made = await config_maps.create({"metadata": {"name": "a", "labels": {"app": "a"}}})
    seen = []
    async with asyncio.timeout(200), contextlib.aclosing(config_maps.watch({"app": "a"})) as events:
        async for event in events:
            seen.append((event.type, event.object.metadata.name, event.object.data))
            if len(seen) == 1:
                await config_maps.create(config_map("b"))
                await config_maps.patch("a", {"data": {"x": "2"}})
                await config_maps.delete("a")
            if event.type == "DELETED":
                break
    assert seen == [("ADDED", "a", None), ("MODIFIED", "a", {"x": "2"}), ("DELETED", "a", {"x": "2"})]
    later = [
        event.type
        async for event in config_maps.watch({"app": "a"}, resource_version=made.metadata.resource_version, seconds=1)
    ]
    assert later == ["MODIFIED", "DELETED"]


async def test_raw_requests_have_answers_and_errors(client: Any) -> None:
    version = await client.request("GET", "/version")
    assert (version.status, "gitVersion" in version.json()) == (200, True)
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    made = await client.request("POST", path, body=config_map("a", x="1"))
    assert (made.status, made.json()["data"]) == (201, {"x": "1"})
    assert (await client.request("GET", "/healthz")).body == b"ok"
    listed = await client.request("GET", path, query={"fieldSelector": "metadata.name=a"})
    assert [item["metadata"]["name"] for item in listed.json()["items"]] == ["a"]
    with pytest.raises(ApiNotFound):
        await client.request("DELETE", f"{path}/b")


async def test_conflict_of_an_apply_names_field_and_manager(client: Any) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.apply(config_map("a", x="1", y="1"), field_manager='an "other"')
    with pytest.raises(Conflict) as caught:
        await config_maps.apply(config_map("a", x="2", y="2"))
    found = [(conflict.field, conflict.manager) for conflict in caught.value.conflicts]
    assert sorted(found) == [(".data.x", 'an "other"'), (".data.y", 'an "other"')]
    assert "conflict with" in caught.value.conflicts[0].message
