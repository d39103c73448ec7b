"""HorizontalPodAutoscalers in autoscaling/v1 and autoscaling/v2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.conversation import APPLY, MERGE_PATCH, PARTIAL, TABLE
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

OLDER = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
NEWER = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
BOTH = {"older": OLDER, "newer": NEWER}
TARGET = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "i"}


def resource(name: str = "cpu", **target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def autoscaler(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": TARGET | spec}


OLD: dict[str, dict[str, Any]] = {
    "nothing": autoscaler(),
    "share": autoscaler(targetCPUUtilizationPercentage=50, minReplicas=2),
    "metrics-in-annotation": autoscaler() | {
        "metadata": {"name": "a", "annotations": {
            "autoscaling.alpha.kubernetes.io/metrics":
                '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1k"}}]',
            "autoscaling.alpha.kubernetes.io/conditions": "broken",
            "autoscaling.alpha.kubernetes.io/behavior": "[1]",
            "autoscaling.alpha.kubernetes.io/current-metrics": '["x"]',
            "other": "stays",
        }}
    },
}  # fmt: skip
NEW: dict[str, dict[str, Any]] = {
    "nothing": autoscaler(),
    "share": autoscaler(metrics=[resource(type="Utilization", averageUtilization=50)]),
    "value": autoscaler(metrics=[resource(type="AverageValue", averageValue="500m")]),
    "memory": autoscaler(metrics=[
        resource("memory", type="Utilization", averageUtilization=60),
        resource(type="Utilization", averageUtilization=70),
    ]),
    "container": autoscaler(metrics=[{
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5},
        },
    }]),
    "pods": autoscaler(metrics=[{
        "type": "Pods",
        "pods": {
            "metric": {"name": "m", "selector": SELECTOR}, "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }]),
    "object": autoscaler(metrics=[{
        "type": "Object",
        "object": {
            "describedObject": INGRESS, "metric": {"name": "m"}, "target": {"type": "Value", "value": "2k"},
        },
    }]),
    "object-average": autoscaler(metrics=[{
        "type": "Object",
        "object": {
            "describedObject": INGRESS, "metric": {"name": "m"},
            "target": {"type": "AverageValue", "averageValue": "2k"},
        },
    }]),
    "external": autoscaler(metrics=[{
        "type": "External",
        "external": {
            "metric": {"name": "m<n", "selector": SELECTOR}, "target": {"type": "Value", "value": "1"},
        },
    }]),
    "behavior": autoscaler(behavior={
        "scaleDown": {
            "stabilizationWindowSeconds": 60, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}],
        },
    }),
    "both-behaviors": autoscaler(behavior={
        "scaleUp": {"selectPolicy": "Disabled", "policies": [{"type": "Percent", "value": 1, "periodSeconds": 1}]},
        "scaleDown": {"selectPolicy": "Min"},
    }),
}  # fmt: skip
STATUS = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "lastScaleTime": "2024-05-01T10:00:00Z",
    "observedGeneration": 1,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "40m"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "3"}}},
        {
            "type": "Object",
            "object": {"describedObject": INGRESS, "metric": {"name": "m"}, "current": {"value": "7"}},
        },
    ],
    "conditions": [
        {
            "type": "AbleToScale",
            "status": "True",
            "reason": "ReadyForNewScale",
            "message": "recommended size matches current size",
            "lastTransitionTime": "2024-05-01T10:00:00Z",
        }
    ],
}


@variants("body", OLD)
async def test_v1_autoscaler_is_served_in_both_versions(api: Conversation, body: dict[str, Any]) -> None:
    await api("POST", OLDER, body)
    older, newer = [await api("GET", f"{each}/a") for each in (OLDER, NEWER)]
    assert older.metadata["uid"] == newer.metadata["uid"]


@variants("body", NEW)
async def test_v2_autoscaler_is_served_in_both_versions(api: Conversation, body: dict[str, Any]) -> None:
    await api("POST", NEWER, body)
    older = await api("GET", f"{OLDER}/a")
    await api("GET", OLDER)
    await api("PUT", f"{OLDER}/a", older.body)
    newer = await api("GET", f"{NEWER}/a")
    assert older.metadata["resourceVersion"] == newer.metadata["resourceVersion"]


@variants("where", BOTH)
async def test_status_is_served_in_both_versions(api: Conversation, where: str) -> None:
    await api.create(NEWER, NEW["share"])
    status = STATUS if where == NEWER else {"currentReplicas": 2, "currentCPUUtilizationPercentage": 55}
    await api("PATCH", f"{where}/a/status", {"status": status}, content_type=MERGE_PATCH)
    older, newer = [await api("GET", f"{each}/a") for each in (OLDER, NEWER)]
    assert older.body["status"]["currentReplicas"] == newer.body["status"]["currentReplicas"] == 2


@variants("accept", {"table": TABLE, "metadata": PARTIAL})
@variants("where", BOTH)
async def test_autoscaler_as_table_and_metadata(api: Conversation, where: str, accept: str) -> None:
    await api.create(NEWER, NEW["pods"])
    answer = await api("GET", f"{where}/a", accept=accept)
    assert answer.status == 200


@variants("where", BOTH)
async def test_watch_in_either_version(api: Conversation, where: str) -> None:
    made = await api.create(NEWER, NEW["pods"])
    api.variables["v"] = made["metadata"]["resourceVersion"]
    await api("PATCH", f"{OLDER}/a", {"spec": {"maxReplicas": 5}}, content_type=MERGE_PATCH, recorded=False)
    await api("DELETE", f"{NEWER}/a", recorded=False)
    answer = await api.watch(f"{where}?watch=true&resourceVersion={{v}}", events=2)
    assert [event["type"] for event in answer.body] == ["MODIFIED", "DELETED"]


@variants("where", BOTH)
async def test_field_owner_is_recorded_in_its_api_version(api: Conversation, where: str) -> None:
    await api.create(where, autoscaler())
    other = OLDER if where == NEWER else NEWER
    metrics = {"targetCPUUtilizationPercentage": 7} if other == OLDER else NEW["share"]["spec"]
    await api("PATCH", f"{other}/a?fieldManager=other", {"spec": metrics}, content_type=MERGE_PATCH)
    answer = await api("PATCH", f"{where}/a?fieldManager=third", {"spec": {"maxReplicas": 9}}, content_type=MERGE_PATCH)
    assert answer.status == 200


async def test_apply_conflicts_with_owners_in_another_version(api: Conversation) -> None:
    older = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", **autoscaler()}
    older["spec"] = {**older["spec"], "targetCPUUtilizationPercentage": 30}
    await api("PATCH", f"{OLDER}/a?fieldManager=one", older, content_type=APPLY)
    newer = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **NEW["share"]}
    await api("PATCH", f"{NEWER}/a?fieldManager=two", newer, content_type=APPLY)
    answer = await api("PATCH", f"{NEWER}/a?fieldManager=two&force=true", newer, content_type=APPLY)
    assert answer.status == 200


async def test_fields_owned_in_another_version_are_kept(api: Conversation) -> None:
    newer = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **NEW["memory"]}
    await api("PATCH", f"{NEWER}/a?fieldManager=one", newer, content_type=APPLY)
    older = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", **autoscaler()}
    older["spec"] = {**older["spec"], "minReplicas": 1, "targetCPUUtilizationPercentage": 70}
    await api("PATCH", f"{OLDER}/a?fieldManager=two", older, content_type=APPLY)
    answer = await api("PATCH", f"{NEWER}/a?fieldManager=one", {**newer, "spec": TARGET}, content_type=APPLY)
    assert answer.status == 200


async def test_applier_may_switch_versions(api: Conversation) -> None:
    older = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", **autoscaler(minReplicas=2)}
    await api("PATCH", f"{OLDER}/a?fieldManager=one", older, content_type=APPLY)
    newer = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **autoscaler()}
    answer = await api("PATCH", f"{NEWER}/a?fieldManager=one", newer, content_type=APPLY)
    assert answer.status == 200


@variants("where", BOTH)
async def test_dry_run_returns_the_defaulted_autoscaler(api: Conversation, where: str) -> None:
    answer = await api("POST", f"{where}?dryRun=All", autoscaler())
    assert answer.status == 201


@variants("where", BOTH)
async def test_delete_in_either_version(api: Conversation, where: str) -> None:
    await api.create(NEWER, NEW["share"])
    await api("DELETE", f"{where}/a")
    answer = await api("GET", f"{OLDER if where == NEWER else NEWER}/a")
    assert answer.status == 404
