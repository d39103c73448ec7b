"""Table rows of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import MERGE_PATCH, TABLE
from tests.real.contract.tables import PODS, variants
from tests.real.contract.test_tables import ago

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

ROW = f"{PODS}/a?includeObject=None"
TWO = {"containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]}
INIT = {
    "initContainers": [
        {"name": "i1", "image": "i"},
        {"name": "s1", "image": "i", "restartPolicy": "Always"},
        {"name": "i2", "image": "i"},
    ]
}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
READY = [{"type": "Ready", "status": "True"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]


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


def starting(*statuses: dict[str, Any], phase: str = "Pending", **more: Any) -> dict[str, Any]:
    return {"phase": phase, "initContainerStatuses": list(statuses), **more}


A, B = container("a", RUNNING, True), container("b", RUNNING, True)
STATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "creating": started(container("a", waiting("ContainerCreating")), container("b", waiting("ContainerCreating"))),
    "running": started(A, B, conditions=READY),
    "restarted": started(
        container("a", RUNNING, True, 3, HOURS), container("b", RUNNING, True, 1, DAYS), conditions=READY
    ),
    "not-ready": started(container("a", RUNNING), B),
    "crash-loop": started(container("a", waiting("CrashLoopBackOff"), False, 3, HOURS), B),
    "out-of-memory": started(container("a", terminated(137, "OOMKilled", 9)), B),
    "completed": started(
        container("a", terminated(0, "Completed")), container("b", terminated(0, "Completed")), phase="Succeeded"
    ),
    "one-completed": started(container("a", terminated(0, "Completed")), B, conditions=READY),
    "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
    "gated": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
    },
    "unschedulable": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
    "addresses": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
}
INITIALIZING: dict[str, dict[str, Any]] = {
    "nothing": {"phase": "Pending"},
    "first-runs": starting(container("i1", RUNNING, False, 2, HOURS), container("s1", waiting())),
    "first-failed": starting(container("i1", terminated(1, "Error"), False, 4)),
    "sidecar-starts": starting(
        container("i1", terminated(0, "Completed")), container("s1", RUNNING, False, started=False)
    ),
    "done": starting(
        container("i1", terminated(0), False, 2, HOURS),
        container("s1", RUNNING, True, 1, HOURS, started=True),
        container("i2", terminated(0)),
        phase="Running",
        containerStatuses=[A, container("b", RUNNING)],
        conditions=READY + INITIALIZED,
    ),
    "initialized-but-sidecar-restarts": starting(
        container("i1", terminated(0)),
        container("s1", waiting("CrashLoopBackOff"), False, 1, HOURS, started=False),
        container("i2", terminated(0)),
        phase="Running",
        containerStatuses=[A, B],
        conditions=INITIALIZED,
    ),
}


@variants("status", STATES)
async def test_row_of_a_pod_in_each_state(api: Conversation, status: dict[str, Any]) -> None:
    await create(api, TWO, status)
    answer = await api("GET", ROW, accept=TABLE)
    assert answer.body["rows"][0]["cells"][1].endswith("/2")


@variants("status", INITIALIZING)
async def test_row_of_an_initializing_pod(api: Conversation, status: dict[str, Any]) -> None:
    await create(api, TWO | INIT, status)
    answer = await api("GET", ROW, accept=TABLE)
    assert answer.body["rows"][0]["cells"][1].endswith("/3")


@variants(
    "status",
    {
        "running": started(A, B),
        "pending": {"phase": "Pending"},
        "succeeded": started(container("a", terminated(0, "Completed")), phase="Succeeded"),
        "failed": {"phase": "Failed", "reason": "Evicted"},
        "lost": started(A, B, reason="NodeLost"),
        "starting": starting(container("i1", RUNNING)),
        "crashes": started(container("a", waiting("CrashLoopBackOff")), B),
    },
)
async def test_row_of_a_pod_held_by_a_finalizer(api: Conversation, status: dict[str, Any]) -> None:
    await create(api, TWO, status, metadata={"finalizers": ["example.com/stay"]})
    await api("DELETE", f"{PODS}/a", recorded=False)
    await api("GET", ROW, accept=TABLE)
    answer = await api(
        "PATCH", f"{PODS}/a", {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH, recorded=False
    )
    assert answer.status == 200


async def test_row_of_a_pod_in_its_grace_period(api: Conversation) -> None:
    await create(api, TWO | {"nodeName": "n"}, started(A, B))
    answer = await api("DELETE", f"{PODS}/a?includeObject=None", accept=TABLE)
    await api("DELETE", f"{PODS}/a?gracePeriodSeconds=0", recorded=False)
    assert answer.status == 200


async def create(api: Conversation, spec: dict[str, Any], status: dict[str, Any], **more: Any) -> None:
    """Create the pod "a" with this status."""
    metadata = {"name": "a", **more.get("metadata", {})}
    await api.create(PODS, {"metadata": metadata, "spec": spec})
    if status:
        answer = await api("PATCH", f"{PODS}/a/status", {"status": status}, content_type=MERGE_PATCH, recorded=False)
        assert answer.status == 200, answer.body
