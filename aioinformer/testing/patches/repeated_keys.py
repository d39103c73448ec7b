"""Keys that a document says twice: what decoders make of them, and how the server tells of them.

Go decodes the later value into what the earlier one left: maps of built-in kinds become one, everything else is
replaced.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from aioinformer.transport.auth.yaml_documents import compose_first


class _Pairs(list[tuple[str, Any]]):
    """An object with all its keys in their order."""


class Repeating(dict[str, Any]):
    """An object that says a key twice, with what it says in the end; not to be changed.

    Attributes:
        pairs: all that it says.
    """

    pairs: tuple[tuple[str, Any], ...] = ()


def repeated_in_json(data: bytes, *, merged: bool, fields: frozenset[str] | None = None) -> tuple[Any, list[str]]:
    """Decodes a document and finds what is repeated in it.

    Args:
        data: is JSON.
        merged: whether maps become one.
        fields: of the elements of the list that it is, if what others they have is to be told, too.

    Returns:
        The decoded document, and the server's words for each key.
    """
    found: list[str] = []
    return _object(json.loads(data, object_pairs_hook=_Pairs), "", found, merged, fields), found


def repeating_json(data: bytes) -> Any:
    """Decodes a document whose objects keep what is repeated in them (`Repeating`)."""
    return json.loads(data, object_pairs_hook=_repeating)


def without_repeated(value: Any) -> Any:
    """A value in which nothing is `Repeating`."""
    if isinstance(value, dict):
        return {key: without_repeated(each) for key, each in value.items()}
    return [without_repeated(each) for each in value] if isinstance(value, list) else value


def as_written(value: Any) -> str:
    """A value as JSON, with what is repeated in it."""
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, Repeating) else value.items()
        return f"{{{','.join(f'{as_written(key)}:{as_written(each)}' for key, each in pairs)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(as_written, value))}]"
    return json.dumps(value, ensure_ascii=False)


def repeated_in_yaml(data: bytes) -> list[str]:
    """The server's words for each key that a YAML document repeats; of several documents, the first."""
    found: list[str] = []
    _look(compose_first(data), found)
    return found


def has_repeated(data: bytes) -> bool:
    """Whether some object of a JSON document repeats a key. Takes half as long as decoding does."""
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) != len(pairs)

    json.loads(data, object_pairs_hook=look)
    return repeated


def _repeating(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeating = Repeating(found)
    repeating.pairs = tuple(pairs)
    return repeating


def _object(value: Any, path: str, found: list[str], merged: bool, fields: frozenset[str] | None = None) -> Any:
    if isinstance(value, _Pairs):
        decoded: dict[str, Any] = {}
        for key, each in value:
            below = f"{path}.{key}" if path else key
            if path and fields is not None and key not in fields:
                found.append(f'unknown field "{below}"')
            new = _object(each, below, found, merged)
            if key in decoded:
                # It is told once, however often it is repeated.
                if (told := f'duplicate field "{below}"') not in found:
                    found.append(told)
                if merged and isinstance(new, dict) and isinstance(decoded[key], dict):
                    new = decoded[key] | new
            decoded[key] = new
        return decoded
    if isinstance(value, list):
        of_elements = None if path else fields
        return [_object(each, f"{path}[{index}]", found, merged, of_elements) for index, each in enumerate(value)]
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
