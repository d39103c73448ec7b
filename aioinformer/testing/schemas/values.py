"""Decoding of the values of built-in kinds into the types of their fields.

A value that does not fit its field fails the request with 400; only the first fault in document order is reported. Null
decodes to the zero value, so later checks need not handle it. Quantities become canonical, times are in UTC.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.resources.quantities import QuantityError, canonical
from aioinformer.testing.api.encoding import json_type

if TYPE_CHECKING:
    from collections.abc import Mapping

_REF = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_DAY = r"\d{4}-\d\d-\d\dT\d\d?:\d\d:\d\d"
#: Times, and how many of their fractional digits are kept.
_TIMES = {
    f"{_META}Time": (re.compile(rf"{_DAY}(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "seconds"),
    f"{_META}MicroTime": (re.compile(rf"{_DAY}\.\d{{6}}(?:Z|[+-]\d\d:\d\d)"), "microseconds"),
}
_LARGEST = {"int32": 2**31, "int64": 2**63}
_ZEROS = {_QUANTITY: "0", _INT_OR_STRING: 0, "string": "", "boolean": False, "integer": 0, "number": 0}


class FieldValueError(ValueError):
    """A value that does not fit its field. The message names the field."""


def decode_values(obj: dict[str, Any], schemas: Mapping[str, Any], node: Mapping[str, Any]) -> None:
    """Convert an object to the form that the API decodes.

    Args:
        obj: is changed: null fields are removed, null elements become zero values, quantities become canonical.

    Raises:
        FieldValueError: the first value that does not fit its field.
    """
    _struct(obj, node, schemas, "")


def _refuse(value: Any, path: str, wanted: str) -> FieldValueError:
    found = f"number {value}" if json_type(value) == "number" else json_type(value)
    return FieldValueError(f"json: cannot unmarshal {found} into field {path} of type {wanted}")


def _decode(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], path: str) -> Any:
    node = (node.get("allOf") or [node])[0]
    name = node.get("$ref", "").removeprefix(_REF)
    if name:
        node = schemas[name]
        if name == _QUANTITY:
            return _quantity(value, path)
        if name in _TIMES:
            return _time(value, name, path)
        if name == _INT_OR_STRING:
            return value if isinstance(value, str) else _integer(value, "int32", path)
        if name.startswith(f"{_SCHEMA}Or"):
            return _schema_or_alternative(value, name, schemas, path)
        if "properties" in node:
            if not isinstance(value, dict):
                raise _refuse(value, path, name.rpartition(".")[2])
            _struct(value, node, schemas, path)
            return value
    match node.get("type"):
        case "string":
            return _text(value, node, path)
        case "boolean" if not isinstance(value, bool):
            raise _refuse(value, path, "bool")
        case "integer":
            return _integer(value, node.get("format", "int64"), path)
        case "number" if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refuse(value, path, "number")
        case "array":
            if not isinstance(value, list):
                raise _refuse(value, path, "list")
            return [_element(each, node["items"], schemas, path) for each in value]
        case "object" if isinstance(below := node.get("additionalProperties"), dict):
            if not isinstance(value, dict):
                raise _refuse(value, path, "map")
            return {key: _element(each, below, schemas, path) for key, each in value.items()}
    return value


def _struct(obj: dict[str, Any], node: Mapping[str, Any], schemas: Mapping[str, Any], path: str) -> None:
    properties = node.get("properties") or {}
    for name, value in list(obj.items()):
        below = properties.get(name)
        if below is None:
            continue
        if value is None:
            del obj[name]
        # Fast path: plain strings, the most common values, need no conversion.
        elif not (type(value) is str and below.get("type") == "string" and "format" not in below):
            obj[name] = _decode(value, below, schemas, f"{path}.{name}" if path else name)


def _schema_or_alternative(value: Any, name: str, schemas: Mapping[str, Any], path: str) -> Any:
    """Return a schema or its alternative, or None for an ignored value of another type."""
    if isinstance(value, dict):
        _struct(value, schemas[_SCHEMA], schemas, path)
        return value
    if name.endswith("OrBool"):
        if not isinstance(value, bool):
            raise _refuse(value, path, "bool or JSON schema")
        return value
    element = {"$ref": f"{_REF}{_SCHEMA}"} if name.endswith("OrArray") else {"type": "string"}
    if isinstance(value, list):
        return [_element(each, element, schemas, path) for each in value]
    return None


def _element(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], path: str) -> Any:
    return _zero(node, schemas) if value is None else _decode(value, node, schemas, path)


def _zero(node: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Return the zero value of an element; None for types whose zero value is null, such as lists."""
    node = (node.get("allOf") or [node])[0]
    name = node.get("$ref", "").removeprefix(_REF)
    if name in _ZEROS:
        return _ZEROS[name]
    node = schemas[name] if name else node
    return {} if "properties" in node else _ZEROS.get(node.get("type", ""))


def _text(value: Any, node: Mapping[str, Any], path: str) -> Any:
    if not isinstance(value, str):
        raise _refuse(value, path, "string")
    if node.get("format") == "byte":
        try:
            base64.b64decode(value, validate=True)
        except ValueError:
            raise FieldValueError(f"illegal base64 data in field {path}") from None
    return value


def _integer(value: Any, size: str, path: str) -> Any:
    most = _LARGEST.get(size, _LARGEST["int64"])
    if isinstance(value, bool) or not isinstance(value, int) or not -most <= value < most:
        raise _refuse(value, path, size)
    return value


def _quantity(value: Any, path: str) -> str:
    try:
        return canonical(str(value))
    except QuantityError as error:
        raise FieldValueError(f"field {path}: {error}") from None


def _time(value: Any, kind: str, path: str) -> Any:
    pattern, kept = _TIMES[kind]
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _refuse(value, path, "RFC 3339 time")
    if value.endswith("Z") and "." not in value:
        return value
    try:
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return value
    return f"{moment.replace(tzinfo=None).isoformat(timespec=kept)}Z"
