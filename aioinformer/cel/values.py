"""Values of expressions and their equality.

Most values are Python's own: None, bool, int, float, str, bytes, list, dict, datetime and timedelta. Unsigned integers
are `Uint`. Lists of structural schemas may be sets or maps: comparison ignores their order, and added items replace
equal ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aioinformer.cel.tokens import Uint

SMALLEST = -(1 << 63)
LARGEST = (1 << 63) - 1


class EvaluationError(Exception):
    """An evaluation failed. The message is CEL's."""


class Unsupported(Exception):
    """The expression is valid, but this implementation cannot evaluate it. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional value.

    Attributes:
        values: the value, or nothing.
    """

    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, such as `type(1)`."""

    name: str


class SetList(list[Any]):
    """A list with unique items and no order."""


class KeyedList(list[Any]):
    """A list of maps that some of their fields identify.

    Attributes:
        keys: the identifying fields.
    """

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key(self, item: Any) -> tuple[Any, ...]:
        return tuple(item.get(key) for key in self.keys)


NONE = Optional()

_TYPE_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    KeyedList: "list",
    dict: "map",
    datetime: "timestamp",
    timedelta: "duration",
    TypeValue: "type",
    Optional: "optional_type",
}
_NUMBERS = (int, float, Uint)


def type_name(value: Any) -> str:
    """Return the name of a value's type. Values of extensions have it as `type_name`."""
    return _TYPE_NAMES.get(type(value)) or str(value.type_name)


def full_type_name(value: Any) -> str:
    """Return the name of a value's type as messages show it: times have protobuf names."""
    name = type_name(value)
    if name in ("timestamp", "duration"):
        return f"google.protobuf.{name.capitalize()}"
    return name


def conversion_error(value: Any, wanted: str) -> EvaluationError:
    """Return the error for a value that cannot be converted to a type."""
    return EvaluationError(f"type conversion error from '{full_type_name(value)}' to '{wanted}'")


def is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal. Values of different types are not, except for numbers."""
    if is_number(one):
        return is_number(other) and bool(one == other)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and _lists_equal(one, other)
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(key in other and equal(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, Optional):
        return isinstance(other, Optional) and equal(list(one.values), list(other.values))
    return type(one) is type(other) and bool(one == other)


def _lists_equal(one: list[Any], other: list[Any]) -> bool:
    if isinstance(one, KeyedList):
        others = {one.key(item): item for item in other}
        return all(one.key(item) in others and equal(item, others[one.key(item)]) for item in one)
    if isinstance(one, SetList):
        return all(contains(other, item) for item in one)
    return all(map(equal, one, other))


def contains(items: list[Any], item: Any) -> bool:
    return any(equal(each, item) for each in items)


def has_key(values: dict[Any, Any], key: Any) -> bool:
    return isinstance(key, Hashable) and key in values


def concatenate(one: list[Any], other: list[Any]) -> list[Any]:
    """Concatenate two lists. Sets and keyed lists merge equal items."""
    if isinstance(one, KeyedList):
        added = {one.key(item): item for item in other}
        kept = [added.pop(one.key(item), item) for item in one]
        return KeyedList([*kept, *added.values()], one.keys)
    if isinstance(one, SetList):
        return SetList([*one, *(item for item in other if not contains(one, item))])
    return [*one, *other]


def int_of(number: int) -> int:
    """Return the number if it fits a signed 64-bit integer.

    Raises:
        EvaluationError: it does not fit.
    """
    if not SMALLEST <= number <= LARGEST:
        raise EvaluationError("integer overflow")
    return number


def uint_of(number: int) -> Uint:
    """Return the number if it fits an unsigned 64-bit integer.

    Raises:
        EvaluationError: it does not fit.
    """
    if not 0 <= number <= 2 * LARGEST + 1:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)
