"""The JSONPath of printer columns: the part of kubectl's template language that CustomResourceDefinitions may use.

    .spec.size   ['with.dots']   .list[0]   .list[-1]   .list[1:3]   .map[*]   .list[?(@.type=="Ready")].status

A path that leads nowhere has no results. Recursive descent and unions are not allowed in columns.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.?\[\s*(?:
          '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)"
        | (?P<index>-?\d+) | (?P<wild>\*)
        | (?P<slice>-?\d*:-?\d*(?::\d+)?)
        | \?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)
        )\s*\]
      | \.(?P<name>\*|(?:[^.\[\]\s\\]|\\.)+)""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find(path: str, value: Any) -> list[Any]:
    """All values that a path leads to, in order.

    Raises:
        ValueError: the path is not one.
    """
    values = [value]
    for step in _parse(path):
        values = [result for item in values for result in step(item)]
    return values


@lru_cache(maxsize=512)
def _parse(path: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None:
            raise ValueError(f"JSONPath {path!r} is not understood from {path[position:]!r} on")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    groups = match.groupdict()
    if groups["wild"] or groups["name"] == "*":
        return _every
    if groups["index"]:
        return _sliced(slice(int(groups["index"]), int(groups["index"]) + 1 or None))
    if groups["slice"]:
        return _sliced(slice(*(int(part) if part else None for part in groups["slice"].split(":"))))
    if groups["path"] is not None:
        return _filtered(groups["path"], groups["operator"], groups["value"])
    quoted = next(text for text in (groups["single"], groups["double"], groups["name"]) if text is not None)
    return _named(re.sub(r"\\(.)", r"\1", quoted))


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _named(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _sliced(part: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[part]

    return step


def _filtered(path: str, comparison: str | None, literal: str | None) -> Step:
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
        raise ValueError(f"JSONPath filters compare with a string, a number or a boolean, not with {text}") from None
