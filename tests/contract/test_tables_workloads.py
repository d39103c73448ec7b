"""Table rows of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import DEPLOYMENTS
from tests.contract.rows import Case, ago, row_of
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/{ns}/cronjobs"
SCALERS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"

TWO = {"containers": [{"name": "a", "image": "one:1"}, {"name": "b", "image": "registry.example.com/two@sha256:00"}]}
TEMPLATE = {"metadata": {"labels": {"app": "a", "tier": "t"}}, "spec": TWO}
SELECTOR = {
    "matchLabels": {"app": "a"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["t", "s"]},
        {"key": "q", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "r", "operator": "NotIn", "values": ["z"]},
    ],
}
ONCE = {"template": {"spec": TWO | {"restartPolicy": "Never"}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


def resource(name: str, **target: Any) -> dict[str, Any]:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


def scaler(*metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": list(metrics), **more}}


PODS_METRIC = {
    "type": "Pods",
    "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "5"}},
}
EXTERNAL = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}},
}
EXTERNAL_AVERAGE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "30"}},
}
OBJECT_METRIC = {
    "type": "Object",
    "object": {
        "metric": {"name": "load"},
        "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
        "target": {"type": "Value", "value": "2k"},
    },
}
CONTAINER_METRIC = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "a",
        "target": {"type": "Utilization", "averageUtilization": 60},
    },
}


def measured(*metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"desiredReplicas": 3, "currentReplicas": 2, "currentMetrics": list(metrics), **more}


WORKLOADS: dict[str, Case] = {
    "deployment": (
        DEPLOYMENTS,
        {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}},
        {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
    ),
    "deployment-of-none": (
        DEPLOYMENTS,
        {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}},
        {},
    ),
    "replicaset": (
        "/apis/apps/v1/namespaces/{ns}/replicasets",
        {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}},
        {"replicas": 3, "readyReplicas": 1},
    ),
    "statefulset": (
        "/apis/apps/v1/namespaces/{ns}/statefulsets",
        {"spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, "serviceName": "s"}},
        {"replicas": 3, "readyReplicas": 1},
    ),
    "daemonset": (
        "/apis/apps/v1/namespaces/{ns}/daemonsets",
        {
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": TEMPLATE["metadata"], "spec": TWO | {"nodeSelector": {"z": "1", "a": "2"}}},
            }
        },
        {
            "desiredNumberScheduled": 5,
            "currentNumberScheduled": 4,
            "numberReady": 3,
            "updatedNumberScheduled": 2,
            "numberAvailable": 1,
            "numberMisscheduled": 0,
        },
    ),
    "controller": (
        "/api/v1/namespaces/{ns}/replicationcontrollers",
        {"spec": {"replicas": 2, "selector": {"app": "a", "tier": "t"}, "template": TEMPLATE}},
        {"replicas": 2, "readyReplicas": 1},
    ),
    "job": (JOBS, {"spec": ONCE | {"completions": 4}}, {"startTime": ago(days=9), "active": 1, "succeeded": 1}),
    "job-in-parallel": (JOBS, {"spec": ONCE | {"parallelism": 3}}, {}),
    "job-in-parallel-by-none": (JOBS, {"spec": ONCE | {"parallelism": 0}}, {}),
    "job-suspended": (JOBS, {"spec": ONCE | {"suspend": True}}, {"conditions": [condition("Suspended")]}),
    "job-complete": (
        JOBS,
        {"spec": ONCE},
        {
            "startTime": "2026-01-01T08:00:00Z",
            "completionTime": "2026-01-01T08:58:07Z",
            "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        },
    ),
    "job-failed": (
        JOBS,
        {"spec": ONCE},
        {
            "startTime": ago(days=9),
            "failed": 3,
            "conditions": [condition("FailureTarget"), condition("Failed", reason="BackoffLimitExceeded")],
        },
    ),
    "job-about-to-fail": (JOBS, {"spec": ONCE}, {"startTime": ago(days=9), "conditions": [condition("FailureTarget")]}),
    "job-about-to-succeed": (
        JOBS,
        {"spec": ONCE},
        {"startTime": ago(days=9), "conditions": [condition("SuccessCriteriaMet")]},
    ),
    "cronjob": (
        CRON_JOBS,
        {"spec": {"schedule": "*/5 * * * *", "timeZone": "Europe/Berlin", "jobTemplate": {"spec": ONCE}}},
        {"lastScheduleTime": ago(hours=9), "active": [{"name": "x"}, {"name": "y"}]},
    ),
    "cronjob-suspended": (
        CRON_JOBS,
        {"spec": {"schedule": "@daily", "suspend": True, "jobTemplate": {"spec": ONCE}}},
        {},
    ),
    "budget": (
        BUDGETS,
        {"spec": {"maxUnavailable": "30%", "selector": {"matchLabels": {"app": "a"}}}},
        {
            "disruptionsAllowed": 2,
            "currentHealthy": 3,
            "desiredHealthy": 1,
            "expectedPods": 3,
            "observedGeneration": 1,
        },
    ),
    "revision-of-nobody": ("/apis/apps/v1/namespaces/{ns}/controllerrevisions", {"revision": 1, "data": {}}, {}),
}
SCALED: dict[str, Case] = {
    "nothing-known": (SCALERS, scaler(resource("cpu", averageUtilization=70)), {}),
    "resource": (
        SCALERS,
        scaler(resource("cpu", averageUtilization=70), resource("memory", averageValue="1Gi"), minReplicas=2),
        measured(
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 9}}},
            {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "500Mi"}}},
        ),
    ),
    "three": (
        SCALERS,
        scaler(resource("cpu", averageUtilization=70), PODS_METRIC, EXTERNAL),
        measured({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 9}}}),
    ),
    "pods-and-object": (
        SCALERS,
        scaler(PODS_METRIC, OBJECT_METRIC),
        measured(
            {"type": "Pods", "pods": {"metric": {"name": "hits"}, "current": {"averageValue": "2500m"}}},
            {
                "type": "Object",
                "object": {
                    "metric": {"name": "load"},
                    "describedObject": {"kind": "Service", "name": "s"},
                    "current": {"value": "1500"},
                },
            },
        ),
    ),
    "external": (
        SCALERS,
        scaler(EXTERNAL, EXTERNAL_AVERAGE),
        measured(
            {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"value": "12"}}},
            {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"averageValue": "3"}}},
        ),
    ),
    "container": (SCALERS, scaler(CONTAINER_METRIC), {}),
}


@variants("case", WORKLOADS)
async def test_row_of_each_workload(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) >= 4


@variants("case", SCALED)
async def test_row_of_an_autoscaler(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) == 7
