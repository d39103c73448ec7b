"""What Go makes of the JSON that clients send for built-in kinds, and what it cannot decode, in its words.

A value that does not fit its field ends a request with 400. The message names the struct that has the field, and the
path of fields to it without any indexes; the first fault in the order of the document is told. Null is the zero value
of everything: checks need not look for it in what was decoded. Quantities are written in their shortest form, whichever
way they were sent.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.quantities import QuantityError, canonical
from aioinformer.testing.patches.json_patches import json_type

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
# Structs that have no field of their own in JSON show in paths all the same.
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
    """A value that Go cannot decode; the text is Go's.

    Attributes:
        converting: what is said where maps are converted instead, "" where it is the same.
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
        told = f"json: cannot unmarshal {found} into Go struct field {self.struct}.{self.path} of type {wanted}"
        return GoValueError(told, _conversion(value, wanted))

    def field(self, struct: str, name: str) -> _Place:
        """The place of a field of the struct that is here."""
        embedded, fields = _EMBEDDED.get(struct, ("", frozenset()))
        if name in fields:
            name = f"{embedded}.{name}"
        return _Place(struct, f"{self.path}.{name}" if self.path else name, self.converted)


def decode_values(
    obj: dict[str, Any], schemas: Mapping[str, Any], node: Mapping[str, Any], kind: str, *, converted: bool = False
) -> None:
    """Makes of an object what Go makes of it.

    Args:
        obj: is changed: a field that is null is gone, an element that is null becomes the zero value, quantities get
            their shortest form.
        schemas: named schemas that nodes refer to.
        node: the schema of the kind.
        kind: its name.
        converted: whether Go makes its struct from maps rather than from JSON, and numbers from other numbers as C
            would.

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
    # Go converts numbers to whatever is no bool; then it looks whether JSON would.
    numeric = found in ("int64", "float64") and wanted != "bool"
    return f"cannot convert {found} to {wanted}" if numeric else f"unrecognized type: {wanted}"


def _decoded(value: Any, node: Mapping[str, Any], schemas: Mapping[str, Any], place: _Place) -> Any:
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
            return _schema_or_else(value, name, schemas)
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
        # Most of what is written are plain texts; they are as they are, and need no place.
        if not (type(value) is str and below.get("type") == "string" and "format" not in below):
            obj[name] = _decoded(value, below, schemas, place.field(struct, name))


def _schema_or_else(value: Any, name: str, schemas: Mapping[str, Any]) -> Any:
    """A schema, or what there may be in its place; None for what is neither, and passed over."""
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
    return _zero(node, schemas) if value is None else _decoded(value, node, schemas, place)


def _zero(node: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """The zero value of an element; None for what is null when it is zero, such as a list."""
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
            raise GoValueError(f"illegal base64 data at input byte {_broken_base64(value)}") from None
    return value


def _broken_base64(text: str) -> int:
    """Where Go finds that a text is no base64."""
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
    left = value
    for element, pattern in layout:
        found = re.match(pattern, left)
        if found is None:
            whole = "".join(each for each, _ in layout)
            raise GoValueError(f'parsing time "{value}" as "{whole}": cannot parse "{left}" as "{element}"')
        left = left[found.end() :]
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
