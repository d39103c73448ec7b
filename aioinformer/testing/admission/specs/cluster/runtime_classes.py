"""Validation of runtime classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.placement import toleration_causes
from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import format_causes, immutable
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, label_name_faults, label_value_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOLERATION = {"Key": "", "Operator": "", "Value": "", "Effect": "", "TolerationSeconds": None}
_KEY_FIELDS = ("key", "operator", "value", "effect")


def runtime_class(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    if handler := obj.get("handler"):
        yield from format_causes(handler, "handler", label_faults)
    else:
        yield Cause.required("handler")
    for name, size in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        if amount(size) < 0:
            yield Cause.invalid(f"overhead.limits[{name}]", quote(size), "must be greater than or equal to 0")
    yield from _scheduling_causes(obj.get("scheduling") or {})
    if old is not None:
        yield from immutable(obj.get("handler"), old.get("handler"), "handler")


def _scheduling_causes(scheduling: Mapping[str, Any]) -> Iterator[Cause]:
    for name, value in (scheduling.get("nodeSelector") or {}).items():
        yield from format_causes(name, "scheduling.nodeSelector", label_name_faults)
        yield from format_causes(value, "scheduling.nodeSelector", label_value_faults)
    tolerations = scheduling.get("tolerations") or ()
    yield from toleration_causes(tolerations, "scheduling.tolerations")
    known = [[each.get(field) for field in _KEY_FIELDS] for each in tolerations]
    for index, toleration in enumerate(tolerations):
        if known[index] in known[:index]:
            value = quote(go_struct(toleration, _TOLERATION))
            yield Cause("FieldValueDuplicate", f"scheduling.tolerations[{index}]", f"Duplicate value: {value}")
