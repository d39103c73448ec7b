"""Paths that rules name fields by, `.spec['a.b']`, as faults name them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


class FieldNameError(Exception):
    """A path that names no field of its schema."""


def field_name(path: str, schema: Mapping[str, Any]) -> str:
    """The name of a field below the place of a rule; "" for an empty path.

    Args:
        path: as the rule has it.
        schema: that the rule is part of.

    Raises:
        FieldNameError: it names none.
    """
    name = ""
    end = 0
    while end < len(path):
        match = _STEP.match(path, end)
        if match is None:
            raise FieldNameError(path)
        key = match[1] or re.sub(r"\\(.)", r"\1", match[2] or "")
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if properties:
            if key not in properties:
                raise FieldNameError(path)
            name += f".{key}"
            schema = properties[key]
        elif isinstance(others, dict):
            name += f"[{key}]"
            schema = others
        else:
            raise FieldNameError(path)
        end = match.end()
    return name.lstrip(".")
