"""Validation of priority classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import immutable, one_of
from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HIGHEST = 1_000_000_000
_PREFIX = "system-"
_SYSTEM_CLASSES = {"system-node-critical": 2 * _HIGHEST + 1000, "system-cluster-critical": 2 * _HIGHEST}


def priority_class(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    value, preemption = obj.get("value") or 0, obj.get("preemptionPolicy")
    if old is not None:
        if value != (old.get("value") or 0):
            yield Cause.forbidden("value", "may not be changed in an update.")
        yield from immutable(preemption, old.get("preemptionPolicy"), "preemptionPolicy")
        return
    name = (obj.get("metadata") or {}).get("name", "")
    if name.startswith(_PREFIX):
        if why := _system_fault(name, value, is_default=bool(obj.get("globalDefault"))):
            reserved = f"priority class names with '{_PREFIX}' prefix are reserved for system use only. error: {why}"
            yield Cause.forbidden("metadata.name", reserved)
    elif value > _HIGHEST:
        yield Cause.forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if preemption == "":
        yield Cause.required("preemptionPolicy")
    elif preemption is not None:
        yield from one_of(preemption, "preemptionPolicy", ("PreemptLowerPriority", "Never"))


def _system_fault(name: str, value: int, *, is_default: bool) -> str:
    """Return why this is not one of the two system classes, or ""."""
    if name not in _SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""
