"""CEL's standard operators, conversions and functions."""

from __future__ import annotations

import math
import operator
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aioinformer.cel.expressions import matches
from aioinformer.cel.library.times import format_duration, format_timestamp, to_duration, to_timestamp, zone_of
from aioinformer.cel.tokens import Uint
from aioinformer.cel.values import (
    LARGEST,
    SMALLEST,
    EvaluationError,
    TypeValue,
    concatenate,
    contains,
    conversion_error,
    equal,
    has_key,
    int_of,
    type_name,
    uint_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = ("int", "uint", "double")
_ORDERED = ("bool", "string", "bytes", "timestamp", "duration")
# Go writes numbers outside of these exponents in scientific notation.
_LEAST_EXPONENT = -4
_MOST_EXPONENT = 6


def _comparisons(compare: Callable[[Any, Any], bool]) -> dict[str, Callable[[Any, Any], bool]]:
    def numbers(one: Any, other: Any) -> bool:
        if math.isnan(one) or math.isnan(other):
            raise EvaluationError("NaN values cannot be ordered")
        return compare(one, other)

    pairs = {f"({one}, {other}) -> bool": numbers for one in _NUMBERS for other in _NUMBERS}
    return pairs | {f"({name}, {name}) -> bool": compare for name in _ORDERED}


def _integer(compute: Callable[[Any, Any], int]) -> dict[str, Callable[[Any, Any], Any]]:
    return {
        "(int, int) -> int": lambda one, other: int_of(compute(one, other)),
        "(uint, uint) -> uint": lambda one, other: uint_of(compute(int(one), int(other))),
    }


def _numeric(compute: Callable[[Any, Any], Any]) -> dict[str, Callable[[Any, Any], Any]]:
    return _integer(compute) | {"(double, double) -> double": compute}


def _divided(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    return abs(one) // abs(other) * (-1 if (one < 0) is not (other < 0) else 1)


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    if max(abs(one), abs(other)) < 1 << 53:
        return int(math.fmod(one, other))
    return one - other * _divided(one, other)


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def _item(items: list[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise EvaluationError(f"index out of bounds: {index}")
    return items[index]


def _value(values: dict[Any, Any], key: Any) -> Any:
    if not has_key(values, key):
        raise EvaluationError(f"no such key: {key}")
    return values[key]


def _to_bool(text: str) -> bool:
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise conversion_error(text, "bool")


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        number = int(value) if re.fullmatch(r"[-+]?\d{1,20}", value, re.ASCII) else LARGEST + 1
        if not SMALLEST <= number <= LARGEST:
            raise conversion_error(value, "int")
        return number
    if isinstance(value, float) and not SMALLEST < value < LARGEST:
        raise EvaluationError("integer overflow")
    return int_of(int(value))


def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        number = int(value) if re.fullmatch(r"\d{1,20}", value, re.ASCII) else -1
        if not 0 <= number <= 2 * LARGEST + 1:
            raise conversion_error(value, "uint")
        return Uint(number)
    if isinstance(value, float) and not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return uint_of(int(value))


def _to_double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise conversion_error(text, "double") from None


def format_double(value: float) -> str:
    """Return a double in Go's shortest format."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits = next(digits for digits in range(18) if float(f"{value:.{digits}e}") == value)
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    if not _LEAST_EXPONENT <= int(exponent) < _MOST_EXPONENT:
        return f"{mantissa}e{exponent}"
    return f"{value:.{max(0, digits - int(exponent))}f}"


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _time_part(part: Callable[[datetime], int]) -> dict[str, Callable[..., int]]:
    return {
        "timestamp.() -> int": part,
        "timestamp.(string) -> int": lambda time, zone: part(time.astimezone(zone_of(zone))),
    }


def _duration_part(seconds: float) -> dict[str, Callable[..., int]]:
    return {"duration.() -> int": lambda span: int(span.total_seconds() / seconds)}


def _identity(value: Any) -> Any:
    return value


_SIZES = {"string": len, "bytes": len, "list(A)": len, "map(A, B)": len}

STANDARD: dict[str, dict[str, Callable[..., Any]]] = {
    "_&&_": {"(bool, bool) -> bool": operator.and_},
    "_||_": {"(bool, bool) -> bool": operator.or_},
    "_?_:_": {"(bool, A, A) -> A": lambda condition, one, other: one if condition else other},
    "!_": {"(bool) -> bool": operator.not_},
    "-_": {"(int) -> int": lambda value: int_of(-value), "(double) -> double": operator.neg},
    "_==_": {"(A, A) -> bool": equal},
    "_!=_": {"(A, A) -> bool": lambda one, other: not equal(one, other)},
    "_<_": _comparisons(operator.lt),
    "_<=_": _comparisons(operator.le),
    "_>_": _comparisons(operator.gt),
    "_>=_": _comparisons(operator.ge),
    "_+_": {
        **_numeric(operator.add),
        "(string, string) -> string": operator.add,
        "(bytes, bytes) -> bytes": operator.add,
        "(list(A), list(A)) -> list(A)": concatenate,
        "(duration, duration) -> duration": operator.add,
        "(duration, timestamp) -> timestamp": operator.add,
        "(timestamp, duration) -> timestamp": operator.add,
    },
    "_-_": {
        **_numeric(operator.sub),
        "(duration, duration) -> duration": operator.sub,
        "(timestamp, duration) -> timestamp": operator.sub,
        "(timestamp, timestamp) -> duration": operator.sub,
    },
    "_*_": _numeric(operator.mul),
    "_/_": _integer(_divided) | {"(double, double) -> double": _quotient},
    "_%_": _integer(_remainder),
    "_[_]": {"(list(A), int) -> A": _item, "(map(A, B), A) -> B": _value},
    "@in": {
        "(A, list(A)) -> bool": lambda item, items: contains(items, item),
        "(A, map(A, B)) -> bool": lambda key, values: has_key(values, key),
    },
    "size": {f"({name}) -> int": size for name, size in _SIZES.items()}
    | {f"{name}.() -> int": size for name, size in _SIZES.items()},
    "type": {"(A) -> type(A)": lambda value: TypeValue(type_name(value))},
    "dyn": {"(A) -> dyn": _identity},
    "bool": {"(bool) -> bool": _identity, "(string) -> bool": _to_bool},
    "bytes": {"(bytes) -> bytes": _identity, "(string) -> bytes": str.encode},
    "double": {
        "(double) -> double": _identity,
        "(int) -> double": float,
        "(uint) -> double": float,
        "(string) -> double": _to_double,
    },
    "duration": {
        "(duration) -> duration": _identity,
        "(int) -> duration": lambda nanoseconds: timedelta(microseconds=nanoseconds / 1000),
        "(string) -> duration": to_duration,
    },
    "int": {
        "(int) -> int": _identity,
        "(double) -> int": _to_int,
        "(uint) -> int": _to_int,
        "(string) -> int": _to_int,
        "(duration) -> int": lambda span: span // timedelta(microseconds=1) * 1000,
        "(timestamp) -> int": lambda time: int(time.timestamp()),
    },
    "uint": {
        "(uint) -> uint": _identity,
        "(int) -> uint": _to_uint,
        "(double) -> uint": _to_uint,
        "(string) -> uint": _to_uint,
    },
    "string": {
        "(string) -> string": _identity,
        "(bool) -> string": lambda value: "true" if value else "false",
        "(int) -> string": str,
        "(uint) -> string": lambda value: str(int(value)),
        "(double) -> string": format_double,
        "(bytes) -> string": _decode,
        "(duration) -> string": format_duration,
        "(timestamp) -> string": format_timestamp,
    },
    "timestamp": {
        "(timestamp) -> timestamp": _identity,
        "(int) -> timestamp": lambda seconds: _EPOCH + timedelta(seconds=seconds),
        "(string) -> timestamp": to_timestamp,
    },
    "contains": {"string.(string) -> bool": operator.contains},
    "startsWith": {"string.(string) -> bool": str.startswith},
    "endsWith": {"string.(string) -> bool": str.endswith},
    "matches": {"string.(string) -> bool": matches, "(string, string) -> bool": matches},
    "getFullYear": _time_part(lambda time: time.year),
    "getMonth": _time_part(lambda time: time.month - 1),
    "getDayOfYear": _time_part(lambda time: time.timetuple().tm_yday - 1),
    "getDayOfMonth": _time_part(lambda time: time.day - 1),
    "getDate": _time_part(lambda time: time.day),
    "getDayOfWeek": _time_part(lambda time: time.isoweekday() % 7),
    "getHours": _time_part(lambda time: time.hour) | _duration_part(3600),
    "getMinutes": _time_part(lambda time: time.minute) | _duration_part(60),
    "getSeconds": _time_part(lambda time: time.second) | _duration_part(1),
    "getMilliseconds": _time_part(lambda time: time.microsecond // 1000)
    | {"duration.() -> int": lambda span: int(span.total_seconds() * 1000)},
}
