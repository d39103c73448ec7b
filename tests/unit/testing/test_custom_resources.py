"""Definitions of custom resources: changes, schemas, defaults, published documents."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from aioinformer.testing import ApiServer, StatusError
from aioinformer.testing.api.statuses import warning_headers
from aioinformer.testing.schemas.openapi_v3 import custom_documents
from aioinformer.testing.schemas.structural import default_fields, drop_nulls, schema_causes
from tests.support.api import DEFINITION, DEFINITIONS, WIDGETS, Api
from tests.support.sized_widgets import WIDGETS as SIZED
from tests.support.sized_widgets import widget as sized


def widget(name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **content}


async def test_deleting_a_crd_deletes_objects_and_ends_watches(api: Api) -> None:
    await api("POST", DEFINITIONS, DEFINITION)
    await api("POST", WIDGETS, widget("w"))
    async with api.session.get(f"{WIDGETS}?watch=true") as watch:
        assert b'"ADDED"' in await watch.content.readline()
        await api("DELETE", f"{DEFINITIONS}/widgets.example.com")
        assert b'"DELETED"' in await watch.content.readline()
        assert await watch.content.read() == b""
    assert await api("GET", WIDGETS) == (404, "404 page not found\n")


async def test_unsupported_rule_is_501(api: Api) -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "'%e'.format([1.5]) != ''"}]}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    await api("POST", DEFINITIONS, {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": versions}})
    status, body = await api("POST", WIDGETS, widget("w"))
    assert (status, body["reason"]) == (501, "NotImplemented")
    assert body["message"].endswith("the rule `'%e'.format([1.5]) != ''` of <nil>: `format` with `%e`")


def test_unchanged_invalid_fields_do_not_block_an_update() -> None:
    server = ApiServer()
    server.create("customresourcedefinitions", SIZED)
    server.create("widgets", sized("w", size=1))
    narrower = server.get("customresourcedefinitions", "widgets.example.com")
    schema = narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"]["minimum"] = 5
    server.update("customresourcedefinitions", narrower)

    changed = server.patch("widgets", "w", {"spec": {"colour": "red", "sise": 2}})

    assert changed["spec"] == {"size": 1, "colour": "red"}


@pytest.mark.parametrize("place", ["items", "additionalProperties", "not", "properties", "allOf"])
@pytest.mark.parametrize("said", [5, [5], {"type": 5}, "x", True], ids=str)
def test_invalid_schema_of_a_crd_is_refused(place: str, said: object) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", place: said}}}
    version = SIZED["spec"]["versions"][0] | {"schema": {"openAPIV3Schema": schema}}

    with pytest.raises(StatusError) as refused:
        ApiServer().create("customresourcedefinitions", SIZED | {"spec": SIZED["spec"] | {"versions": [version]}})

    assert refused.value.code in (400, 422)


def test_invalid_warning_is_left_out_of_headers() -> None:
    assert warning_headers(["a\nb", 'say "c"', "d\x7f"]) == ['299 - "say \\"c\\""']


# Structural schemas.

FIELDS: dict[str, Any] = {
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


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"enum": "a"}),
        ({"enum": None}, {"enum": "a"}),
        ({"nullable": None}, {"enum": "a", "nullable": None}),
        ({"obj": {"y": {}}}, {"enum": "a", "obj": {"x": 3, "y": {"z": "zz"}}}),
        ({"map": [{"k": "a"}, {"k": "b", "n": 2}]}, {"enum": "a", "map": [{"k": "a", "n": 1}, {"k": "b", "n": 2}]}),
    ],
)
def test_defaults_are_applied_at_any_depth(spec: dict[str, Any], expected: Any) -> None:
    obj = widget("w", spec=deepcopy(spec))
    default_fields(obj, SCHEMA)
    assert obj["spec"] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"bool": None}, {}),
        ({"enum": None}, {"enum": None}),  # its default takes the place
        ({"nullable": None}, {"nullable": None}),
        ({"obj": {"y": None}}, {"obj": {}}),
        ({"map": [{"k": None, "n": None}]}, {"map": [{"n": None}]}),
    ],
)
def test_decoding_drops_nulls_that_are_not_allowed(spec: dict[str, Any], expected: Any) -> None:
    obj = widget("w", spec=deepcopy(spec))
    drop_nulls(obj, SCHEMA)
    assert obj["spec"] == expected


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
        {"exc": 0.5, "str": "abcd", "enum": "b", "bool": False, "port": "http", "list": ["a"]},
        {"port": 80, "set": ["a", "b"], "nullable": None, "when": "2026-01-01T00:00:00Z", "exc": 4},
        {"map": [{"k": "a", "n": 1}, {"k": "a", "n": 2}], "add": {"x": 1}, "any": {"b": 1}, "one": {"a": 1}},
    ],
)
def test_valid_object_has_no_causes(spec: dict[str, Any]) -> None:
    assert schema_causes(widget("w", spec=spec), SCHEMA) == []


@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        (5, "FieldValueTypeInvalid", "spec"),
        ({"exc": 7}, "FieldValueInvalid", "spec.exc"),
        ({"str": "abcde"}, "FieldValueTooLong", "spec.str"),
        ({"enum": "c"}, "FieldValueNotSupported", "spec.enum"),
        ({"when": "2026-01-01"}, "FieldValueTypeInvalid", "spec.when"),
        ({"port": True}, "FieldValueTypeInvalid", "spec.port"),
        ({"list": []}, "FieldValueInvalid", "spec.list"),
        ({"list": ["a", "b", "c"]}, "FieldValueTooMany", "spec.list"),
        ({"list": [None]}, "FieldValueTypeInvalid", "spec.list[0]"),
        ({"set": ["a", "a"]}, "FieldValueDuplicate", "spec.set[1]"),
        ({"map": [{"k": "a", "n": 1}, {"k": "a", "n": 1}]}, "FieldValueDuplicate", "spec.map[1]"),
        ({"map": [{"n": 1}]}, "FieldValueRequired", "spec.map[0].k"),
        ({"add": {"a": 0}}, "FieldValueInvalid", "spec.add.a"),
        ({"any": {}}, "FieldValueRequired", "spec.any.a"),
        ({"one": {"a": "1", "b": "2"}}, "FieldValueInvalid", "<nil>"),
        ({"not": "bad"}, "FieldValueInvalid", "<nil>"),
    ],
    ids=str,
)
def test_invalid_object_has_the_cause_of_kube_apiserver(spec: Any, reason: str, field: str) -> None:
    cause = schema_causes(widget("w", spec=spec), SCHEMA)[-1]
    assert (cause.reason, cause.field) == (reason, field)


# Published documents.


def definition(kind: str, scope: str, **version: Any) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": SCHEMA}, **version}]
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {"spec": {"group": "shop.example.com", "scope": scope, "names": names, "versions": versions}}


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_document_of_a_version_is_complete() -> None:
    definitions = [
        definition("Widget", "Namespaced", subresources={"status": {}, "scale": {}}),
        definition("Gadget", "Cluster"),
    ]
    body = custom_documents(definitions)["apis/shop.example.com/v1"].body
    doc = json.loads(body)

    schemas = doc["components"]["schemas"]
    assert {reference.removeprefix("#/components/schemas/") for reference in references(doc)} <= schemas.keys()
    assert {"com.example.shop.v1.Widget", "com.example.shop.v1.Gadget"} <= schemas.keys()
    assert {
        "/apis/shop.example.com/v1/widgets",
        "/apis/shop.example.com/v1/namespaces/{namespace}/widgets",
        "/apis/shop.example.com/v1/gadgets",
    } <= doc["paths"].keys()
    assert b"standin" not in body.lower(), "recorded placeholder names remain"
