"""CEL extensions for lists, sets and optional values."""

from __future__ import annotations

from functools import cmp_to_key, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aioinformer.cel.functions import call_overload, function_table
from aioinformer.cel.library.operators import STANDARD
from aioinformer.cel.values import NONE, EvaluationError, Optional, contains, equal, has_key

if TYPE_CHECKING:
    from collections.abc import Callable

_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMED = ("int", "uint", "double", "duration")
_OPERATORS = function_table([STANDARD])


def _compare(one: Any, other: Any) -> int:
    less = _OPERATORS["_<_"]
    return int(call_overload(less, [other, one])) - int(call_overload(less, [one, other]))


def _is_sorted(items: list[Any]) -> bool:
    return all(_compare(one, other) <= 0 for one, other in pairwise(items))


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        return reduce(lambda one, other: other if _compare(one, other) * sign < 0 else one, items)

    return extreme


def _sum(items: list[Any]) -> Any:
    if items:
        return reduce(lambda one, other: call_overload(_OPERATORS["_+_"], [one, other]), items)
    return 0


def _index_of(items: list[Any], item: Any) -> int:
    return next((index for index, each in enumerate(items) if equal(each, item)), -1)


def _last_index_of(items: list[Any], item: Any) -> int:
    return next((index for index in reversed(range(len(items))) if equal(items[index], item)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    what = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{what}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{what}, start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"{what}, list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not contains(kept, item):
            kept.append(item)
    return kept


def _contains_all(items: list[Any], others: list[Any]) -> bool:
    return all(contains(items, other) for other in others)


def _optional_content(optional: Optional) -> Any:
    if not optional.values:
        raise EvaluationError("optional.none() dereference")
    return optional.values[0]


def _optional_value(value: Any) -> Optional:
    return Optional((value,)) if value else NONE


def _optional_item(items: list[Any], index: int) -> Optional:
    return Optional((items[index],)) if 0 <= index < len(items) else NONE


def _optional_key(values: dict[Any, Any], key: Any) -> Optional:
    return Optional((values[key],)) if has_key(values, key) else NONE


def _in_optional(look: Callable[[Any, Any], Optional]) -> Callable[[Optional, Any], Optional]:
    return lambda optional, key: look(optional.values[0], key) if optional.values else NONE


def _unwrap(optionals: list[Optional]) -> list[Any]:
    return [value for each in optionals for value in each.values]


_AT = {
    "(optional_type(list(V)), int) -> optional_type(V)": _in_optional(_optional_item),
    "(optional_type(map(K, V)), K) -> optional_type(V)": _in_optional(_optional_key),
}

LISTS: dict[str, dict[str, Callable[..., Any]]] = {
    "isSorted": {f"list({name}).() -> bool": _is_sorted for name in _ORDERED},
    "sum": {f"list({name}).() -> {name}": _sum for name in _SUMMED},
    "min": {f"list({name}).() -> {name}": _extreme("min", -1) for name in _ORDERED},
    "max": {f"list({name}).() -> {name}": _extreme("max", 1) for name in _ORDERED},
    "indexOf": {"list(A).(A) -> int": _index_of},
    "lastIndexOf": {"list(A).(A) -> int": _last_index_of},
    "slice": {"list(T).(int, int) -> list(T)": _slice},
    "flatten": {"list(list(T)).() -> list(T)": _flatten, "list(dyn).(int) -> list(dyn)": _flatten},
    "sort": {
        f"list({name}).() -> list({name})": lambda items: sorted(items, key=cmp_to_key(_compare)) for name in _ORDERED
    },
    "lists.range": {"(int) -> list(int)": lambda end: list(range(end))},
    "reverse": {"list(T).() -> list(T)": lambda items: items[::-1]},
    "distinct": {"list(T).() -> list(T)": _distinct},
    "first": {"list(V).() -> optional_type(V)": lambda items: Optional(tuple(items[:1]))},
    "last": {"list(V).() -> optional_type(V)": lambda items: Optional(tuple(items[-1:]))},
    "sets.contains": {"(list(T), list(T)) -> bool": _contains_all},
    "sets.equivalent": {
        "(list(T), list(T)) -> bool": lambda one, other: _contains_all(one, other) and _contains_all(other, one)
    },
    "sets.intersects": {"(list(T), list(T)) -> bool": lambda one, other: any(contains(other, item) for item in one)},
}

OPTIONALS: dict[str, dict[str, Callable[..., Any]]] = {
    "optional.of": {"(V) -> optional_type(V)": lambda value: Optional((value,))},
    "optional.ofNonZeroValue": {"(V) -> optional_type(V)": _optional_value},
    "optional.none": {"() -> optional_type(V)": lambda: NONE},
    "optional.unwrap": {"(list(optional_type(V))) -> list(V)": _unwrap},
    "unwrapOpt": {"list(optional_type(V)).() -> list(V)": _unwrap},
    "value": {"optional_type(V).() -> V": _optional_content},
    "hasValue": {"optional_type(V).() -> bool": lambda optional: bool(optional.values)},
    "or": {"optional_type(V).(optional_type(V)) -> optional_type(V)": lambda one, other: one if one.values else other},
    "orValue": {"optional_type(V).(V) -> V": lambda optional, other: (*optional.values, other)[0]},
    "_[?_]": {
        "(list(V), int) -> optional_type(V)": _optional_item,
        "(map(K, V), K) -> optional_type(V)": _optional_key,
        **_AT,
    },
    "_[_]": _AT,
}
