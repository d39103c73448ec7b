"""The usual parts of table cells (fields, ages, conditions), and the cells of pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Cells = Callable[[Mapping[str, Any], datetime], list[Any]]
"""Returns the cells of an object's row at a given time."""

_DAY = 24
_YEAR = 24 * 365


def field(obj: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """Return the value at a dotted path, or the default if a part of the path is missing or null."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return default if value is None else value


def name(obj: Mapping[str, Any]) -> str:
    """Return the object's name."""
    return str(field(obj, "metadata.name", ""))


def instant(text: str) -> datetime | None:
    """Parse an RFC 3339 timestamp; return None if it is invalid."""
    try:
        parsed = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def human_duration(elapsed: timedelta) -> str:
    """Return a duration with two or three significant figures: "90s", "5m30s", "3h12m", "47h", "6d4h", "3y20d"."""
    total = int(elapsed.total_seconds())
    minutes = total // 60
    hours = total // 3600
    if total < -1:
        return "<invalid>"
    if total < 120:
        return f"{max(total, 0)}s"
    if minutes < 10:
        return _two_units(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 2 * _DAY:
        return f"{hours}h"
    if hours < 8 * _DAY:
        return _two_units(hours // _DAY, "d", hours % _DAY, "h")
    if hours < 2 * _YEAR:
        return f"{hours // _DAY}d"
    if hours < 8 * _YEAR:
        return _two_units(hours // _YEAR, "y", hours // _DAY % 365, "d")
    return f"{hours // _YEAR}y"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(obj: Mapping[str, Any], path: str, now: datetime) -> str:
    """Return the time since the timestamp at a path, or "<unknown>" without a timestamp."""
    moment = instant(field(obj, path, ""))
    return human_duration(now - moment) if moment else "<unknown>"


def age(obj: Mapping[str, Any], now: datetime) -> str:
    """Return the time since the object was created."""
    return since(obj, "metadata.creationTimestamp", now)


def condition(obj: Mapping[str, Any], kind: str) -> str:
    """Return the status of a condition, or "" if the object does not have it."""
    found = (item.get("status", "") for item in field(obj, "status.conditions", []) if item.get("type") == kind)
    return str(next(found, ""))


def pod_cells(pod: Mapping[str, Any], now: datetime) -> list[Any]:
    """Return the cells Name, Ready, Status, Restarts, Age, IP, Node, Nominated Node and Readiness Gates."""
    init_specs = {item["name"]: item for item in field(pod, "spec.initContainers", [])}
    sidecars = {key for key, item in init_specs.items() if item.get("restartPolicy") == "Always"}
    init = field(pod, "status.initContainerStatuses", [])
    main = field(pod, "status.containerStatuses", [])
    reason = _initial_reason(pod)
    ready = 0
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
        terminated = field(status, "state.terminated")
        waiting = field(status, "state.waiting.reason", "")
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
    ready = 0
    failure = ""
    for status in reversed(statuses):
        terminated = field(status, "state.terminated")
        waiting = field(status, "state.waiting.reason", "")
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
    if count and moments:
        return f"{count} ({human_duration(now - max(moments))} ago)"
    return str(count)


def _readiness_gates(pod: Mapping[str, Any]) -> str:
    gates = [gate.get("conditionType", "") for gate in field(pod, "spec.readinessGates", [])]
    if gates:
        return f"{sum(condition(pod, gate) == 'True' for gate in gates)}/{len(gates)}"
    return "<none>"
