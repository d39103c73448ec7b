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


def deployment(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}, "creationTimestamp": None},
        "spec": {"containers": [{"name": "c", "image": "i", **container}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def secret(**content: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **content}


def lease(time: str) -> dict[str, Any]:
    spec = {"holderIdentity": "x", "renewTime": time}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": spec}


def autoscaler(value: Any) -> dict[str, Any]:
    metric = {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": value}}
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [{"type": "Pods", "pods": metric}]}
    head = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**head, "metadata": {"name": "a"}, "spec": spec}


SECRETS = "/api/v1/namespaces/{ns}/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
FIELD = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
#: What manifests contain that the server stores in another form, or not at all.
SPELLED: dict[str, tuple[str, dict[str, Any]]] = {
    "quantities": (DEPLOYMENTS, deployment({"resources": {"limits": {"cpu": "1000m", "memory": ".5Gi"}}})),
    "quantity_as_number": (DEPLOYMENTS, deployment({"resources": {"requests": {"cpu": 1}}})),
    "field_of_env": (DEPLOYMENTS, deployment({"env": [FIELD]})),
    "empty_env": (DEPLOYMENTS, deployment({"env": []})),
    "empty_value_of_env": (DEPLOYMENTS, deployment({"env": [{"name": "E", "value": ""}]})),
    "null_env": (DEPLOYMENTS, deployment({"env": None})),
    "integral_float": (DEPLOYMENTS, deployment({}, replicas=3.0)),
    "empty_struct": (DEPLOYMENTS, deployment({"resources": {}}, strategy={})),
    "empty_status": (DEPLOYMENTS, {**deployment({}), "status": {}}),
    "plain_data": (SECRETS, secret(stringData={"x": "y"})),
    "null_in_a_map": (CONFIGMAPS, {**configmap(), "data": {"x": None}}),
    "null_map": (CONFIGMAPS, {**configmap(labels=None, annotations={}), "data": None}),
    "time": (LEASES, lease("2020-01-01T00:00:00.000000Z")),
    "number_of_an_autoscaler": (AUTOSCALERS, autoscaler(20)),
}
#: What an apply merges, and the server cannot decode.
UNFIT: dict[str, tuple[str, dict[str, Any]]] = {
    "fraction": (DEPLOYMENTS, deployment({}, replicas=3.5)),
    "quantity": (DEPLOYMENTS, deployment({"resources": {"limits": {"cpu": "1x"}}})),
    "base64": (SECRETS, secret(data={"x": "*"})),
    "time": (LEASES, lease("2020")),
}


@pytest.mark.parametrize("name", SPELLED)
async def test_equal_apply_of_another_spelling_is_no_change(api: Conversation, name: str) -> None:
    path, obj = SPELLED[name]
    first = await apply(api, f"{path}/a", obj)
    assert first.status == 201
    answer = await apply(api, f"{path}/a", obj)
    assert answer.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


@pytest.mark.parametrize("name", UNFIT)
async def test_apply_of_an_undecodable_value_is_refused(api: Conversation, name: str) -> None:
    path, obj = UNFIT[name]
    answer = await apply(api, f"{path}/a", obj)
    assert answer.status == 500


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
