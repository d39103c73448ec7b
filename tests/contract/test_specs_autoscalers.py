"""Validation of autoscalers, disruption budgets, leases and priority classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import MERGE_PATCH
from tests.contract.tables import variants
from tests.contract.test_autoscalers import INGRESS, NEWER, OLDER, SELECTOR, autoscaler, resource
from tests.contract.variations import GONE, variant_statuses

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation
    from tests.contract.variations import Changes

AUTOSCALER = autoscaler()
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
BUDGET = {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
LEASE: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS_TARGET = {"type": "AverageValue", "averageValue": "10"}
VALUE = {"type": "Value", "value": "10"}
OBJECT = {"describedObject": INGRESS, "metric": {"name": "m"}, "target": VALUE}
CONTAINER = {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}}
UP = "spec.behavior.scaleUp"
POLICY = {"type": "Pods", "value": 1, "periodSeconds": 1}


def metrics(*each: dict[str, Any]) -> dict[str, Any]:
    return {"spec.metrics": list(each)}


def pods(**fields: Any) -> dict[str, Any]:
    return metrics({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": PODS_TARGET} | fields})


def of_object(**fields: Any) -> dict[str, Any]:
    return metrics({"type": "Object", "object": OBJECT | fields})


def external(**fields: Any) -> dict[str, Any]:
    return metrics({"type": "External", "external": {"metric": {"name": "m"}, "target": VALUE} | fields})


def container(**fields: Any) -> dict[str, Any]:
    return metrics({"type": "ContainerResource", "containerResource": CONTAINER | fields})


def policies(*each: dict[str, Any]) -> dict[str, Any]:
    return {f"{UP}.policies": list(each)}


REPLICAS: list[Changes] = [
    {"spec": GONE},
    {"spec": {}},
    {"spec.maxReplicas": GONE},
    {"spec.maxReplicas": 0},
    {"spec.maxReplicas": -1},
    {"spec.minReplicas": 0},
    {"spec.minReplicas": -1},
    {"spec.minReplicas": 4},
    {"spec.minReplicas": 0, "spec.maxReplicas": 0},
    {"spec.minReplicas": -2, "spec.maxReplicas": -3},
    {"metadata.name": "A"},
]
TARGETS: list[Changes] = [
    {"spec.scaleTargetRef": GONE},
    {"spec.scaleTargetRef.kind": GONE},
    {"spec.scaleTargetRef.name": GONE},
    {"spec.scaleTargetRef.apiVersion": GONE},
    {"spec.scaleTargetRef.kind": "a/b"},
    {"spec.scaleTargetRef.name": "a%b"},
    {"spec.scaleTargetRef.name": ".."},
    {"spec.scaleTargetRef.kind": "."},
    {"spec.scaleTargetRef.apiVersion": "a/b/c"},
    {"spec.scaleTargetRef.apiVersion": "v1"},
    {"spec.scaleTargetRef.apiVersion": "apps/"},
]


@variants("path", {"older": OLDER, "newer": NEWER})
async def test_autoscaler_bounds_are_validated(api: Conversation, path: str) -> None:
    assert await variant_statuses(api, path, AUTOSCALER, REPLICAS) == {422}


@variants("path", {"older": OLDER, "newer": NEWER})
async def test_autoscaler_target_is_validated(api: Conversation, path: str) -> None:
    assert 422 in await variant_statuses(api, path, AUTOSCALER, TARGETS)


METRICS: dict[str, list[Changes]] = {
    "types": [
        metrics({}),
        metrics({"type": "Pods"}),
        metrics({"type": "Object"}),
        metrics({"type": "Resource"}),
        metrics({"type": "External"}),
        metrics({"type": "ContainerResource"}),
        metrics({"type": "Sometimes"}),
        metrics({"type": "Sometimes"} | {"pods": {"metric": {"name": "m"}, "target": PODS_TARGET}}),
        metrics({"type": "Pods"} | {"object": OBJECT}),
        metrics(resource(type="Utilization", averageUtilization=1) | {"object": OBJECT}),
        metrics({"type": "Object", "object": OBJECT, "containerResource": CONTAINER}),
    ],
    "resources": [
        metrics(resource("", type="Utilization", averageUtilization=1)),
        metrics(resource(type="Utilization")),
        metrics(resource(type="Utilization", averageUtilization=1, averageValue="1")),
        metrics(resource(type="Utilization", averageUtilization=0)),
        metrics(resource(type="Utilization", averageUtilization=-1)),
        metrics(resource(type="AverageValue", averageValue="0")),
        metrics(resource(type="AverageValue", averageValue="-1")),
        metrics(resource(type="Sometimes", averageValue="1")),
        metrics(resource(averageValue="1")),
        metrics({"type": "Resource", "resource": {"name": "cpu"}}),
        metrics(resource(type="Utilization", averageUtilization=1), resource(type="Utilization")),
    ],
    "containers": [
        container(name=""),
        container(container=""),
        container(container="C_"),
        container(target={"type": "Utilization"}),
        container(target={"type": "Utilization", "averageUtilization": 1, "averageValue": "1"}),
        container(name="sometimes"),
        container(name="-"),
        container(name="a/b/c"),
        container(name="requests.cpu"),
    ],
    "pods": [
        pods(metric={}),
        pods(metric={"name": "a/b"}),
        pods(metric={"name": "."}),
        pods(target=VALUE),
        pods(target={}),
        pods(target={"type": "AverageValue", "averageValue": "0"}),
    ],
    "objects": [
        of_object(describedObject={}),
        of_object(describedObject={"kind": "a/b", "name": "c%"}),
        of_object(metric={}),
        of_object(target={"type": "Value"}),
        of_object(target={"type": "Value", "value": "0"}),
        of_object(target={"type": "AverageValue", "averageValue": "-1", "value": "-1"}),
        of_object(describedObject={"kind": "k", "name": "n", "apiVersion": "a/b/c"}),
    ],
    "externals": [
        external(metric={}),
        external(metric={"name": "m%"}),
        external(target={"type": "Value"}),
        external(target={"type": "Value", "value": "1", "averageValue": "1"}),
        external(target={"type": "Sometimes", "value": "-1"}),
    ],
}


@variants("wrong", METRICS)
async def test_autoscaler_metrics_are_validated(api: Conversation, wrong: list[Changes]) -> None:
    assert 422 in await variant_statuses(api, NEWER, AUTOSCALER, wrong)


BEHAVIORS: dict[str, list[Changes]] = {
    "rules": [
        {f"{UP}.stabilizationWindowSeconds": -1},
        {f"{UP}.stabilizationWindowSeconds": 3601},
        {f"{UP}.selectPolicy": "Sometimes"},
        {f"{UP}.selectPolicy": ""},
        {f"{UP}.tolerance": "-1"},
        {"spec.behavior.scaleDown": {"stabilizationWindowSeconds": -1, "selectPolicy": "x", "policies": [{}]}},
    ],
    "policies": [
        policies({}),
        policies(POLICY | {"type": "Sometimes"}),
        policies(POLICY | {"value": 0}),
        policies(POLICY | {"value": -1}),
        policies(POLICY | {"periodSeconds": 0}),
        policies(POLICY | {"periodSeconds": -1}),
        policies(POLICY | {"periodSeconds": 1801}),
        policies(POLICY, {}),
    ],
}


@variants("wrong", BEHAVIORS)
async def test_autoscaler_behavior_is_validated(api: Conversation, wrong: list[Changes]) -> None:
    assert await variant_statuses(api, NEWER, AUTOSCALER, wrong) == {422}


async def test_complete_autoscaler_is_accepted(api: Conversation) -> None:
    full = {
        "spec.minReplicas": 1,
        "spec.metrics": [
            resource(type="Utilization", averageUtilization=1),
            resource("memory", type="AverageValue", averageValue="1Gi"),
            {"type": "ContainerResource", "containerResource": CONTAINER},
            {"type": "Pods", "pods": {"metric": {"name": "m", "selector": SELECTOR}, "target": PODS_TARGET}},
            {"type": "Object", "object": OBJECT},
            {"type": "External", "external": {"metric": {"name": "m"}, "target": PODS_TARGET}},
        ],
        "spec.behavior": {
            "scaleUp": {"stabilizationWindowSeconds": 3600, "selectPolicy": "Disabled", "policies": [POLICY]},
            "scaleDown": {"selectPolicy": "Min"},
        },
    }
    assert await variant_statuses(api, NEWER, AUTOSCALER, [full]) == {201}


OLDER_WRONG: list[Changes] = [
    {"spec.targetCPUUtilizationPercentage": 0},
    {"spec.targetCPUUtilizationPercentage": -1},
    {"metadata.annotations": {"autoscaling.alpha.kubernetes.io/metrics": '[{"type":"Sometimes"}]'}},
    {"metadata.annotations": {"autoscaling.alpha.kubernetes.io/behavior": '{"ScaleUp":{"SelectPolicy":"x"}}'}},
]


async def test_v1_autoscaler_is_validated_as_v2(api: Conversation) -> None:
    assert await variant_statuses(api, OLDER, AUTOSCALER, OLDER_WRONG) == {422}


@variants("path", {"older": OLDER, "newer": NEWER})
async def test_autoscaler_updates_are_validated(api: Conversation, path: str) -> None:
    await api.create(path, AUTOSCALER)
    changes: list[dict[str, Any]] = [
        {"scaleTargetRef": {"name": "e"}, "maxReplicas": 9, "minReplicas": 2},
        {"minReplicas": 0},
        {"minReplicas": 5},
        {"maxReplicas": None},
        {"scaleTargetRef": None},
    ]
    answers = [await api("PATCH", f"{path}/a?dryRun=All", {"spec": each}, content_type=MERGE_PATCH) for each in changes]
    assert [answer.status for answer in answers] == [200, 422, 422, 422, 422]


BUDGETS_WRONG: dict[str, list[Changes]] = {
    "numbers": [
        {"spec.maxUnavailable": 1},
        {"spec.maxUnavailable": "1%"},
        {"spec.minAvailable": -1},
        {"spec.minAvailable": "x"},
        {"spec.minAvailable": "101%"},
        {"spec.minAvailable": ""},
        {"spec.minAvailable": GONE, "spec.maxUnavailable": -1},
        {"spec.minAvailable": GONE, "spec.maxUnavailable": "5"},
        {"spec.minAvailable": GONE, "spec.maxUnavailable": "200%"},
        {"spec.minAvailable": -1, "spec.maxUnavailable": "x", "spec.unhealthyPodEvictionPolicy": "x"},
    ],
    "others": [
        {"spec.unhealthyPodEvictionPolicy": "Sometimes"},
        {"spec.selector.matchLabels": {"-": "b"}},
        {"spec.selector.matchLabels": {"a": "-"}},
        {"spec.selector.matchExpressions": [{"key": "a", "operator": "Is"}]},
        {"spec.selector.matchExpressions": [{"key": "a", "operator": "In", "values": []}]},
        {"metadata.name": "a%"},
    ],
}


@variants("wrong", BUDGETS_WRONG)
async def test_disruption_budget_is_validated(api: Conversation, wrong: list[Changes]) -> None:
    assert await variant_statuses(api, BUDGETS, BUDGET, wrong) == {422}


async def test_minimal_disruption_budget_is_accepted(api: Conversation) -> None:
    right: list[Changes] = [
        {"spec": GONE},
        {"spec": {}},
        {"metadata.name": "A"},
        {"spec.selector": GONE},
        {"spec.selector": {}},
        {"spec.minAvailable": "100%", "spec.unhealthyPodEvictionPolicy": "AlwaysAllow"},
        {"spec.minAvailable": GONE, "spec.maxUnavailable": 0, "spec.unhealthyPodEvictionPolicy": "IfHealthyBudget"},
    ]
    assert await variant_statuses(api, BUDGETS, BUDGET, right) == {201}


async def test_disruption_budget_updates_are_validated(api: Conversation) -> None:
    await api.create(BUDGETS, BUDGET)
    changes: list[dict[str, Any]] = [
        {"selector": {"matchLabels": {"c": "d"}}, "minAvailable": "5%"},
        {"minAvailable": None, "maxUnavailable": 1},
        {"maxUnavailable": 1},
        {"minAvailable": -1},
    ]
    answers = [
        await api("PATCH", f"{BUDGETS}/a?dryRun=All", {"spec": each}, content_type=MERGE_PATCH) for each in changes
    ]
    assert [answer.status for answer in answers] == [200, 200, 422, 422]


async def test_lease_is_validated(api: Conversation) -> None:
    wrong: list[Changes] = [
        {"spec.leaseDurationSeconds": 0},
        {"spec.leaseDurationSeconds": -1},
        {"spec.leaseTransitions": -1},
        {"spec.leaseDurationSeconds": 0, "spec.leaseTransitions": -1},
        {"metadata.name": "A"},
    ]
    assert await variant_statuses(api, LEASES, LEASE, wrong) == {422}


async def test_coordinated_lease_fields_are_dropped_by_default(api: Conversation) -> None:
    right: list[Changes] = [
        {"spec": GONE},
        {"spec.strategy": "OldestEmulationVersion", "spec.preferredHolder": "b"},
        {"spec.strategy": "Sometimes"},
        {"spec.preferredHolder": "b"},
        {"spec.leaseDurationSeconds": 1, "spec.leaseTransitions": 0, "spec.renewTime": "2024-01-01T00:00:00.000000Z"},
    ]
    assert await variant_statuses(api, LEASES, LEASE, right) == {201}


async def test_lease_updates_are_validated(api: Conversation) -> None:
    await api.create(LEASES, LEASE)
    changes: list[dict[str, Any]] = [
        {"holderIdentity": "you", "leaseDurationSeconds": 15, "leaseTransitions": 3},
        {"leaseDurationSeconds": 0},
        {"leaseTransitions": -1},
    ]
    answers = [
        await api("PATCH", f"{LEASES}/a?dryRun=All", {"spec": each}, content_type=MERGE_PATCH) for each in changes
    ]
    assert [answer.status for answer in answers] == [200, 422, 422]


async def test_priority_class_is_validated(api: Conversation) -> None:
    priority = {"metadata": {"name": api.namespace}, "value": 1}
    wrong: list[Changes] = [
        {"value": 1_000_000_001},
        {"value": 2_147_483_647},
        {"preemptionPolicy": "Sometimes"},
        {"preemptionPolicy": ""},
        {"metadata.name": "system-a"},
        {"metadata.name": "system-node-critical-a", "value": 2_000_001_000},
        {"metadata.name": "system-a", "value": 1_000_000_001, "preemptionPolicy": "x"},
        {"metadata.name": "system-node-critical"},
        {"metadata.name": "system-node-critical", "value": 2_000_001_000, "globalDefault": True},
        {"metadata.name": "system-cluster-critical", "value": 2_000_001_000},
        {"metadata.name": "A"},
    ]
    assert await variant_statuses(api, PRIORITIES, priority, wrong) == {422}


async def test_priority_may_be_zero_or_negative(api: Conversation) -> None:
    priority = {"metadata": {"name": api.namespace}, "value": 1}
    right: list[Changes] = [
        {"value": GONE},
        {"value": 1_000_000_000, "preemptionPolicy": "Never", "description": "d"},
        {"value": -2_147_483_648},
    ]
    assert await variant_statuses(api, PRIORITIES, priority, right) == {201}


async def test_priority_class_is_immutable(api: Conversation) -> None:
    path = f"{PRIORITIES}/{api.namespace}"
    await api.create(PRIORITIES, {"metadata": {"name": api.namespace}, "value": 1})
    changes: list[dict[str, Any]] = [
        {"description": "d", "globalDefault": True},
        {"value": 2},
        {"value": None},
        {"preemptionPolicy": "Never"},
        {"preemptionPolicy": "Sometimes"},
        {"value": 1_000_000_001, "preemptionPolicy": "Never"},
    ]
    answers = [await api("PATCH", f"{path}?dryRun=All", each, content_type=MERGE_PATCH) for each in changes]
    await api("DELETE", path, recorded=False)
    assert [answer.status for answer in answers] == [200, 422, 422, 422, 422, 422]


async def test_status_counts_are_not_negative(api: Conversation) -> None:
    await api.create(NEWER, AUTOSCALER)
    await api.create(BUDGETS, BUDGET)
    wrong = {
        NEWER: ("currentReplicas", "desiredReplicas"),
        BUDGETS: ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"),
    }
    answers = [
        await api("PATCH", f"{path}/a/status", {"status": dict.fromkeys(fields, -1)}, content_type=MERGE_PATCH)
        for path, fields in wrong.items()
    ]
    assert {answer.status for answer in answers} == {422}
