"""Keys that a document says twice: what decoders make of them, and how the server tells of them.

Go decodes the later value into what the earlier one left: maps of built-in kinds become one, everything else is
replaced.
"""

from __future__ import annotations

import json
from typing import Any

import yaml


class _Pairs(list[tuple[str, Any]]):
    """An object with all its keys in their order."""


def repeated_in_json(data: bytes, *, merged: bool) -> tuple[Any, list[str]]:
    """Decodes a document and finds what is repeated in it.

    Args:
        data: is JSON.
        merged: whether maps become one.

    Returns:
        The decoded document, and the server's words for each key.
    """
    found: list[str] = []
    return _object(json.loads(data, object_pairs_hook=_Pairs), "", found, merged), found


def repeated_in_yaml(data: bytes) -> list[str]:
    """The server's words for each key that a YAML document repeats; of several documents, the first."""
    found: list[str] = []
    _look(next(yaml.compose_all(data, yaml.SafeLoader), None), found)
    return found


def has_repeated(data: bytes) -> bool:
    """Whether some object of a JSON document repeats a key. Takes half as long as decoding does."""
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) != len(pairs)

    json.loads(data, object_pairs_hook=look)
    return repeated


def _object(value: Any, path: str, found: list[str], merged: bool) -> Any:
    if isinstance(value, _Pairs):
        decoded: dict[str, Any] = {}
        for key, each in value:
            below = f"{path}.{key}" if path else key
            new = _object(each, below, found, merged)
            if key in decoded:
                found.append(f'duplicate field "{below}"')
                if merged and isinstance(new, dict) and isinstance(decoded[key], dict):
                    new = decoded[key] | new
            decoded[key] = new
        return decoded
    if isinstance(value, list):
        return [_object(each, f"{path}[{index}]", found, merged) for index, each in enumerate(value)]
    return value


def _look(node: yaml.Node | None, found: list[str]) -> None:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add(key.value)
            _look(value, found)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _look(each, found)
