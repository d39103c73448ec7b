"""Checks of what many kinds have in common: selectors, references, numbers, and how values are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import label_name_faults, label_value_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def shown(value: Any) -> str:
    """A value as the API quotes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def non_negative(value: Any, path: str) -> Iterator[Cause]:
    """A number that may be left out, and must not be below zero."""
    if value is not None and value < 0:
        yield Cause.invalid(path, str(value), "must be greater than or equal to 0")


def immutable(value: Any, old: Any, path: str) -> Iterator[Cause]:
    """A field that stays what it is."""
    if value != old:
        yield Cause.invalid(path, shown(value), "field is immutable")


def duplicate(value: Any, path: str) -> Cause:
    """A value that is there twice where it may be once."""
    return Cause("FieldValueDuplicate", path, f"Duplicate value: {shown(value)}")


def selector_causes(selector: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with a label selector."""
    for name, value in (selector.get("matchLabels") or {}).items():
        yield from (Cause.invalid(f"{path}.matchLabels", shown(name), why) for why in label_name_faults(name))
        yield from (Cause.invalid(f"{path}.matchLabels", shown(value), why) for why in label_value_faults(value))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        here, operator = f"{path}.matchExpressions[{index}]", expression.get("operator", "")
        if operator in ("In", "NotIn"):
            if not expression.get("values"):
                yield Cause.required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if expression.get("values"):
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield Cause.forbidden(f"{here}.values", why)
        else:
            yield Cause.invalid(f"{here}.operator", shown(operator), "not a valid selector operator")
        name = expression.get("key", "")
        yield from (Cause.invalid(f"{here}.key", shown(name), why) for why in label_name_faults(name))
