"""Bindings and evictions of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import MERGE_PATCH
from tests.real.contract.paths import PODS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

POD: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
BINDINGS = "/api/v1/namespaces/{ns}/bindings"
BINDING = f"{PODS}/a/binding"
EVICTION = f"{PODS}/a/eviction"


def binding(node: str = "n", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": node}} | fields


def eviction(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}} | fields


WRONG_BINDINGS: dict[str, Any] = {
    "nothing": {},
    "no-target": {"metadata": {"name": "a"}},
    "no-node": binding(""),
    "other-kind": binding(target={"kind": "Pod", "name": "n"}),
    "neither": binding(target={"kind": "Pod"}),
    "other-name": binding(metadata={"name": "b"}),
    "other-namespace": binding(metadata={"name": "a", "namespace": "elsewhere"}),
    "other-object": POD | {"kind": "Pod", "apiVersion": "v1"},
    "not-an-object": "[]",
    "of-other-types": binding(target={"name": 5}),
    "other-uid": binding(metadata={"name": "a", "uid": "x"}),
}
WRONG_EVICTIONS: dict[str, Any] = {
    "nothing": {},
    "no-name": eviction(metadata={}),
    "other-name": eviction(metadata={"name": "b"}),
    "other-namespace": eviction(metadata={"name": "a", "namespace": "elsewhere"}),
    "other-version": eviction(apiVersion="policy/v2"),
    "other-object": binding(),
    "not-an-object": "[]",
    "of-other-types": eviction(deleteOptions={"gracePeriodSeconds": "x"}),
    "other-uid": eviction(deleteOptions={"preconditions": {"uid": "x"}}),
    "policy": eviction(deleteOptions={"propagationPolicy": "Sometimes"}),
    "dry-runs": eviction(deleteOptions={"dryRun": ["Some"]}),
}


@variants("body", WRONG_BINDINGS)
async def test_invalid_bindings_are_refused(api: Conversation, body: Any) -> None:
    await api.create(PODS, POD)
    assert (await api("POST", BINDING, body)).status >= 400


@variants("path", {"of-the-pod": BINDING, "of-the-namespace": BINDINGS})
async def test_binding_assigns_a_node(api: Conversation, path: str) -> None:
    await api.create(PODS, POD)
    labels = {"topology.kubernetes.io/zone": "z"}
    body = binding(metadata={"name": "a", "annotations": {"a": "b"}, "labels": labels})
    assert (await api("POST", f"{path}?dryRun=All", body)).status == 201
    assert (await api("POST", path, body)).status == 201
    bound = (await api("GET", f"{PODS}/a")).body
    assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n", {"a": "b"})


async def test_gated_and_assigned_pods_are_not_bound(api: Conversation) -> None:
    gated = POD["spec"] | {"schedulingGates": [{"name": "g"}]}
    placed = POD["spec"] | {"nodeName": "n"}
    await api.create(PODS, {"metadata": {"name": "gated"}, "spec": gated})
    await api.create(PODS, {"metadata": {"name": "placed"}, "spec": placed})
    await api.create(PODS, {"metadata": {"name": "going", "finalizers": ["a/b"]}, "spec": POD["spec"]})
    await api("DELETE", f"{PODS}/going", recorded=False)
    for name in ("gated", "placed", "going", "missing"):
        body = binding(metadata={"name": name})
        assert (await api("POST", f"{PODS}/{name}/binding", body)).status in (404, 409)
    patch = {"metadata": {"finalizers": None}}
    await api("PATCH", f"{PODS}/going", patch, content_type=MERGE_PATCH, recorded=False)


@variants("body", WRONG_EVICTIONS)
async def test_invalid_evictions_are_refused(api: Conversation, body: Any) -> None:
    await api.create(PODS, POD)
    assert (await api("POST", EVICTION, body)).status >= 400


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
