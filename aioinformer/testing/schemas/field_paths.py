"""Field sets and their encoding in `metadata.managedFields` (FieldsV1).

A path is a tuple of FieldsV1 steps: "f:name" for a field, 'k:{"name":"web"}' for the list element with these keys,
'v:"a"' for a value of a set. A field set is a frozenset of paths: union, difference and intersection of ownership are
those of sets.

FieldsV1 is a tree of steps. A node without children is a member; a node with children is a member only if it has the
entry ".".
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
    """Return the step to a field or map key."""
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> str:
    """Return the step to the list element with these keys."""
    return f"k:{_encode(keys)}"


def value_step(value: Any) -> str:
    """Return the step to a value of a set."""
    return f"v:{_encode(value)}"


def encode_fields(fields: FieldSet) -> dict[str, Any]:
    """Encode a field set as FieldsV1."""
    tree: dict[str, Any] = {}
    # In sorted order a parent precedes its children, so an empty node that is met again is a member.
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
    """Decode FieldsV1 into a field set.

    Raises:
        ValueError: a step is invalid; the message names it.
    """
    found: list[Path] = []
    _find_members(tree, (), found)
    return frozenset(found)


def prefixes(fields: Iterable[Path]) -> FieldSet:
    """Return all fields and their parents."""
    return frozenset(path[:length] for path in fields for length in range(1, len(path) + 1))


def fields_below(fields: FieldSet, places: FieldSet) -> FieldSet:
    """Return the fields that are, or are within, one of the places."""
    lengths = {len(place) for place in places}
    return frozenset(path for length in lengths for path in fields if path[:length] in places)


def path_text(path: Path) -> str:
    """Return a path as messages show it: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, path))


def _find_members(tree: Mapping[str, Any], path: Path, found: list[Path]) -> None:
    for step, node in tree.items():
        if step == _MEMBER:
            found.append(path)
        elif step[:2] not in ("f:", "k:", "v:", "i:") or not isinstance(node, dict):
            raise ValueError(f"{step!r} is not a valid FieldsV1 step")
        elif node:
            _find_members(node, (*path, step), found)
        else:
            found.append((*path, step))


def _step_text(step: str) -> str:
    kind, text = step[0], step[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={_encode(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
