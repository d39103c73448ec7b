"""Validation of CustomResourceDefinitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.contract.paths import DEFINITIONS
from tests.contract.tables import any_of, variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

ANYTHING: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT = {"type": "string"}
Variants = list[dict[str, Any]]


def version(name: str = "v1", schema: dict[str, Any] = ANYTHING, **fields: Any) -> dict[str, Any]:
    return {
        "name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}, **fields,
    }  # fmt: skip


def only(**fields: Any) -> dict[str, Any]:
    return {"versions": [version(**fields)]}


def having(**properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return only(schema=schema)


def listed(kind: str | None = None, items: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "array", "items": items or TEXT, **others}
    if kind is not None:
        node["x-kubernetes-list-type"] = kind
    return having(x=node)


NAMES = {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
KEYED = {"type": "object", "properties": {"k": TEXT}, "required": ["k"]}
CLIENT = {"conversionReviewVersions": ["v1"]}
WRONG: dict[str, Variants] = {
    "names": [{"names": NAMES | each} for each in any_of(
        {"singular": "A_b"}, {"listKind": "a b"}, {"shortNames": ["", "A"]}, {"categories": ["A b"]},
        {"listKind": "Widget"},
    )],
    "groups": [{"group": "nodots"}],
    "versions": [
        {"versions": [version(), version("v2", served=False, storage=True)]},
        {"versions": [version(), version("")]}, {"versions": None},
        only(deprecationWarning="old"), only(deprecated=True, deprecationWarning=""),
        only(deprecated=True, deprecationWarning="a\nb"), {"preserveUnknownFields": True},
    ],
    "conversion": [{"conversion": each} for each in any_of(
        {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
        {"strategy": "Webhook", "webhook": CLIENT},
        {"strategy": "Webhook", "webhook": CLIENT | {"clientConfig": {}}},
        {"strategy": "Webhook", "webhook": CLIENT | {"clientConfig": {"url": "http://a/b"}}},
        {"strategy": "Webhook", "webhook": CLIENT | {"clientConfig": {"service": {"name": "", "namespace": "n"}}}},
        {"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v2", "v2"], "clientConfig": {"url": "https://a/b"},
        }},
    )],
    "scale": [only(subresources={"scale": each}) for each in any_of(
        {"specReplicasPath": "spec.a", "statusReplicasPath": ".spec.b"},
        {"specReplicasPath": ".spec.a[0]", "statusReplicasPath": ".status.b"},
        {"specReplicasPath": ".status.a", "statusReplicasPath": ".status.b", "labelSelectorPath": "a"},
    )],
    "columns": [only(additionalPrinterColumns=[each]) for each in any_of(
        {"name": "", "type": "string", "jsonPath": ".spec.a"}, {"name": "a", "type": "", "jsonPath": ""},
        {"name": "a", "type": "string", "jsonPath": ".spec[", "format": "wrong"},
        {"name": "a", "type": "string", "jsonPath": ".spec.a", "format": "wrong"},
        {"name": "a", "type": "string", "jsonPath": ".spec.a", "priority": -1},
    )],
    "selectable": [having(a=TEXT, b={"type": "object"}) | {"versions": [
        having(a=TEXT, b={"type": "object"})["versions"][0] | {"selectableFields": each}
    ]} for each in any_of(
        [{"jsonPath": ""}], [{"jsonPath": "spec.a"}], [{"jsonPath": ".spec.b"}], [{"jsonPath": ".metadata.name"}],
        [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}], [{"jsonPath": ".spec.a[0]"}],
    )],
    "lists": [
        listed("wrong"), listed("set", {"type": "object", "properties": {"a": TEXT}}),
        listed("map", TEXT, **{"x-kubernetes-list-map-keys": ["k"]}),
        listed("map", KEYED | {"required": []}, **{"x-kubernetes-list-map-keys": ["k"]}),
        listed("map", KEYED, **{"x-kubernetes-list-map-keys": ["other"]}),
        listed("map", KEYED, **{"x-kubernetes-list-map-keys": ["k", "k"]}),
        having(x=TEXT | {"x-kubernetes-list-type": "set"}), having(x=TEXT | {"x-kubernetes-map-type": "atomic"}),
        listed(uniqueItems=True), having(x={"type": "object", "x-kubernetes-map-type": "wrong"}),
    ],
    "structure": [
        having(x={"type": "object", "properties": {"a": {"type": "string", "nullable": True, "default": 1}}}),
        having(x={"x-kubernetes-int-or-string": True, "type": "integer"}),
        having(x={"type": "string", "x-kubernetes-preserve-unknown-fields": True}),
        having(x={"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
        having(x={"type": "object", "x-kubernetes-embedded-resource": True}),
        having(x={"type": "string", "anyOf": [{"type": "integer"}]}),
        having(x={"type": "object", "allOf": [{"properties": {"a": TEXT}}]}),
        having(x={"type": "object", "not": {"default": 1}}),
        having(x={"type": "object", "additionalProperties": False}),
        having(x={"type": "object", "patternProperties": {"a": TEXT}}), having(x={"$ref": "#/a"}),
        having(x={"type": "array", "items": [TEXT]}),
    ],
    "metadata": [only(schema={"type": "object", "properties": {"metadata": each}}) for each in any_of(
        TEXT, {"type": "object", "properties": {"labels": {"type": "object"}}},
        {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}},
    )],
    "root": [
        only(schema={"type": "string"}), only(schema={"type": "object", "nullable": True}),
        only(schema=ANYTHING | {"x-kubernetes-embedded-resource": True}),
        only(schema={}),
    ],
    "values": [having(x=each) for each in any_of(
        TEXT | {"minLength": 5, "maxLength": 1}, TEXT | {"enum": []}, TEXT | {"enum": ["a", "a"]},
        TEXT | {"enum": ["a", 1]}, {"type": "integer", "multipleOf": 0}, TEXT | {"default": None},
        {"type": "object", "properties": {"a": TEXT}, "default": {"b": "c"}},
        TEXT | {"pattern": "(a"},
    )],
}  # fmt: skip


@variants("wrong", WRONG)
async def test_invalid_crds_are_refused(api: Conversation, wrong: Variants) -> None:
    for spec in wrong:
        group = f"{api.namespace}.example.com"
        told: dict[str, Any] = {"group": group, "scope": "Namespaced", "names": NAMES, "versions": [version()]} | spec
        name = f"{told['names']['plural']}.{told['group']}"
        answer = await api("POST", f"{DEFINITIONS}?dryRun=All", {"metadata": {"name": name}, "spec": told})
        assert answer.status in (201, 400, 422), spec
