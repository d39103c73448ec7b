"""Tables: responses, columns of custom resources, rows of workloads and pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, MERGE_PATCH, TABLE
from tests.real.contract.tables import CONFIGMAPS, DEPLOYMENTS, PODS, variants
from tests.real.contract.test_custom_resources import define, version, widget
from tests.real.contract.test_custom_resources import path as path_of

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


Case = tuple[str, dict[str, Any], dict[str, Any]]
"""Path of the collection, object, and status ({} for none)."""


def ago(**units: float) -> str:
    """Return a time in the past, ten seconds earlier: its age is shown the same for a while."""
    return (datetime.now(UTC) - timedelta(**units) - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def row_of(api: Conversation, case: Case) -> list[Any]:
    """Create the object "a", and return the cells of its table row; the recording has the object too."""
    path, content, status = case
    created = await api("POST", path, {"metadata": {"name": "a"}, **content})
    assert created.status == 201, created.body
    if status:
        answer = await api("PATCH", f"{path}/a/status", {"status": status}, content_type=MERGE_PATCH)
        assert answer.status == 200, answer.body
    answer = await api("GET", f"{path}/a?includeObject=None", accept=TABLE)
    cells: list[Any] = answer.body["rows"][0]["cells"]
    return cells


JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"

PODS_OF_TWO = {
    "containers": [{"name": "a", "image": "one:1"}, {"name": "b", "image": "registry.example.com/two@sha256:00"}]
}
TEMPLATE = {"metadata": {"labels": {"app": "a", "tier": "t"}}, "spec": PODS_OF_TWO}
SELECTOR = {
    "matchLabels": {"app": "a"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["t", "s"]},
        {"key": "q", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "r", "operator": "NotIn", "values": ["z"]},
    ],
}
ONCE = {"template": {"spec": PODS_OF_TWO | {"restartPolicy": "Never"}}}


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


WORKLOADS: dict[str, Case] = {
    "deployment": (
        DEPLOYMENTS,
        {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}},
        {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2},
    ),
    "replicaset": (
        "/apis/apps/v1/namespaces/{ns}/replicasets",
        {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}},
        {"replicas": 3, "readyReplicas": 1},
    ),
    "job": (JOBS, {"spec": ONCE | {"completions": 4}}, {"startTime": ago(days=9), "active": 1, "succeeded": 1}),
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
}


@variants("case", WORKLOADS)
async def test_row_of_each_workload(api: Conversation, case: Case) -> None:
    assert len(await row_of(api, case)) >= 4


ROW = f"{PODS}/a?includeObject=None"
TWO = {"containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
READY = [{"type": "Ready", "status": "True"}]
HOURS = ago(hours=9)
DAYS = ago(days=10)


def container(
    name: str, state: dict[str, Any], ready: bool = False, restarts: int = 0, last: str = "", **more: Any
) -> dict[str, Any]:
    known = {"name": name, "image": "i", "imageID": "", "state": state, "ready": ready, "restartCount": restarts}
    return known | more | ({"lastState": {"terminated": {"exitCode": 1, "finishedAt": last}}} if last else {})


def terminated(code: int, reason: str = "", signal: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def waiting(reason: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def started(*statuses: dict[str, Any], phase: str = "Running", **more: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": list(statuses), **more}


A, B = container("a", RUNNING, True), container("b", RUNNING, True)
STATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "creating": started(container("a", waiting("ContainerCreating")), container("b", waiting("ContainerCreating"))),
    "running": started(A, B, conditions=READY),
    "restarted": started(
        container("a", RUNNING, True, 3, HOURS), container("b", RUNNING, True, 1, DAYS), conditions=READY
    ),
    "crash-loop": started(container("a", waiting("CrashLoopBackOff"), False, 3, HOURS), B),
    "out-of-memory": started(container("a", terminated(137, "OOMKilled", 9)), B),
    "completed": started(
        container("a", terminated(0, "Completed")), container("b", terminated(0, "Completed")), phase="Succeeded"
    ),
    "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
    "unschedulable": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
}


INIT = {
    "initContainers": [
        {"name": "i1", "image": "i"},
        {"name": "s1", "image": "i", "restartPolicy": "Always"},
        {"name": "i2", "image": "i"},
    ]
}
INITIALIZING: dict[str, dict[str, Any]] = {
    "first-runs": {
        "phase": "Pending",
        "initContainerStatuses": [container("i1", RUNNING, False, 2, HOURS), container("s1", waiting())],
    },
    "done": {
        **started(A, container("b", RUNNING), conditions=[*READY, {"type": "Initialized", "status": "True"}]),
        "initContainerStatuses": [
            container("i1", terminated(0), False, 2, HOURS),
            container("s1", RUNNING, True, 1, HOURS, started=True),
            container("i2", terminated(0)),
        ],
    },
}


@variants("status", STATES)
async def test_row_of_a_pod_in_each_state(api: Conversation, status: dict[str, Any]) -> None:
    assert (await row_of_pod(api, TWO, status))[1].endswith("/2")


@variants("status", INITIALIZING)
async def test_row_of_an_initializing_pod(api: Conversation, status: dict[str, Any]) -> None:
    assert (await row_of_pod(api, TWO | INIT, status))[1].endswith("/3")


async def row_of_pod(api: Conversation, spec: dict[str, Any], status: dict[str, Any]) -> list[Any]:
    """Create the pod "a", and return the cells of its table row."""
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
    if status:
        answer = await api("PATCH", f"{PODS}/a/status", {"status": status}, content_type=MERGE_PATCH, recorded=False)
        assert answer.status == 200, answer.body
    answer = await api("GET", ROW, accept=TABLE)
    cells: list[Any] = answer.body["rows"][0]["cells"]
    return cells


# Type and JSON path of a column.
COLUMNS: dict[str, list[dict[str, Any]] | None] = {
    "none": None,
    "one": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    "priority": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "How large."},
        {"name": "Since", "type": "string", "format": "date-time", "jsonPath": ".spec.old"},
        {"name": "Size", "type": "integer", "format": "int32", "jsonPath": ".spec.size"},
    ],
}


@variants("columns", COLUMNS)
async def test_columns_come_from_the_crd(api: Conversation, columns: list[dict[str, Any]] | None) -> None:
    fields: dict[str, Any] = {} if columns is None else {"additionalPrinterColumns": columns}
    where = await define(api, version(**fields))
    await api.create(path_of(api), widget(api, spec={"size": 3, "old": DAYS}))
    answer = await api("GET", f"{path_of(api)}?includeObject=None", accept=TABLE)
    await api("DELETE", where, recorded=False)
    assert answer.body["columnDefinitions"][0]["name"] == "Name"


BETA = TABLE.replace("v=v1", "v=v1beta1")
CONFIGMAP = {"metadata": {"name": "a"}, "data": {"k": "v"}}
KUBECTL = f"{TABLE},{BETA},{JSON}"


@pytest.mark.parametrize("include", ["None", "Object"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_pages_as_tables(api: Conversation, accept: str, include: str) -> None:
    for name in "abc":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    page = await api("GET", f"{CONFIGMAPS}?limit=2&includeObject={include}", accept=accept)
    api.variables["token"] = page.metadata["continue"]
    answer = await api("GET", f"{CONFIGMAPS}?limit=2&continue={{token}}&includeObject={include}", accept=accept)
    assert len(answer.body["rows"]) == 1


@pytest.mark.parametrize("include", ["None", "Object"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_watch_events_as_tables(api: Conversation, accept: str, include: str) -> None:
    for name in "ab":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    async with api.open_watch(f"{CONFIGMAPS}?watch=true&includeObject={include}", accept=accept) as watch:
        await watch.read(2)
        await api("DELETE", f"{CONFIGMAPS}/a", recorded=False)
        await watch.read()
    assert watch.events[-1]["type"] == "DELETED"


@variants(
    "accept",
    {
        "kubectl": KUBECTL,
        "json-first": f"{JSON},{TABLE}",
        "table-or-anything": f"{TABLE},*/*",
    },
)
@pytest.mark.parametrize("path", [f"{CONFIGMAPS}/a", CONFIGMAPS, f"{CONFIGMAPS}?watch=1"], ids=["one", "list", "watch"])
async def test_accept_header_decides_on_a_table(api: Conversation, path: str, accept: str) -> None:
    await api.create(CONFIGMAPS, CONFIGMAP)
    if "watch" in path:
        answer = await api.watch(path, events=1, accept=accept)
    else:
        answer = await api("GET", path, accept=accept)
    assert answer.status in (200, 406)
