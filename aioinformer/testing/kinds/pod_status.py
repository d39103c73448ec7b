"""The status of a pod: the initial status with the quality-of-service class, and fields that kubelets leave out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_QUALITY_RESOURCES = ("cpu", "memory")
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def first_pod_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a new pod."""
    condition = _GATED | {"lastTransitionTime": obj["metadata"]["creationTimestamp"]}
    conditions = {"conditions": [condition]} if obj["spec"].get("schedulingGates") else {}
    return {"phase": "Pending", **conditions, "qosClass": quality_of_service(obj["spec"])}


def align_pod_addresses(status: dict[str, Any]) -> None:
    """Make `podIP` the first of `podIPs`. If they differ, `podIP` wins, as older clients set only that."""
    address, addresses = status.get("podIP"), status.get("podIPs") or []
    first = addresses[0].get("ip", "") if addresses else ""
    if address and address != first:
        status["podIPs"] = [{"ip": address}]
    elif first and not address:
        status["podIP"] = first


def keep_unsent_fields(status: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Restore fields that older kubelets do not send.

    Args:
        status: is changed.
        old: the status that it replaces.
    """
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and old.get(field):
            status[field] = old[field]
    seen: dict[str, list[Any]] = defaultdict(list)
    for condition in old.get("conditions") or ():
        seen[condition.get("type", "")].append(condition.get("observedGeneration"))
    for condition in status.get("conditions") or ():
        generations = seen[condition.get("type", "")]
        generation = generations.pop(0) if generations else None
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


def set_condition(status: dict[str, Any], condition: Mapping[str, str], now: str) -> None:
    """Set a condition of a pod. The transition time is kept if its status does not change.

    Args:
        status: is changed.
        condition: with its `type` and `status`.
        now: in the API's format.
    """
    conditions = status.setdefault("conditions", [])
    updated = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            if each.get("status") == condition["status"]:
                updated["lastTransitionTime"] = each.get("lastTransitionTime")
            conditions[index] = updated
            return
    conditions.append(updated)


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Return the class for a pod's requests and limits."""
    of_pod = spec.get("resources") or {}
    # Pod-level resources take precedence.
    containers = (
        [of_pod]
        if of_pod.get("requests") or of_pod.get("limits")
        else [each.get("resources") or {} for each in _containers(spec)]
    )
    asked = [
        section.get(name)
        for resources in containers
        for section in (resources.get("requests") or {}, resources.get("limits") or {})
        for name in _QUALITY_RESOURCES
    ]
    if not any(value is not None for value in asked):
        return "BestEffort"
    guaranteed = all(
        (resources.get("limits") or {}).get(name) is not None
        and (resources.get("requests") or {}).get(name) == resources["limits"][name]
        for resources in containers
        for name in _QUALITY_RESOURCES
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _containers(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    fields = ("containers", "initContainers")
    return [each for field in fields for each in spec.get(field) or () if isinstance(each, dict)]
