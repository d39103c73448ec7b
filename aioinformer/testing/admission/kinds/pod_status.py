"""The status of a pod: what it is at first, and what the server has to say where its kubelet says nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.pod_quality import quality_of_service

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
    """The status of a pod that has just been made."""
    gated = _GATED | {"lastTransitionTime": obj["metadata"]["creationTimestamp"]}
    waits = {"conditions": [gated]} if obj["spec"].get("schedulingGates") else {}
    return {"phase": "Pending", **waits, "qosClass": quality_of_service(obj["spec"])}


def agree_on_addresses(status: dict[str, Any]) -> None:
    """Makes the address of a pod the first of its addresses; where they differ, older clients are right."""
    address, addresses = status.get("podIP"), status.get("podIPs") or []
    first = addresses[0].get("ip", "") if addresses else ""
    if address and address != first:
        status["podIPs"] = [{"ip": address}]
    elif first and not address:
        status["podIP"] = first


def keep_unsaid(status: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keeps of a status what a kubelet that does not know of it would take away.

    Args:
        status: is changed.
        old: what it replaces.
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
    """Says of a pod what is the case from now on, in place of what was said of it before.

    Args:
        status: is changed.
        condition: with its `type` and `status`.
        now: as the API writes times.
    """
    conditions = status.setdefault("conditions", [])
    told = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            if each.get("status") == condition["status"]:
                told["lastTransitionTime"] = each.get("lastTransitionTime")
            conditions[index] = told
            return
    conditions.append(told)
