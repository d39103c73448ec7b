"""Validation of pod disruption budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import non_negative, one_of, selector_causes
from aioinformer.testing.admission.specs.workloads.rollouts import at_most_all, number_or_percentage
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BUDGET = {"MinAvailable": None, "Selector": None, "MaxUnavailable": None, "UnhealthyPodEvictionPolicy": None}
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def disruption_budget(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    bounds = {field: spec[field] for field in ("minAvailable", "maxUnavailable") if spec.get(field) is not None}
    if len(bounds) == 2:
        why = "minAvailable and maxUnavailable cannot be both set"
        yield Cause.invalid("spec", quote(go_struct(spec, _BUDGET)), why)
    for field, value in bounds.items():
        yield from number_or_percentage(value, f"spec.{field}")
        yield from at_most_all(value, f"spec.{field}")
    yield from selector_causes(spec.get("selector") or {}, "spec.selector")
    if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
        yield from one_of(policy, "spec.unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))


def disruption_status(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    status = obj.get("status") or {}
    for field in _COUNTS:
        yield from non_negative(status.get(field), f"status.{field}")
