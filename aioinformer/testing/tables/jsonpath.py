r"""JSONPath as printer columns of CustomResourceDefinitions use it, a part of kubectl's template language.

    .spec.size   .spec['below.it']   .list[0]   .list[-1]   .map[*]   .list[?(@.type=="Ready")].status   .with\.dots

A path without a match has no results. Neither has a dot without a name. Slices, unions and `..` are not supported.
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
          (?P<wild>\*)
        | (?P<index>-?\d+)
        | (?P<quote>['"])(?P<key>(?:[^\\]|\\.)*?)(?P=quote)
        | \?\(\s*@(?P<path>[^=!<>\s]*)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)
        )\s*\]
      | \.(?P<name>\*|(?:[^.\[\]\\]|\\.)*)""",
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
    """Return all values at a path, in order.

    Raises:
        ValueError: the path is invalid.
    """
    values = [value]
    for step in parse(path):
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
    if groups["index"]:
        return _item(int(groups["index"]))
    if groups["path"] is not None:
        return _filter(groups["path"], groups["operator"], groups["value"])
    return _name(groups["name"] if groups["key"] is None else groups["key"])


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _item(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[index : index + 1 or None]

    return step


def _name(escaped: str) -> Step:
    name = re.sub(r"\\(.)", r"\1", escaped)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and name in value:
            yield value[name]

    return step


def _filter(path: str, comparison: str | None, literal: str | None) -> Step:
    text = literal or "null"
    expected = text[1:-1] if text.startswith("'") and text.endswith("'") else json.loads(text)

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = find(path, item)
            if comparison is None:
                if found:
                    yield item
            elif found and type(found[0]) is type(expected) and _COMPARISONS[comparison](found[0], expected):
                yield item

    return step
