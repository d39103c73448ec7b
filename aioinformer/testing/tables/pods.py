"""Cells of pods, whose status is computed from their containers.

1. The status starts as the pod's phase or reason; a scheduling gate overrides it.
2. The first init container that has neither succeeded nor is a started sidecar sets the final status, unless the pod
   is initialized already.
3. Otherwise each waiting or terminated container sets the status, from the last to the first: the first container wins.
4. "Completed" is replaced while another container runs: by "Running" if the pod is ready, else by the failure or
   "NotReady".
5. A pod that is being deleted is "Terminating", or "Unknown" if its node is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.tables.cells import age, condition, field, human_duration, instant, name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


def pod_cells(pod: Mapping[str, Any], now: datetime) -> list[Any]:
    """Return the cells Name, Ready, Status, Restarts, Age, IP, Node, Nominated Node and Readiness Gates."""
    init_specs = {item["name"]: item for item in field(pod, "spec.initContainers", [])}
    sidecars = {key for key, item in init_specs.items() if item.get("restartPolicy") == "Always"}
    init, main = field(pod, "status.initContainerStatuses", []), field(pod, "status.containerStatuses", [])
    reason, ready = _initial_reason(pod), 0
    counted = init
    failing, started = _init_progress(init, len(init_specs), sidecars)
    ready += started
    if failing:
        reason = failing
    if not failing or condition(pod, "Initialized") == "True":
        counted = [*(status for status in init if status["name"] in sidecars), *main]
        reason, running = _main_reason(pod, main, reason)
        ready += running
    total = len(field(pod, "spec.containers", [])) + len(sidecars)
    deleted = field(pod, "metadata.deletionTimestamp")
    if deleted and field(pod, "status.reason") == "NodeLost":
        reason = "Unknown"
    elif deleted and field(pod, "status.phase") not in ("Succeeded", "Failed"):
        reason = "Terminating"
    addresses = field(pod, "status.podIPs", [])
    return [
        name(pod),
        f"{ready}/{total}",
        reason,
        _restarts(counted, now),
        age(pod, now),
        (addresses[0].get("ip") if addresses else "") or "<none>",
        field(pod, "spec.nodeName", "<none>"),
        field(pod, "status.nominatedNodeName", "<none>"),
        _readiness_gates(pod),
    ]


def pod_row_conditions(pod: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the conditions of the row: "Completed" if the pod has ended."""
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = field(pod, "status.phase", "")
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


def _initial_reason(pod: Mapping[str, Any]) -> str:
    for item in field(pod, "status.conditions", []):
        if item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(field(pod, "status.reason") or field(pod, "status.phase", ""))


def _init_progress(statuses: list[Any], total: int, sidecars: set[str]) -> tuple[str, int]:
    ready = 0
    for position, status in enumerate(statuses):
        terminated, waiting = field(status, "state.terminated"), field(status, "state.waiting.reason", "")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if status["name"] in sidecars and status.get("started"):
            ready += bool(status.get("ready"))
            continue
        if terminated is not None:
            return f"Init:{_termination(terminated)}", ready
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}", ready
        return f"Init:{position}/{total}", ready
    return "", ready


def _main_reason(pod: Mapping[str, Any], statuses: list[Any], reason: str) -> tuple[str, int]:
    ready, failure = 0, ""
    for status in reversed(statuses):
        terminated, waiting = field(status, "state.terminated"), field(status, "state.waiting.reason", "")
        if waiting:
            reason = waiting
        elif terminated is not None:
            reason = _termination(terminated)
            if terminated.get("exitCode", 0) != 0:
                failure = reason
        elif status.get("ready") and field(status, "state.running") is not None:
            ready += 1
    if reason == "Completed":
        if ready and condition(pod, "Ready") == "True":
            reason = "Running"
        elif failure or ready:
            reason = failure or "NotReady"
    return reason, ready


def _termination(terminated: Mapping[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(statuses: list[Any], now: datetime) -> str:
    count = sum(status.get("restartCount", 0) for status in statuses)
    finished = (instant(field(status, "lastState.terminated.finishedAt", "")) for status in statuses)
    moments = [moment for moment in finished if moment]
    return f"{count} ({human_duration(now - max(moments))} ago)" if count and moments else str(count)


def _readiness_gates(pod: Mapping[str, Any]) -> str:
    gates = [gate.get("conditionType", "") for gate in field(pod, "spec.readinessGates", [])]
    return f"{sum(condition(pod, gate) == 'True' for gate in gates)}/{len(gates)}" if gates else "<none>"
