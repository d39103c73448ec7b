"""Schemas with CEL rules, objects that obey or break them, and one sample with expressions about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.real.contract.tables import DEFINITIONS

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


SAMPLE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": INTEGER,
        "f": {"type": "number"},
        "s": TEXT,
        "b": {"type": "boolean"},
        "e": {"x-kubernetes-int-or-string": True, "maxLength": 16},
        "list": {"type": "array", "items": INTEGER, "maxItems": 8},
        "words": {"type": "array", "items": TEXT, "maxItems": 8},
        "map": {"type": "object", "additionalProperties": INTEGER, "maxProperties": 8},
        "objects": {
            "type": "array",
            "maxItems": 8,
            "items": {"type": "object", "properties": {"name": TEXT, "n": INTEGER}},
        },
        "missing": TEXT,
        "none": {"type": "object", "nullable": True, "properties": {"x": INTEGER}},
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


def _read(section: str) -> dict[str, list[str]]:
    """Return the expressions of a section by topic: a line "# topic" precedes its expressions, one a line."""
    topics: dict[str, list[str]] = {}
    text = (Path(__file__).parent / "expressions.txt").read_text()
    for line in text.partition(f"## {section}\n")[2].partition("## ")[0].splitlines():
        if line.startswith("# "):
            topics[line.removeprefix("# ")] = []
        elif line:
            topics[list(topics)[-1]].append(line)
    return topics


TRUE = _read("true")
WITHOUT_A_VALUE = _read("without a value")


OBJECTS: dict[str, tuple[dict[str, Any], list[tuple[Any, int]]]] = {
    "exclusive": (
        ruled(
            fields(inline=TEXT, secret=TEXT, config=TEXT),
            {"rule": "[has(self.inline), has(self.secret), has(self.config)].exists_one(x, x)", "message": "pick one"},
            "!(has(self.inline) && has(self.secret))",
        ),
        [({"inline": "a"}, 201), ({}, 422), ({"inline": "a", "secret": "b"}, 422), ({"inline": "", "config": ""}, 422)],
    ),
    "crossing": (
        ruled(
            fields(min={"type": "integer"}, max={"type": "integer"}, replicas={"type": "integer", "default": 2}),
            {
                "rule": "self.min <= self.max",
                "messageExpression": "'min %d is more than max %d'.format([self.min, self.max])",
            },
            {"rule": "self.replicas >= self.min", "fieldPath": ".replicas", "message": " too few "},
            {"rule": "self.replicas <= self.max", "fieldPath": ".replicas", "reason": "FieldValueForbidden"},
        ),
        [
            ({"min": 1, "max": 3}, 201),
            ({"min": 4, "max": 3, "replicas": 3}, 422),
            ({"min": 3, "max": 4}, 422),
            ({"min": 1, "max": 1}, 422),
            ({"max": 3}, 422),
            ({"min": "1", "max": 3}, 422),
        ],
    ),
    "formats": (
        ruled(
            fields(
                time={"type": "string", "format": "date-time"},
                day={"type": "string", "format": "date"},
                span={"type": "string", "format": "duration"},
                data={"type": "string", "format": "byte", "maxLength": 64},
            ),
            "!has(self.time) || self.time < timestamp('2030-01-01T00:00:00Z')",
            "!has(self.time) || self.time.getFullYear() >= 2020",
            "!has(self.day) || self.day.getMonth() == 0",
            "!has(self.span) || self.span >= duration('1m')",
            {"rule": "!has(self.span) || self.span.getHours() < 2", "messageExpression": "string(self.span)"},
            "!has(self.data) || self.data == b'abc'",
        ),
        [
            ({"time": "2024-05-06T07:08:09Z", "day": "2024-01-02", "span": "90s", "data": "YWJj"}, 201),
            ({"time": "2031-05-06T07:08:09+02:00"}, 422),
            ({"time": "2019-05-06T07:08:09.5Z"}, 422),
            ({"day": "2024-02-02"}, 422),
            ({"span": "30s"}, 422),
            ({"span": "3h"}, 422),
            ({"data": "YWI="}, 422),
        ],
    ),
}
