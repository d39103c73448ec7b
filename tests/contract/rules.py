"""Expressions of the language of rules, on one sample: such as hold, and such as have no value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TEXT = {"type": "string", "maxLength": 64}
_INTEGER = {"type": "integer"}

SAMPLE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": _INTEGER,
        "f": {"type": "number"},
        "s": _TEXT,
        "b": {"type": "boolean"},
        "e": {"x-kubernetes-int-or-string": True, "maxLength": 16},
        "list": {"type": "array", "items": _INTEGER, "maxItems": 8},
        "words": {"type": "array", "items": _TEXT, "maxItems": 8},
        "map": {"type": "object", "additionalProperties": _INTEGER, "maxProperties": 8},
        "objects": {
            "type": "array",
            "maxItems": 8,
            "items": {"type": "object", "properties": {"name": _TEXT, "n": _INTEGER}},
        },
        "missing": _TEXT,
        "none": {"type": "object", "nullable": True, "properties": {"x": _INTEGER}},
    },
}
SAMPLE: dict[str, Any] = {
    "n": 7,
    "f": 2.5,
    "s": "Hello, wörld",
    "b": True,
    "e": "25%",
    "list": [3, 1, 2, 3],
    "words": ["b", "a", "c"],
    "map": {"x": 1, "y": 2},
    "objects": [{"name": "q", "n": 2}, {"name": "p", "n": 1}, {"name": "r"}],
}


def _read(name: str) -> dict[str, list[str]]:
    """Expressions by topic: a line that begins with "# " names it, and the others are expressions."""
    topics: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "expressions" / name).read_text().splitlines()[1:]:
        if line.startswith("# "):
            topics[line.removeprefix("# ")] = []
        elif line:
            topics[list(topics)[-1]].append(line)
    return topics


TRUE = _read("true.txt")
WITHOUT_A_VALUE = _read("without_a_value.txt")
