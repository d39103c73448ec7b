"""Structural schemas. Expected messages come from kube-apiserver's responses to the same objects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from aioinformer.testing.schemas.structural import default_fields, schema_causes

FIELDS: dict[str, Any] = {
    "int": {"type": "integer", "minimum": 0, "maximum": 10, "multipleOf": 2},
    "exc": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": True},
    "str": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]*$"},
    "enum": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "when": {"type": "string", "format": "date-time"},
    "nullable": {"type": "string", "nullable": True},
    "bool": {"type": "boolean"},
    "port": {"x-kubernetes-int-or-string": True},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "map": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k", "n"],
        "items": {
            "type": "object",
            "required": ["k"],
            "properties": {"k": {"type": "string"}, "n": {"type": "integer", "default": 1}},
        },
    },
    "obj": {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "default": 3},
            "y": {"type": "object", "properties": {"z": {"type": "string", "default": "zz"}}},
        },
    },
    "add": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}, "maxProperties": 2},
    "any": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "one": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "not": {"type": "string", "not": {"enum": ["bad"]}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": FIELDS}},
}


def custom(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Val", "metadata": {"name": "v"}, "spec": spec}


def defaulted(spec: dict[str, Any]) -> Any:
    obj = custom(deepcopy(spec))
    default_fields(obj, SCHEMA)
    return obj["spec"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"enum": "a"}),
        ({"enum": "b"}, {"enum": "b"}),
        ({"enum": None}, {"enum": "a"}),
        ({"bool": None}, {"enum": "a"}),
        ({"nullable": None}, {"enum": "a", "nullable": None}),
        ({"obj": {"y": {}}}, {"enum": "a", "obj": {"x": 3, "y": {"z": "zz"}}}),
        ({"map": [{"k": "a"}, {"k": "b", "n": 2}]}, {"enum": "a", "map": [{"k": "a", "n": 1}, {"k": "b", "n": 2}]}),
    ],
)
def test_defaults_are_applied_at_any_depth(spec: dict[str, Any], expected: Any) -> None:
    assert defaulted(spec) == expected


def test_defaults_are_not_shared_between_objects() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "default": {"list": []}}}}
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    default_fields(first, schema)
    first["spec"]["list"].append(1)

    default_fields(second, schema)

    assert second == {"spec": {"list": []}}


@pytest.mark.parametrize(
    "spec",
    [
        {"int": 2, "exc": 0.5, "str": "abcd", "enum": "b", "bool": False, "port": "http", "list": ["a"]},
        {"port": 80, "set": ["a", "b"], "nullable": None, "when": "2026-01-01T00:00:00Z", "int": 4.0},
        {"map": [{"k": "a", "n": 1}, {"k": "a", "n": 2}], "add": {"x": 1}, "any": {"b": 1}, "one": {"a": 1}},
    ],
)
def test_valid_object_has_no_causes(spec: dict[str, Any]) -> None:
    assert schema_causes(custom(spec), SCHEMA) == []


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        (None, [("FieldValueRequired", "spec", "Required value")]),
        (
            5,
            [
                (
                    "FieldValueTypeInvalid",
                    "spec",
                    'Invalid value: "integer": spec in body must be of type object: "integer"',
                )
            ],
        ),
        (
            {"int": -1},
            [
                ("FieldValueInvalid", "spec.int", "Invalid value: -1: spec.int in body should be a multiple of 2"),
                (
                    "FieldValueInvalid",
                    "spec.int",
                    "Invalid value: -1: spec.int in body should be greater than or equal to 0",
                ),
            ],
        ),
        (
            {"exc": 0},
            [("FieldValueInvalid", "spec.exc", "Invalid value: 0: spec.exc in body should be greater than 0")],
        ),
        ({"exc": 7}, [("FieldValueInvalid", "spec.exc", "Invalid value: 7: spec.exc in body should be less than 5")]),
        (
            {"str": "a"},
            [("FieldValueInvalid", "spec.str", 'Invalid value: "a": spec.str in body should be at least 2 chars long')],
        ),
        ({"str": "abcde"}, [("FieldValueTooLong", "spec.str", "Too long: may not be more than 4 bytes")]),
        (
            {"str": "AB"},
            [("FieldValueInvalid", "spec.str", "Invalid value: \"AB\": spec.str in body should match '^[a-z]*$'")],
        ),
        (
            {"enum": "c"},
            [("FieldValueNotSupported", "spec.enum", 'Unsupported value: "c": supported values: "a", "b"')],
        ),
        (
            {"when": "2026-01-01"},
            [
                (
                    "FieldValueTypeInvalid",
                    "spec.when",
                    'Invalid value: "2026-01-01": spec.when in body must be of type date-time: "2026-01-01"',
                )
            ],
        ),
        (
            {"port": True},
            [
                (
                    "FieldValueTypeInvalid",
                    "spec.port",
                    'Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
                )
            ],
        ),
        (
            {"list": []},
            [("FieldValueInvalid", "spec.list", "Invalid value: 0: spec.list in body should have at least 1 items")],
        ),
        (
            {"list": ["a", "b", "c"]},
            [("FieldValueTooMany", "spec.list", "Too many: 3: must have at most 2 items")],
        ),
        (
            {"list": [None]},
            [
                (
                    "FieldValueTypeInvalid",
                    "spec.list[0]",
                    'Invalid value: "null": spec.list[0] in body must be of type string: "null"',
                )
            ],
        ),
        ({"set": ["a", "a"]}, [("FieldValueDuplicate", "spec.set[1]", 'Duplicate value: "a"')]),
        (
            {"map": [{"k": "a", "n": 1}, {"k": "a", "n": 1}]},
            [("FieldValueDuplicate", "spec.map[1]", 'Duplicate value: {"k":"a","n":1}')],
        ),
        ({"map": [{"n": 1}]}, [("FieldValueRequired", "spec.map[0].k", "Required value")]),
        (
            {"add": {"a": 0}},
            [
                (
                    "FieldValueInvalid",
                    "spec.add.a",
                    "Invalid value: 0: spec.add.a in body should be greater than or equal to 1",
                )
            ],
        ),
        (
            {"any": {}},
            [
                (
                    "FieldValueInvalid",
                    "<nil>",
                    'Invalid value: "": "spec.any" must validate at least one schema (anyOf)',
                ),
                ("FieldValueRequired", "spec.any.a", "Required value"),
            ],
        ),
        (
            {"one": {"a": "1", "b": "2"}},
            [
                (
                    "FieldValueInvalid",
                    "<nil>",
                    'Invalid value: "": "spec.one" must validate one and only one schema (oneOf). '
                    "Found 2 valid alternatives",
                )
            ],
        ),
        (
            {"not": "bad"},
            [("FieldValueInvalid", "<nil>", 'Invalid value: "": "spec.not" must not validate the schema (not)')],
        ),
    ],
    ids=str,
)
def test_invalid_object_has_the_causes_of_kube_apiserver(spec: Any, causes: list[tuple[str, str, str]]) -> None:
    obj = custom(spec)
    if spec is None:
        del obj["spec"]

    found = schema_causes(obj, SCHEMA)

    assert [(cause.reason, cause.field) for cause in found] == [(reason, field) for reason, field, _ in causes]
