"""Validation of leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import non_negative
from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def lease(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield Cause.invalid("spec.leaseDurationSeconds", str(duration), "must be greater than 0")
    yield from non_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")
