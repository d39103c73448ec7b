"""What must be true of jobs and of what makes them on a schedule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.specs.parts import immutable, shown
from aioinformer.testing.specs.pods import pod_spec_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MACRO = re.compile(r"@(?:every \S+|annually|yearly|monthly|weekly|daily|midnight|hourly)")


def job(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from pod_spec_causes((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")
    if old is not None:
        yield from immutable(spec.get("selector"), (old.get("spec") or {}).get("selector"), "spec.selector")


def cron_job(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    schedule = spec.get("schedule", "")
    fields = schedule.split()
    if schedule.startswith("@"):
        if not _MACRO.fullmatch(schedule):
            yield Cause.invalid("spec.schedule", shown(schedule), f"unrecognized descriptor: {schedule}")
    elif schedule and len(fields) != 5:
        why = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        yield Cause.invalid("spec.schedule", shown(schedule), why)
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    yield from pod_spec_causes(template.get("spec") or {}, "spec.jobTemplate.spec.template.spec")
