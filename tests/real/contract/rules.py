"""Shared by rows about CEL rules: schemas with rules, widgets that have them, and one sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.real.contract.paths import DEFINITIONS

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

RULES = "x-kubernetes-validations"
INTEGER = {"type": "integer"}
TEXT = {"type": "string", "maxLength": 64}
MANY = {"maxItems": 16}


def ruled(schema: dict[str, Any], *rules: dict[str, Any] | str) -> dict[str, Any]:
    """Return a schema with rules."""
    return schema | {RULES: [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def keyed(**properties: Any) -> dict[str, Any]:
    """Return the schema of an item in a list of type map."""
    return fields(name=TEXT, **properties) | {"required": ["name"]}


def items(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": schema, **MANY, **more}


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def definition(api: Conversation, schema: dict[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """Return a CRD for widgets.

    Args:
        schema: of their spec.
        whole: whether it is the schema of the whole widget instead.
    """
    told = schema if whole else fields(spec=schema)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": told}}
    group = f"{api.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": names,
        "versions": [version | {"subresources": {"status": {}}}],
    }
    return {"metadata": {"name": f"widgets.{group}"}, "spec": spec}


async def define(api: Conversation, schema: dict[str, Any], *, whole: bool = False) -> str:
    """Create a CRD for widgets, and return their path."""
    await api.create(DEFINITIONS, definition(api, schema, whole=whole))
    path = f"/apis/{api.namespace}.example.com/v1/namespaces/{{ns}}/widgets"
    await api.poll(path, lambda answer: answer.status == 200, recorded=False)
    return path


def widget(api: Conversation, spec: Any, **more: Any) -> dict[str, Any]:
    named = {"apiVersion": f"{api.namespace}.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    return named | {"spec": spec} | more


def recorded_part(body: Any) -> Any:
    """Return what is recorded: errors, and the spec of objects."""
    return body if body["kind"] == "Status" else body["spec"]


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
    """Return expressions by topic: a line "# topic" precedes its expressions, one a line."""
    topics: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "expressions" / name).read_text().splitlines()[1:]:
        if line.startswith("# "):
            topics[line.removeprefix("# ")] = []
        elif line:
            topics[list(topics)[-1]].append(line)
    return topics


TRUE = _read("true.txt")
WITHOUT_A_VALUE = _read("without_a_value.txt")
