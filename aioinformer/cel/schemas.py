"""Types and values of a structural schema as rules see them.

Rules see only fields that have a type, under names that CEL can express. Of an object's metadata they see `name` and
`generateName`. Hidden fields still count when two objects are compared: they are kept under keys that rules cannot
express.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from aioinformer.cel import types
from aioinformer.cel.library.times import to_duration, to_timestamp
from aioinformer.cel.parsing import RESERVED
from aioinformer.cel.values import KeyedList, SetList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.cel.types import Type

    Reader = Callable[[Any], Any]

_RESERVED = RESERVED | {"true", "false", "null", "in"}
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_STRING: Mapping[str, Any] = {"type": "string"}
_OBJECT_FIELDS = {
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

_FORMAT_READERS: Mapping[str, Reader] = {
    "byte": base64.b64decode,
    "duration": to_duration,
    "date": lambda text: to_timestamp(f"{text}T00:00:00Z"),
    "date-time": to_timestamp,
}


def escaped_name(name: str) -> str | None:
    """Return the escaped name of a field in rules, or None if rules cannot name it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", name):
        return None
    return re.sub(r"__|[-./]", lambda match: _ESCAPES[match[0]], name)


def schema_type(schema: Mapping[str, Any], *, is_object: bool = False, path: str = "") -> Type | None:
    """Return the CEL type of a schema's values, or None if rules do not see them.

    Args:
        schema: a structural schema.
        is_object: whether it describes a whole object.
        path: relative to the schema that has the rules.
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
        if (escaped := escaped_name(name)) and (type_ := _below(below, f"{path}.{escaped}")):
            fields[escaped] = type_
    return fields


def _below(schema: Any, path: str) -> Type | None:
    if not isinstance(schema, dict):
        return None
    return schema_type(schema, is_object=bool(schema.get("x-kubernetes-embedded-resource")), path=path)


def _properties(schema: Mapping[str, Any], is_object: bool) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    return {**properties, **_OBJECT_FIELDS} if is_object else properties


def make_reader(schema: Mapping[str, Any], *, is_object: bool = False) -> Reader:
    """Return a function that converts a valid value to what rules see of it.

    The function raises `EvaluationError` for a string that does not have its format.

    Args:
        schema: a structural schema.
        is_object: whether it describes a whole object.
    """
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    others, items, format_ = (schema.get(key) for key in ("additionalProperties", "items", "format"))
    match schema.get("type"):
        case _ if schema.get("x-kubernetes-int-or-string"):
            return _identity
        case "object" if isinstance(others, dict) and not is_object:
            return _map_reader(make_reader(others))
        case "object":
            return _object_reader(schema, is_object)
        case "array" if isinstance(items, dict):
            return _list_reader(schema, make_reader(items))
        case "number":
            return _unless_null(float)
        case "string" if str(format_) in _FORMAT_READERS:
            return _unless_null(_FORMAT_READERS[str(format_)])
    return _identity


def _identity(value: Any) -> Any:
    return value


def _unless_null(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _map_reader(read: Reader) -> Reader:
    return _unless_null(lambda value: {key: read(item) for key, item in value.items()})


def _object_reader(schema: Mapping[str, Any], is_object: bool) -> Reader:
    visible: dict[str, tuple[str, Reader]] = {}
    for name, below in _properties(schema, is_object).items():
        if (escaped := escaped_name(name)) and schema_type(
            below, is_object=bool(below.get("x-kubernetes-embedded-resource"))
        ):
            visible[name] = escaped, make_reader(below)

    def read(value: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            name, below = visible.get(key) or (f"\0{key}", _identity)
            result[name] = below(item)
        return result

    return _unless_null(read)


def _list_reader(schema: Mapping[str, Any], read: Reader) -> Reader:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return _unless_null(lambda value: SetList(map(read, value)))
        case "map":
            keys = tuple(escaped_name(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())
            return _unless_null(lambda value: KeyedList([read(item) for item in value], keys))
    return _unless_null(lambda value: [read(item) for item in value])
