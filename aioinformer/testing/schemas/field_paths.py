"""Sets of fields of an object, and their form in `metadata.managedFields` (FieldsV1).

A path is a tuple of steps in the notation of FieldsV1: "f:name" into a map, 'k:{"name":"web"}' to the element of a list
that has these keys, 'v:"a"' to a value in a set. A set of fields is a frozenset of paths: what union, difference and
intersection mean for ownership is what they mean for sets.

In FieldsV1 the paths are a tree. A node without children is a member; one with children is a member only if it says so
with ".".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path = tuple[str, ...]
FieldSet = frozenset[Path]

NO_FIELDS: FieldSet = frozenset()
_MEMBER = "."
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def field_step(name: str) -> str:
    """The step into a field, or into a key of a map."""
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> str:
    """The step to the element of a list that has these keys."""
    return f"k:{_encode(keys)}"


def value_step(value: Any) -> str:
    """The step to a value of a set."""
    return f"v:{_encode(value)}"


def encode_fields(fields: FieldSet) -> dict[str, Any]:
    """FieldsV1 of a set of fields."""
    tree: dict[str, Any] = {}
    # In this order a member comes before what is in it, and an empty node that is met again is a member.
    for path in sorted(fields):
        node, new = tree, True
        for step in path:
            inner = node.get(step)
            if inner is not None:
                node, new = inner, False
                continue
            if not node and not new:
                node[_MEMBER] = {}
            node[step] = node = {}
            new = True
    return tree


def decode_fields(tree: Mapping[str, Any]) -> FieldSet:
    """The set of fields that a FieldsV1 names.

    Raises:
        ValueError: it is none; the message names the step that nobody understands.
    """
    found: list[Path] = []
    _find_members(tree, (), found)
    return frozenset(found)


def prefixes(fields: Iterable[Path]) -> FieldSet:
    """All fields, and everything they are in."""
    return frozenset(path[:length] for path in fields for length in range(1, len(path) + 1))


def below(fields: FieldSet, places: FieldSet) -> FieldSet:
    """Those fields that are one of the places, or within one."""
    lengths = {len(place) for place in places}
    return frozenset(path for length in lengths for path in fields if path[:length] in places)


def shown(path: Path) -> str:
    """A path as messages name it: `.spec.containers[name="web"].image`."""
    return "".join(map(_shown_step, path))


def _find_members(tree: Mapping[str, Any], path: Path, found: list[Path]) -> None:
    for step, node in tree.items():
        if step == _MEMBER:
            found.append(path)
        elif step[:2] not in ("f:", "k:", "v:", "i:") or not isinstance(node, dict):
            raise ValueError(f"{step!r} is no step of a path in FieldsV1")
        elif node:
            _find_members(node, (*path, step), found)
        else:
            found.append((*path, step))


def _shown_step(step: str) -> str:
    kind, text = step[0], step[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={_encode(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
