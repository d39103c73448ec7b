"""Repeated keys in documents: how decoders treat them, and the server's messages about them.

Go decodes a later value into the result of the earlier one: maps of built-in kinds are merged, other values are
replaced.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from aioinformer.transport.auth.yaml_documents import compose_first


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object in order, with repeated keys."""


class Repeating(dict[str, Any]):
    """An object with repeated keys that holds the last value of each. It must not be changed.

    Attributes:
        pairs: all keys and values.
    """

    pairs: tuple[tuple[str, Any], ...] = ()


def repeated_in_json(data: bytes, *, merged: bool, fields: frozenset[str] | None = None) -> tuple[Any, list[str]]:
    """Decode a JSON document and find its repeated keys.

    Args:
        data: the document.
        merged: whether maps under the same key are merged.
        fields: if the document is a list, the known fields of its elements; other fields are reported, too.

    Returns:
        The decoded document, and the server's message for each repeated key.
    """
    found: list[str] = []
    return _decode(json.loads(data, object_pairs_hook=_Pairs), "", found, merged, fields), found


def repeating_json(data: bytes) -> Any:
    """Decode a document. Objects keep their repeated keys (`Repeating`)."""
    return json.loads(data, object_pairs_hook=_keep_repeated)


def without_repeated(value: Any) -> Any:
    """Return the value with plain objects instead of `Repeating` ones."""
    if isinstance(value, dict):
        return {key: without_repeated(each) for key, each in value.items()}
    return [without_repeated(each) for each in value] if isinstance(value, list) else value


def as_written(value: Any) -> str:
    """Return a value as JSON with repeated keys."""
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, Repeating) else value.items()
        return f"{{{','.join(f'{as_written(key)}:{as_written(each)}' for key, each in pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(as_written, value))}]"
    return json.dumps(value, ensure_ascii=False)


def repeated_in_yaml(data: bytes) -> list[str]:
    """Return the server's message for each repeated key of the first YAML document."""
    found: list[str] = []
    _find_repeated(compose_first(data), found)
    return found


def has_repeated(data: bytes) -> bool:
    """Return whether an object of a JSON document repeats a key. This takes half as long as decoding."""
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) != len(pairs)

    json.loads(data, object_pairs_hook=look)
    return repeated


def _keep_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeating = Repeating(found)
    repeating.pairs = tuple(pairs)
    return repeating


def _decode(value: Any, path: str, found: list[str], merged: bool, fields: frozenset[str] | None = None) -> Any:
    if isinstance(value, _Pairs):
        decoded: dict[str, Any] = {}
        for key, each in value:
            below = f"{path}.{key}" if path else key
            if path and fields is not None and key not in fields:
                found.append(f'unknown field "{below}"')
            new = _decode(each, below, found, merged)
            if key in decoded:
                # Each key is reported once.
                if (message := f'duplicate field "{below}"') not in found:
                    found.append(message)
                if merged and isinstance(new, dict) and isinstance(decoded[key], dict):
                    new = decoded[key] | new
            decoded[key] = new
        return decoded
    if isinstance(value, list):
        element_fields = None if path else fields
        return [_decode(each, f"{path}[{index}]", found, merged, element_fields) for index, each in enumerate(value)]
    return value


def _find_repeated(node: yaml.Node | None, found: list[str]) -> None:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                found.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add(key.value)
            _find_repeated(value, found)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _find_repeated(each, found)
