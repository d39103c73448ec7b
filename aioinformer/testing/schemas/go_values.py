"""Decoding of built-in kinds as Go does it, with Go's messages for values that do not fit.

A value that does not fit its field fails the request with 400. The message names the struct and the path of fields
without indexes; only the first fault in document order is reported. Null decodes to the zero value, so later checks
need not handle it. Quantities become canonical.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.testing.patches.json_patches import json_type
from aioinformer.testing.schemas.quantities import QuantityError, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_REF = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_TIMES = frozenset({f"{_META}Time", f"{_META}MicroTime"})
_SMALLEST = {"int32": -(2**31), "int64": -(2**63)}
_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}
_ZEROS = {_QUANTITY: "0", _INT_OR_STRING: 0, "string": "", "boolean": False, "integer": 0, "number": 0}
# Embedded structs have no JSON field, but appear in the paths of messages.
_EMBEDDED = {
    "Probe": ("ProbeHandler", frozenset({"exec", "httpGet", "tcpSocket", "grpc"})),
    "EphemeralContainer": ("EphemeralContainerCommon", frozenset({"name", "image", "command", "args", "env", "ports"})),
}
_FOUND = {int: "int64", float: "float64", bool: "bool", dict: "map", list: "slice"}
_LAYOUT = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d?"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d(?:\.\d+)?"),
    ("Z07:00", r"Z|[+-]\d\d:\d\d"),
)
_MICRO_LAYOUT = (*_LAYOUT[:-2], ("05", r"\d\d"), (".000000", r"\.\d{6}"), _LAYOUT[-1])


class GoValueError(ValueError):
    """A value that Go cannot decode. The message is Go's.

    Attributes:
        converting: the message when Go converts from maps; "" if it is the same.
    """

    def __init__(self, message: str, converting: str = "") -> None:
        super().__init__(message)
        self.converting = converting


@dataclass(frozen=True, slots=True)
class _Place:
    struct: str
    path: str
    converted: bool = False

    def refuse(self, value: Any, wanted: str) -> GoValueError:
        found = json_type(value)
        if found == "number" and wanted in ("int32", "int64"):
            found = f"number {value}"
        message = f"json: cannot unmarshal {found} into Go struct field {self.struct}.{self.path} of type {wanted}"
        return GoValueError(message, _conversion(value, wanted))

    def field(self, struct: str, name: str) -> _Place:
        """Return the place of a field of the struct at this place."""
        embedded, fields = _EMBEDDED.get(struct, ("", frozenset()))
        if name in fields:
            name = f"{embedded}.{name}"
        return _Place(struct, f"{self.path}.{name}" if self.path else name, self.converted)


def decode_values(
    obj: dict[str, Any], schemas: Mapping[str, Any], node: Mapping[str, Any], kind: str, *, converted: bool = False
) -> None:
    """Convert an object to the form that Go decodes.

    Args:
        obj: is changed: null fields are removed, null elements become zero values, quantities become canonical.
        schemas: the named schemas that nodes refer to.
        node: the schema of the kind.
        kind: its name.
        converted: whether Go converts from maps instead of from JSON, where numbers are cast as in C.

    Raises:
        GoValueError: the first value that does not fit its field.
    """
    _struct(obj, node, schemas, _Place(kind, "", converted), kind)


def _conversion(value: Any, wanted: str) -> str:
    found = _FOUND.get(type(value), "string")
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if wanted.startswith("map"):
        return f"cannot restore map from {found}"
    if "." in wanted:
        return f"cannot restore struct from: {found}"
    # Go casts numbers to all types except bool, then checks whether JSON would allow the value.
    numeric = found in ("int64", "float64") and wanted != "bool"
    return f"cannot convert {found} to {wanted}" if numeric else f"unrecognized type: {wanted}"


def _decode(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], place: _Place) -> Any:
    node = (node.get("allOf") or [node])[0]
    name = node.get("$ref", "").removeprefix(_REF)
    if name:
        node = schemas[name]
        if name == _QUANTITY:
            return _quantity(value)
        if name in _TIMES:
            return _time(value, _MICRO_LAYOUT if name.endswith("MicroTime") else _LAYOUT)
        if name == _INT_OR_STRING:
            return value if isinstance(value, str) else _integer(value, "int32", _Place(place.struct, place.path))
        if name.startswith(f"{_SCHEMA}Or"):
            return _schema_or_alternative(value, name, schemas)
        if "properties" in node:
            package, _, struct = name.rpartition(".")
            if not isinstance(value, dict):
                raise place.refuse(value, f"{package.rpartition('.')[2]}.{struct}")
            _struct(value, node, schemas, place, struct)
            return value
    match node.get("type"):
        case "string":
            return _text(value, node, place)
        case "boolean" if not isinstance(value, bool):
            raise place.refuse(value, "bool")
        case "integer":
            return _integer(value, node.get("format", "int64"), place)
        case "number" if isinstance(value, bool) or not isinstance(value, int | float):
            raise place.refuse(value, "float64")
        case "array":
            return _list(value, node, schemas, place)
        case "object" if isinstance(node.get("additionalProperties"), dict):
            return _map(value, node, schemas, place)
    return value


def _struct(
    obj: dict[str, Any], node: Mapping[str, Any], schemas: Mapping[str, Any], place: _Place, struct: str
) -> None:
    properties = node.get("properties") or {}
    for name, value in list(obj.items()):
        below = properties.get(name)
        if below is None:
            continue
        if value is None:
            del obj[name]
            continue
        # Fast path: plain strings, the most common values, need no conversion.
        if not (type(value) is str and below.get("type") == "string" and "format" not in below):
            obj[name] = _decode(value, below, schemas, place.field(struct, name))


def _schema_or_alternative(value: Any, name: str, schemas: Mapping[str, Any]) -> Any:
    """Return a schema or its alternative, or None for an ignored value of another type."""
    place = _Place("JSONSchemaProps", "")
    if isinstance(value, dict):
        _struct(value, schemas[_SCHEMA], schemas, place, place.struct)
        return value
    if name.endswith("OrBool"):
        if not isinstance(value, bool):
            raise GoValueError("boolean or JSON schema expected")
        return value
    element = {"$ref": f"{_REF}{_SCHEMA}"} if name.endswith("OrArray") else {"type": "string"}
    return [_element(each, element, schemas, place) for each in value] if isinstance(value, list) else None


def _list(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], place: _Place) -> Any:
    if not isinstance(value, list):
        raise place.refuse(value, _go_type(node))
    return [_element(each, node["items"], schemas, place) for each in value]


def _map(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], place: _Place) -> Any:
    if not isinstance(value, dict):
        raise place.refuse(value, _go_type(node))
    below = node["additionalProperties"]
    return {key: _element(each, below, schemas, place) for key, each in value.items()}


def _element(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], place: _Place) -> Any:
    return _zero(node, schemas) if value is None else _decode(value, node, schemas, place)


def _zero(node: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Return the zero value of an element; None for types whose zero value is null, such as lists."""
    node = (node.get("allOf") or [node])[0]
    name = node.get("$ref", "").removeprefix(_REF)
    if name in _ZEROS:
        return _ZEROS[name]
    node = schemas[name] if name else node
    return {} if "properties" in node else _ZEROS.get(node.get("type", ""))


def _text(value: Any, node: Mapping[str, Any], place: _Place) -> Any:
    if not isinstance(value, str):
        raise place.refuse(value, _go_type(node) if not place.path.endswith("metadata.uid") else "types.UID")
    if node.get("format") == "byte":
        try:
            base64.b64decode(value, validate=True)
        except ValueError:
            raise GoValueError(f"illegal base64 data at input byte {_base64_fault_offset(value)}") from None
    return value


def _base64_fault_offset(text: str) -> int:
    """Return the offset that Go reports for invalid base64."""
    whole = re.match(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text)
    assert whole is not None
    rest = text[whole.end() :]
    letters = re.match("[A-Za-z0-9+/]*", rest)
    assert letters is not None
    if whole[0].endswith("=") or letters.end() == len(rest):
        return whole.end()
    return len(text) if letters.end() == 2 and rest[2:] == "=" else whole.end() + letters.end()


def _integer(value: Any, size: str, place: _Place) -> Any:
    least = _SMALLEST.get(size, _SMALLEST["int64"])
    if place.converted and isinstance(value, int | float) and not isinstance(value, bool) and int(value) == value:
        return (int(value) - least) % (-2 * least) + least
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < -least:
        raise place.refuse(value, size)
    return value


def _quantity(value: Any) -> str:
    try:
        return canonical(str(value))
    except QuantityError as error:
        raise GoValueError(str(error)) from None


def _time(value: Any, layout: Sequence[tuple[str, str]]) -> Any:
    if not isinstance(value, str):
        raise GoValueError(f"json: cannot unmarshal {json_type(value)} into Go value of type string")
    rest = value
    for element, pattern in layout:
        found = re.match(pattern, rest)
        if found is None:
            whole = "".join(each for each, _ in layout)
            raise GoValueError(f'parsing time "{value}" as "{whole}": cannot parse "{rest}" as "{element}"')
        rest = rest[found.end() :]
    return value if value.endswith("Z") and "." not in value else _in_utc(value, fraction=layout is _MICRO_LAYOUT)


def _in_utc(value: str, *, fraction: bool) -> str:
    try:
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return value
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds" if fraction else "seconds")
    return f"{text}Z"


def _go_type(node: Mapping[str, Any]) -> str:
    node = (node.get("allOf") or [node])[0]
    if reference := node.get("$ref", ""):
        package, _, name = reference.rpartition(".")
        return f"{package.rpartition('.')[2]}.{name}"
    match node.get("type"):
        case "array":
            return f"[]{_go_type(node['items'])}"
        case "integer":
            return str(node.get("format", "int64"))
        case "object":
            return f"map[string]{_go_type(node['additionalProperties'])}"
        case "string" if node.get("format") == "byte":
            return "[]uint8"
    return _SCALARS.get(node.get("type", ""), "interface {}")
