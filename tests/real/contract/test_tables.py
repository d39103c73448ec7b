"""Tables: responses, columns of custom resources, rows of pods."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import MERGE_PATCH, TABLE
from tests.real.contract.custom_resources import define, version, widget
from tests.real.contract.custom_resources import path as path_of
from tests.real.contract.tables import CONFIGMAPS, PODS, variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation


def ago(**units: float) -> str:
    """Return a time in the past, ten seconds earlier: its age is shown the same for a while."""
    return (datetime.now(UTC) - timedelta(**units) - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")


TWO = {"containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]}
COMPLETED = {"terminated": {"exitCode": 0, "reason": "Completed", "signal": 0}}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "signal": 9}}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
READY = [{"type": "Ready", "status": "True"}]
HOURS = ago(hours=9)
DAYS = ago(days=10)


def container(
    name: str, state: dict[str, Any], ready: bool = False, restarts: int = 0, last: str = ""
) -> dict[str, Any]:
    known = {"name": name, "image": "i", "imageID": "", "state": state, "ready": ready, "restartCount": restarts}
    return known | ({"lastState": {"terminated": {"exitCode": 1, "finishedAt": last}}} if last else {})


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def started(*statuses: dict[str, Any], phase: str = "Running", **more: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": list(statuses), **more}


A, B = container("a", RUNNING, True), container("b", RUNNING, True)
STATES: dict[str, dict[str, Any]] = {
    "creating": started(container("a", waiting("ContainerCreating")), container("b", waiting("ContainerCreating"))),
    "running": started(A, B, conditions=READY),
    "restarted": started(
        container("a", RUNNING, True, 3, HOURS), container("b", RUNNING, True, 1, DAYS), conditions=READY
    ),
    "crash-loop": started(container("a", waiting("CrashLoopBackOff"), False, 3, HOURS), B),
    "out-of-memory": started(container("a", KILLED), B),
    "completed": started(container("a", COMPLETED), container("b", COMPLETED), phase="Succeeded"),
    "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
}


@variants("status", STATES)
async def test_row_of_a_pod_in_each_state(api: Conversation, status: dict[str, Any]) -> None:
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": TWO})
    answer = await api("PATCH", f"{PODS}/a/status", {"status": status}, content_type=MERGE_PATCH, recorded=False)
    assert answer.status == 200, answer.body
    answer = await api("GET", f"{PODS}/a?includeObject=None", accept=TABLE)
    assert answer.body["rows"][0]["cells"][1].endswith("/2")


# Type and JSON path of a column.
COLUMNS: dict[str, list[dict[str, Any]] | None] = {
    "none": None,
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


@pytest.mark.parametrize("include", ["None", "Object"])
async def test_pages_as_tables(api: Conversation, include: str) -> None:
    for name in "abc":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    page = await api("GET", f"{CONFIGMAPS}?limit=2&includeObject={include}", accept=TABLE)
    api.variables["token"] = page.metadata["continue"]
    answer = await api("GET", f"{CONFIGMAPS}?limit=2&continue={{token}}&includeObject={include}", accept=TABLE)
    assert len(answer.body["rows"]) == 1


@pytest.mark.parametrize("include", ["None", "Object"])
async def test_watch_events_as_tables(api: Conversation, include: str) -> None:
    for name in "ab":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    async with api.open_watch(f"{CONFIGMAPS}?watch=true&includeObject={include}", accept=TABLE) as watch:
        await watch.read(2)
        await api("DELETE", f"{CONFIGMAPS}/a", recorded=False)
        await watch.read()
    assert watch.events[-1]["type"] == "DELETED"
