"""What values of a structural schema are to the rules of it: their types, and the values themselves.

Rules see what the schema names, and nothing else: fields that have a type, under names that the language can say. Of
the metadata of an object they see its name and what it was generated from. What they do not see counts nevertheless
when two objects are compared, and is kept under keys that no rule can say.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.cel import types
from aioinformer.testing.cel.parsing import RESERVED
from aioinformer.testing.cel.times import to_duration, to_timestamp
from aioinformer.testing.cel.values import KeyedList, SetList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.cel.types import Type

_RESERVED = RESERVED | {"true", "false", "null", "in"}
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_STRING: Mapping[str, Any] = {"type": "string"}
_OF_OBJECTS = {
    "apiVersion": _STRING,
    "kind": _STRING,
    "metadata": {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}},
}
_PLAIN = {"boolean": types.BOOL, "integer": types.INT, "number": types.DOUBLE}
_FORMATS = {
    "byte": types.BYTES,
    "duration": types.DURATION,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
}


def said(name: str) -> str | None:
    """How rules say the name of a field, None if they cannot."""
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", name):
        return None
    return re.sub(r"__|[-./]", lambda match: _ESCAPES[match[0]], name)


def schema_type(schema: Mapping[str, Any], *, is_object: bool = False, path: str = "") -> Type | None:
    """The type of the values of a schema, None if rules do not see them.

    Args:
        schema: a structural schema.
        is_object: whether it is of whole objects.
        path: where it is in what the rules are of.
    """
    if schema.get("x-kubernetes-int-or-string"):
        return types.DYN
    match schema.get("type"):
        case "array":
            item = _below(schema.get("items"), f"{path}.@idx")
            return types.list_of(item) if item else None
        case "object":
            others = schema.get("additionalProperties")
            if isinstance(others, dict) and not is_object:
                value = _below(others, f"{path}.@elem")
                return types.map_of(types.STRING, value) if value else None
            return types.object_of(path, _fields(schema, is_object, path))
        case "string":
            return _FORMATS.get(str(schema.get("format")), types.STRING)
    return _PLAIN.get(str(schema.get("type")))


def _fields(schema: Mapping[str, Any], is_object: bool, path: str) -> dict[str, Type]:
    fields: dict[str, Type] = {}
    for name, below in _properties(schema, is_object).items():
        if (spoken := said(name)) and (type_ := _below(below, f"{path}.{spoken}")):
            fields[spoken] = type_
    return fields


def _below(schema: Any, path: str) -> Type | None:
    if not isinstance(schema, dict):
        return None
    return schema_type(schema, is_object=bool(schema.get("x-kubernetes-embedded-resource")), path=path)


def _properties(schema: Mapping[str, Any], is_object: bool) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    return {**properties, **_OF_OBJECTS} if is_object else properties


def rule_value(value: Any, schema: Mapping[str, Any], *, is_object: bool = False) -> Any:
    """A value as rules see it.

    Args:
        value: fits its schema.
        schema: a structural schema.
        is_object: whether the value is a whole object.

    Raises:
        EvaluationError: a text is not what its format says.
    """
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    match value:
        case dict():
            return _map(value, schema, is_object)
        case list():
            return _list(value, schema)
        case str() if not schema.get("x-kubernetes-int-or-string"):
            return _text(value, str(schema.get("format")))
        case int() | float() if schema.get("type") == "number":
            return float(value)
    return value


def _map(value: dict[str, Any], schema: Mapping[str, Any], is_object: bool) -> dict[str, Any]:
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and not is_object:
        return {key: rule_value(item, others) for key, item in value.items()}
    properties = _properties(schema, is_object)
    seen: dict[str, Any] = {}
    for key, item in value.items():
        name = said(key) if key in properties and schema_type(properties[key]) else None
        if name is None:
            seen[f"\0{key}"] = item
        else:
            seen[name] = rule_value(item, properties[key])
    return seen


def _list(value: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    items = [rule_value(item, schema.get("items") or {}) for item in value]
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return SetList(items)
        case "map":
            keys = (said(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())
            return KeyedList(items, tuple(keys))
    return items


def _text(value: str, format_: str) -> Any:
    match format_:
        case "byte":
            return base64.b64decode(value)
        case "duration":
            return to_duration(value)
        case "date":
            return to_timestamp(f"{value}T00:00:00Z")
        case "date-time":
            return to_timestamp(value)
    return value
