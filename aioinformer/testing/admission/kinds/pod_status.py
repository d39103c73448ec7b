"""The status of a pod: the initial status, and fields that kubelets leave out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.quality_of_service import quality_of_service

if TYPE_CHECKING:
    from collections.abc import Mapping

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
