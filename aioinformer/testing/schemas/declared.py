"""Type checks of applied values, with structured-merge-diff's messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from aioinformer.testing.patches.strategic import as_go
from aioinformer.testing.schemas.field_paths import path_text
from aioinformer.testing.schemas.typed_fields import FieldType, FieldTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_INT_OR_STRING = "x-kubernetes-int-or-string"
#: By schema type: the message's name for it, and the check.
_WANTED: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "object": ("map", lambda value: isinstance(value, dict)),
    "array": ("list", lambda value: isinstance(value, list)),
    "boolean": ("boolean", lambda value: isinstance(value, bool)),
    "integer": ("numeric (int or float)", _is_number),
    "number": ("numeric (int or float)", _is_number),
    "string": ("string", lambda value: isinstance(value, str)),
}


def check_declared(value: Any, type_: FieldType, path: str = "") -> list[str]:
    """Return a line for each part of the value that does not fit its type.

    A line reads like `.spec.size: field not declared in schema`.
    """
    # A value that may be a number or a string has several types.
    wanted = None if "oneOf" in type_.node or _INT_OR_STRING in type_.node else _WANTED.get(type_.node.get("type", ""))
    if wanted is not None and value is not None and not wanted[1](value):
        is_string = wanted[0] == "string"
        found = f"value.valueUnstructured{{Value:{_go_syntax(value)}}}" if is_string else f"{{{as_go(value)}}}"
        return [f"{path}: expected {wanted[0]}, got &{found}"]
    if isinstance(value, dict):
        return [
            line
            for name, below in value.items()
            for line in (
                [f"{path}.{name}: field not declared in schema"]
                if type_.closed and not type_.declares(name)
                else check_declared(below, type_.field(name), f"{path}.{name}")
            )
        ]
    if not isinstance(value, list):
        return []
    lines = []
    for index, element in enumerate(value):
        try:
            step = type_.step(element)
        except FieldTypeError as error:
            lines.append(f"{path}: element {index}: {error}")
            continue
        here = f"[{index}]" if step is None else path_text((step,))
        lines += check_declared(element, type_.element, path + here)
    return lines


def _go_syntax(value: Any) -> str:
    match value:
        case bool() | int() | float():
            return as_go(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case dict():
            inner = ", ".join(f"{json.dumps(key)}:{_go_syntax(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{inner}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)"
