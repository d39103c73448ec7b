"""Values of the language, and when two of them are equal.

Most are Python's own: None, bool, int, float, str, bytes, list, dict, datetime and timedelta. Unsigned numbers are
`Uint`. Lists of structural schemas may be sets or maps: their order means nothing when they are compared, and what is
added to them replaces what is there.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aioinformer.testing.admission.cel.tokens import Uint

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


class EvaluationError(Exception):
    """An expression has no value. The text is the language's."""


class Unsupported(Exception):
    """An expression may have a value, but not here. The text says what is missing."""


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing.

    Attributes:
        values: the value, or nothing.
    """

    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, `type(1)`."""

    name: str


class SetList(list[Any]):
    """A list of which no two items are equal, and whose order means nothing."""


class KeyedList(list[Any]):
    """A list of maps that are told apart by some of their fields.

    Attributes:
        keys: the fields.
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
    """The name of the type of a value; values of extensions have it as `type_name`."""
    return _TYPE_NAMES.get(type(value)) or str(value.type_name)


def full_type_name(value: Any) -> str:
    """The same as programs show it: times have the names of their messages."""
    name = type_name(value)
    return f"google.protobuf.{name.capitalize()}" if name in ("timestamp", "duration") else name


def unconverted(value: Any, wanted: str) -> EvaluationError:
    """The fault of a value that cannot be made another type."""
    return EvaluationError(f"type conversion error from '{full_type_name(value)}' to '{wanted}'")


def is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; those of different types are not, numbers excepted."""
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


def joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Two lists after each other; a set or a map takes in what is added to it."""
    if isinstance(one, KeyedList):
        added = {one.key(item): item for item in other}
        kept = [added.pop(one.key(item), item) for item in one]
        return KeyedList([*kept, *added.values()], one.keys)
    if isinstance(one, SetList):
        return SetList([*one, *(item for item in other if not contains(one, item))])
    return [*one, *other]


def int_of(number: int) -> int:
    """A whole number that fits 64 bits.

    Raises:
        EvaluationError: it does not.
    """
    if not SMALLEST <= number <= LARGEST:
        raise EvaluationError("integer overflow")
    return number


def uint_of(number: int) -> Uint:
    """The same without a sign."""
    if not 0 <= number <= 2 * LARGEST + 1:
        raise EvaluationError("unsigned integer overflow")
    return Uint(number)
