"""The `fieldPath` of rules, such as `.spec['a.b']`, and how faults show it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


class FieldNameError(Exception):
    """The path does not name a field of the schema."""


def field_name(path: str, schema: Mapping[str, Any]) -> str:
    """Return the name of a field relative to its rule; "" for an empty path.

    Args:
        path: the `fieldPath` of the rule.
        schema: the schema that has the rule.

    Raises:
        FieldNameError: the path does not name a field.
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
