"""Conditions of certificate signing requests: approvers decide, signers write the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_DECISIONS = ("Approved", "Denied")


def settle_conditions(obj: dict[str, Any], old: Mapping[str, Any], subresource: str, now: str) -> None:
    """Keep only what the subresource may write, and set the times of the conditions.

    Args:
        obj: the written request; is changed.
        old: the request that it replaces.
        subresource: "approval" or "status".
        now: for missing times.
    """
    status, former = obj.get("status") or {}, old.get("status") or {}
    conditions = [dict(each) for each in status.get("conditions") or ()]
    if subresource == "approval":
        status = former
    else:
        _keep_decisions(conditions, former.get("conditions") or ())
    for condition in conditions:
        same = [each for each in former.get("conditions") or () if _is_same(each, condition)]
        since = next((each["lastTransitionTime"] for each in same if each.get("lastTransitionTime")), now)
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        condition["lastTransitionTime"] = condition.get("lastTransitionTime") or since
    kept = {name: value for name, value in status.items() if name != "conditions"}
    obj["status"] = {**kept, "conditions": conditions} if conditions else kept


def _keep_decisions(conditions: list[dict[str, Any]], former: Any) -> None:
    for type_ in _DECISIONS:
        places = [index for index, each in enumerate(conditions) if each.get("type") == type_]
        known = [each for each in former if each.get("type") == type_]
        if len(places) == len(known):
            for index, each in zip(places, known, strict=True):
                conditions[index] = dict(each)


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one.get("type"), one.get("status")) == (other.get("type"), other.get("status"))
