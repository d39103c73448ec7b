"""Validation of types and numbers of custom resources by type and format."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.texts import quote
from aioinformer.testing.patches.json_patches import same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SIZES = {"int32": 31, "int64": 63, "": 63}
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST_INTEGER = 2**53 - 1
# Go writes larger numbers with an exponent.
_WITHOUT_EXPONENT = 1e21
_LARGEST_FLOAT = 3.4028234663852886e38


def wrong_type(path: str, wanted: str, found: Any) -> Cause:
    """Return the cause for a value of the wrong type or format."""
    return Cause("FieldValueTypeInvalid", path, f"Invalid value: {quote(found)}: must be of type {wanted}")


def type_causes(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the type of a value."""
    wanted, found = wanted_types(schema), _type_name(value)
    fits = (
        not wanted
        or found in wanted
        or (found == "integer" and "number" in wanted)
        or (found == "number" and "integer" in wanted and _is_integer(value))
    )
    if not fits:
        yield wrong_type(path, ",".join(wanted), value)


def number_causes(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the size and the bounds of a number."""
    shown, kind, format_ = quote(value), schema.get("type", ""), schema.get("format", "")
    if not _fits_size(value, kind, format_):
        yield Cause.invalid("<nil>", shown, f"{path} must be of type {kind} with format {format_ or 'int64'}")
    least, most, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    if step and not _is_integer(value / step):
        yield Cause.invalid(path, shown, f"should be a multiple of {step}")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        yield Cause.invalid(path, shown, f"should be at least {least}, or more if that is excluded")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        yield Cause.invalid(path, shown, f"should be at most {most}, or less if that is excluded")


def wanted_types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows; empty for all."""
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def go_number(value: Any) -> Any:
    """Return the value as Go reads it: integers beyond 64 bits become floats."""
    return float(value) if type(value) is int and not _LEAST <= value <= _MOST else value


def is_one_of(value: Any, allowed: Sequence[Any]) -> bool:
    """Return whether a value is in the enum. Floats are truncated when compared with integers."""
    if isinstance(value, float) and math.isfinite(value):
        return any(same(int(value) if type(each) is int else value, each) for each in allowed)
    return any(same(value, each) for each in allowed)


def _fits_size(value: Any, kind: str, format_: str) -> bool:
    if kind == "integer" and format_ in _SIZES:
        return float(value).is_integer() and -(2 ** _SIZES[format_]) <= value < 2 ** _SIZES[format_]
    return format_ not in ("float", "float32") or abs(value) <= _LARGEST_FLOAT


def _is_integer(value: Any) -> bool:
    return math.isfinite(value) and abs(value) <= _LARGEST_INTEGER and float(value).is_integer()


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def write_integers(value: Any) -> Any:
    """Return a value whose integral numbers are written without a fraction; lists and mappings are changed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = write_integers(inner)
    elif isinstance(value, list):
        value[:] = map(write_integers, value)
    elif isinstance(number := go_number(value), float) and number.is_integer() and abs(number) < _WITHOUT_EXPONENT:
        # The shortest digits that identify the float, padded with zeros.
        return int(Decimal(repr(number)))
    return value
