"""Validation of tolerations and scheduling gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, one_of
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, label_value_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def toleration_causes(tolerations: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the tolerations of a pod."""
    for index, toleration in enumerate(tolerations):
        yield from _toleration(toleration, f"{path}[{index}]")


def gate_causes(gates: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the scheduling gates of a pod."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from format_causes(name, f"{path}[{index}]", label_name_faults)
        if name in seen:
            yield duplicate(name, f"{path}[{index}]")
        seen.add(name)


def _toleration(toleration: Part, path: str) -> Iterator[Cause]:
    key, operator, value, effect = (toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
    if key:
        yield from format_causes(key, f"{path}.key", label_name_faults)
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield Cause.invalid(f"{path}.operator", quote(operator), why)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield Cause.invalid(f"{path}.effect", quote(effect), why)
    if operator in ("", "Equal"):
        if faults := label_value_faults(value):
            yield Cause.invalid(f"{path}.operator", quote(value), ";".join(faults))
    elif operator == "Exists":
        if value:
            yield Cause.invalid(f"{path}.operator", quote(value), "value must be empty when `operator` is 'Exists'")
    else:
        known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
        yield Cause.unsupported(f"{path}.operator", quote(operator), known)
    if effect:
        yield from one_of(effect, f"{path}.effect", EFFECTS)
