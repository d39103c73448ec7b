r"""JSONPath as printer columns of CustomResourceDefinitions use it, a part of kubectl's template language.

    .spec.size   .spec['below.it']   .list[0]   .list[-1]   .list[1:3]   .map[*]   .list[?(@.type=="Ready")].status
    ..size   .list[0,2]   .spec['size','ratio']   .with\.dots

A path without a match has no results. Neither has a dot without a name.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_KEY = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+)"""
_TOKEN = re.compile(
    r"""\.?\[\s*(?:
          (?P<wild>\*)
        | (?P<slice>-?\d*:-?\d*(?::\d+)?)
        | (?P<union>KEY(?:\s*,\s*KEY)*)
        | \?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)
        )\s*\]
      | (?P<descent>\.)(?=\.) | \.(?P<name>\*|(?:[^.\[\]\\]|\\.)*)""".replace("KEY", _KEY),
    re.VERBOSE,
)
_PART = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(-?\d+)""")
_DOT = re.compile(r"(?<!\\)\.")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find(path: str, value: Any) -> list[Any]:
    """Return all values at a path, in order.

    Raises:
        ValueError: the path is invalid.
    """
    return _walk(parse(path), value)


def _walk(steps: tuple[Step, ...], value: Any) -> list[Any]:
    values = [value]
    for step in steps:
        values = [result for item in values for result in step(item)]
    return values


@lru_cache(maxsize=512)
def parse(path: str) -> tuple[Step, ...]:
    """Return the steps of a path.

    Raises:
        ValueError: the path is invalid.
    """
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None:
            raise ValueError(f"invalid JSONPath {path!r} at {path[position:]!r}")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    groups = match.groupdict()
    if groups["wild"] or groups["name"] == "*":
        return _children
    if groups["descent"]:
        return _descendants
    if groups["slice"]:
        return _slice(slice(*(int(part) if part else None for part in groups["slice"].split(":"))))
    if groups["path"] is not None:
        return _filter(groups["path"], groups["operator"], groups["value"])
    if groups["union"] is not None:
        return _union(groups["union"])
    return _name(groups["name"])


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descendants(value: Any) -> Iterator[Any]:
    """Yield a value and all values in it."""
    yield value
    for inner in _children(value):
        yield from _descendants(inner)


def _union(union: str) -> Step:
    """Return the step for a union of indexes or quoted field names. A dot in a name separates fields."""
    alternatives: list[tuple[Step, ...]] = []
    for single, double, index in _PART.findall(union):
        if index:
            alternatives.append((_slice(slice(int(index), int(index) + 1 or None)),))
        else:
            alternatives.append(tuple(map(_name, _DOT.split(single or double))))

    def step(value: Any) -> Iterator[Any]:
        for alternative in alternatives:
            yield from _walk(alternative, value)

    return step


def _name(escaped: str) -> Step:
    name = re.sub(r"\\(.)", r"\1", escaped)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _slice(part: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[part]

    return step


def _filter(path: str, comparison: str | None, literal: str | None) -> Step:
    expected = _literal(literal or "null")

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = find(path, item)
            if comparison is None:
                if found:
                    yield item
            elif found and type(found[0]) is type(expected) and _COMPARISONS[comparison](found[0], expected):
                yield item

    return step


def _literal(text: str) -> Any:
    if text.startswith("'") and text.endswith("'"):
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError(f"invalid JSONPath filter: {text} is not a string, a number or a boolean") from None
