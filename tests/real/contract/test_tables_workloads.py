"""Table rows of workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.paths import DEPLOYMENTS
from tests.real.contract.rows import Case, ago, row_of
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
CRON_JOBS = "/apis/batch/v1/namespaces/{ns}/cronjobs"
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


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


def resource(name: str, **target: Any) -> dict[str, Any]:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


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
}


@variants("case", WORKLOADS)
async def test_row_of_each_workload(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) >= 4
