"""Subresources: status, scale, bindings and evictions of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC
from tests.real.contract.tables import DEPLOYMENT, DEPLOYMENTS, PODS, deployment, named, pod_spec, setting, variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


A = f"{DEPLOYMENTS}/a"
SCALE = f"{A}/scale"


async def test_put_sets_replicas(api: Conversation) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    await api("PUT", SCALE, {"metadata": {"name": "a"}, "spec": {"replicas": 3}})
    answer = await api("GET", A)
    assert answer.body["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    "content_type", [MERGE_PATCH, JSON_PATCH, STRATEGIC, APPLY], ids=["merge", "json", "strategic", "apply"]
)
async def test_patch_sets_replicas(api: Conversation, content_type: str) -> None:
    await api.create(DEPLOYMENTS, DEPLOYMENT)
    body: Any = {"spec": {"replicas": 5}}
    if content_type == JSON_PATCH:
        body = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    if content_type == APPLY:
        body |= {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    query = "?fieldManager=one&force=true" if content_type == APPLY else ""
    await api("PATCH", SCALE + query, body, content_type=content_type)
    answer = await api("GET", A)
    assert answer.body["spec"]["replicas"] == 5


POD: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
BINDINGS = "/api/v1/namespaces/{ns}/bindings"
BINDING = f"{PODS}/a/binding"
EVICTION = f"{PODS}/a/eviction"


def binding(node: str = "n", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": node}} | fields


def eviction(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}} | fields


@variants("path", {"of-the-pod": BINDING, "of-the-namespace": BINDINGS})
async def test_binding_assigns_a_node(api: Conversation, path: str) -> None:
    await api.create(PODS, POD)
    labels = {"topology.kubernetes.io/zone": "z"}
    body = binding(metadata={"name": "a", "annotations": {"a": "b"}, "labels": labels})
    assert (await api("POST", f"{path}?dryRun=All", body)).status == 201
    assert (await api("POST", path, body)).status == 201
    bound = (await api("GET", f"{PODS}/a")).body
    assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n", {"a": "b"})


async def test_pod_without_a_budget_is_evicted(api: Conversation) -> None:
    await api.create(PODS, POD)
    assert (await api("POST", f"{EVICTION}?dryRun=All", eviction())).status == 201
    assert (await api("POST", EVICTION, eviction())).status == 201
    assert (await api("POST", EVICTION, eviction())).status == 404


@variants("allowed", {"allowed": 1, "not-allowed": 0})
async def test_eviction_respects_disruption_budgets(api: Conversation, allowed: int) -> None:
    labelled = POD | {"metadata": {"name": "a", "labels": {"x": "y"}}}
    await api.create(PODS, labelled)
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await api("PATCH", f"{PODS}/a/status", running, content_type=MERGE_PATCH, recorded=False)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"x": "y"}}}
    await api.create(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    counted = {
        "observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1,
        "expectedPods": 1 + allowed,
    }  # fmt: skip
    await api("PATCH", f"{BUDGETS}/b/status", {"status": counted}, content_type=MERGE_PATCH, recorded=False)
    answer = await api("POST", EVICTION, eviction())
    assert answer.status == (201 if allowed else 429)
    # The field manager of the budget's status differs between servers.
    await api("GET", f"{BUDGETS}/b", shown=lambda body: body["status"])


CONTENT_TYPES = {"merge": MERGE_PATCH, "strategic": STRATEGIC, "json": JSON_PATCH}

STATUS_PATCHES: dict[str, tuple[str, Any]] = {
    "status": ("/status/replicas", 3),
    "spec": ("/spec/replicas", 3),
    "labels": ("/metadata/labels", {"x": "y"}),
}


@variants("content_type", CONTENT_TYPES)
@variants("case", STATUS_PATCHES)
async def test_patch_of_status(api: Conversation, case: tuple[str, Any], content_type: str) -> None:
    await api.create(DEPLOYMENTS, deployment())
    path, value = case
    await api("PATCH", f"{A}/status", setting(path, value, content_type), content_type=content_type)


CONDITION = {"type": "Ready", "status": "True"}
STATUSES: dict[str, Any] = {
    "conditions": {
        "conditions": [{"type": "Ready", "status": "False", "reason": "No"}, {"type": "New", "status": "True"}]
    },
    "delete_condition": {"conditions": [{"type": "Ready", "$patch": "delete"}]},
}


@variants("status", STATUSES)
async def test_conditions_merge_by_type(api: Conversation, status: Any) -> None:
    await api.create(PODS, named() | {"spec": pod_spec()})
    first = {"status": {"conditions": [CONDITION], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}
    await api("PATCH", f"{PODS}/a/status", first, content_type=MERGE_PATCH, recorded=False)
    await api("PATCH", f"{PODS}/a/status", {"status": status}, content_type=STRATEGIC)
