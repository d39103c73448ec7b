"""Server-side apply and managed fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON_PATCH, MERGE_PATCH
from tests.real.contract.tables import CONFIGMAPS, DEPLOYMENTS, PODS, SERVICES

if TYPE_CHECKING:
    from tests.real.contract.conversation import Answer, Conversation

A = f"{CONFIGMAPS}/a"


def configmap(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return said if data is None else said | {"data": data}


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": list(ports)}}


async def apply(api: Conversation, path: str, obj: dict[str, Any], manager: str = "one", query: str = "") -> Answer:
    return await api("PATCH", f"{path}?fieldManager={manager}{query}", obj, content_type=APPLY)


@pytest.mark.conformance("FK-05")
async def test_apply_that_creates_owns_all_its_fields(api: Conversation) -> None:
    answer = await apply(api, A, configmap({"k": "v"}, labels={"l": "m"}))
    assert answer.status == 201


async def test_unchanged_apply_is_no_change(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v"}))
    answer = await apply(api, A, configmap({"k": "v"}))
    assert answer.status == 200


async def test_apply_requires_a_field_manager(api: Conversation) -> None:
    answer = await api("PATCH", A, configmap({"k": "v"}), content_type=APPLY)
    assert answer.status == 422


@pytest.mark.conformance("FK-05")
async def test_apply_to_a_field_of_another_owner_conflicts(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v"}))
    answer = await apply(api, A, configmap({"k": "w"}), "two")
    assert answer.status == 409


@pytest.mark.conformance("FK-05")
async def test_force_takes_ownership(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v", "l": "v"}))
    answer = await apply(api, A, configmap({"k": "w"}), "two", "&force=true")
    assert answer.body["data"] == {"k": "w", "l": "v"}


async def test_field_dropped_by_its_only_applier_is_removed(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v", "l": "v"}, labels={"x": "y"}))
    answer = await apply(api, A, configmap({"k": "v"}))
    assert "labels" not in answer.metadata


async def test_field_still_applied_by_another_is_kept(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v", "l": "v"}))
    await apply(api, A, configmap({"l": "v"}), "two")
    answer = await apply(api, A, configmap({"k": "v"}))
    assert answer.body["data"] == {"k": "v", "l": "v"}


async def test_update_takes_ownership_of_changed_fields(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v", "l": "v"}))
    answer = await api("PUT", f"{A}?fieldManager=two", configmap({"k": "w", "l": "v"}))
    assert len(answer.metadata["managedFields"]) == 2


async def test_patch_is_recorded_as_update(api: Conversation) -> None:
    await api("POST", f"{CONFIGMAPS}?fieldManager=one", configmap({"k": "v"}))
    operations = [{"op": "add", "path": "/data/l", "value": "w"}]
    answer = await api("PATCH", f"{A}?fieldManager=two", operations, content_type=JSON_PATCH)
    assert answer.body["data"] == {"k": "v", "l": "w"}


async def test_first_apply_records_before_first_apply(api: Conversation) -> None:
    await api("POST", f"{CONFIGMAPS}?fieldManager=old", configmap({"k": "v"}))
    await api("PUT", f"{A}?fieldManager=old", configmap({"k": "v"}, managedFields=[{}]))
    answer = await apply(api, A, configmap({"l": "w"}))
    assert answer.status == 200


async def test_list_elements_are_owned_by_key(api: Conversation) -> None:
    path = f"{SERVICES}/a"
    await apply(api, path, service({"name": "x", "port": 80}))
    answer = await apply(api, path, service({"name": "y", "port": 81}), "two")
    assert [each["name"] for each in answer.body["spec"]["ports"]] == ["x", "y"]


async def test_dropped_list_element_is_removed(api: Conversation) -> None:
    path = f"{SERVICES}/a"
    await apply(api, path, service({"name": "x", "port": 80}, {"name": "y", "port": 81}))
    answer = await apply(api, path, service({"name": "x", "port": 80}))
    assert [each["name"] for each in answer.body["spec"]["ports"]] == ["x"]


async def test_apply_dry_run_stores_nothing(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v"}))
    await apply(api, A, configmap({"k": "w"}), query="&dryRun=All")
    answer = await api("GET", A)
    assert answer.body["data"] == {"k": "v"}


async def test_apply_with_an_old_version_conflicts(api: Conversation) -> None:
    await apply(api, A, configmap({"k": "v"}))
    answer = await apply(api, A, configmap({"k": "w"}, resourceVersion="1"))
    assert answer.status == 409


async def test_apply_to_status_is_recorded_with_its_subresource(api: Conversation) -> None:
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"message": "m"}}
    answer = await api("PATCH", f"{PODS}/a/status?fieldManager=two", status, content_type=APPLY)
    mine = [each for each in answer.metadata["managedFields"] if each["manager"] == "two"]
    assert mine[0]["subresource"] == "status"


async def test_scale_write_owns_replicas(api: Conversation) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 1}
    await api.create(f"{DEPLOYMENTS}?fieldManager=one", {"metadata": {"name": "a"}, "spec": spec})
    await api("PATCH", f"{DEPLOYMENTS}/a/scale?fieldManager=two", {"spec": {"replicas": 2}}, content_type=MERGE_PATCH)
    answer = await api("GET", f"{DEPLOYMENTS}/a", recorded=False)
    mine = [each for each in answer.metadata["managedFields"] if each["manager"] == "two"]
    assert mine[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
