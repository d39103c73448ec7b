"""Validation of types and numbers, as kube-openapi does it: by type and format, in several passes.

If a value has a format, the format is checked first. For strings and lists, the type is then checked only if a number
is wanted, so that a list passes for a date. A number of the wrong size is reported twice: by the type check, and
without a field by the number check.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.patches.json_patches import same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SIZES = {"int32": 31, "int64": 63, "": 63}
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST_INTEGER = 2**53 - 1
_WITH_EXPONENT = 6
# Go writes larger numbers with an exponent.
_WITHOUT_EXPONENT = 1e21
_LARGEST_FLOAT = 3.4028234663852886e38
#: The format that corresponds to Go's type of a number.
_NATIVE = {"integer": "int64", "number": "float64"}


def wrong_type(path: str, wanted: str, found: str) -> Cause:
    """Return the cause for a value of the wrong type or format."""
    shown = quoted(found)
    return Cause(
        "FieldValueTypeInvalid", path, f"Invalid value: {shown}: {path} in body must be of type {wanted}: {shown}"
    )


def type_causes(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the type of a value."""
    wanted = wanted_types(schema)
    if not wanted:
        return
    found, format_ = _type_name(value), schema.get("format", "")
    native = _NATIVE.get(found, "")
    fits = (
        found in wanted
        or (found == "integer" and "number" in wanted)
        or (found == "number" and "integer" in wanted and _is_integer(value))
    )
    if value is not None and format_:
        if not isinstance(value, str | list):
            if not fits and native != format_:
                yield wrong_type(path, format_, native)
                return
        elif not {"integer", "number"} & set(wanted):
            return
    if not fits:
        yield wrong_type(path, ",".join(wanted), found)


def number_causes(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the size and the bounds of a number."""
    format_ = schema.get("format", "")
    kind = schema.get("type", "")
    if not _fits_size(value, kind, format_):
        form = f"with format {format_}" if format_ else "(default format)"
        message = f'Invalid value: "": Checked value must be of type {kind} {form} in {path}'
        yield Cause("FieldValueInvalid", "<nil>", message)
    least, most, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    shown = quoted(value)
    if isinstance(value, int):
        # For integers, bounds are truncated to integers.
        least, most, step = (each if each is None else int(each) for each in (least, most, step))
    if step == 0:
        yield Cause.invalid(path, "0", f"factor MultipleOf declared for {path} must be positive: 0")
    elif step is not None and not (_is_integer(value / step) if isinstance(value, float) else value % step == 0):
        yield Cause.invalid(path, shown, f"{path} in body should be a multiple of {step}")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield Cause.invalid(path, shown, f"{path} in body should be greater than {least}")
        elif value < least:
            yield Cause.invalid(path, shown, f"{path} in body should be greater than or equal to {least}")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield Cause.invalid(path, shown, f"{path} in body should be less than {most}")
        elif value > most:
            yield Cause.invalid(path, shown, f"{path} in body should be less than or equal to {most}")


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


def quoted(value: Any) -> str:
    """Return a value as messages show it."""
    if isinstance(value, float) and math.isfinite(value):
        return _float_text(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _float_text(value: float) -> str:
    """Return a float as Go prints it, with an exponent if it is large or small."""
    exact = Decimal(repr(value)).normalize()
    if -4 <= (exponent := exact.adjusted()) < _WITH_EXPONENT:
        return f"{exact:f}"
    mantissa = exact.scaleb(-exponent)
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


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
