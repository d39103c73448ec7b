from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.resources.catalog import BUILTIN_RESOURCES
from aioinformer.testing.schemas.openapi_v3 import builtin_documents, custom_documents, index, patch_schema

WIDGET: dict[str, Any] = {
    "type": "object",
    "description": "A widget.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "port": {"x-kubernetes-int-or-string": True},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"ref": {"x-kubernetes-int-or-string": True}}},
                },
                "colour": {"type": "string", "nullable": True, "enum": ["red"]},
            },
        }
    },
}


def definition(kind: str = "Widget", scope: str = "Namespaced", **version: Any) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": WIDGET}, **version}]
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {"spec": {"group": "shop.example.com", "scope": scope, "names": names, "versions": versions}}


def document(*definitions: dict[str, Any], path: str = "apis/shop.example.com/v1") -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(custom_documents(definitions)[path].body)
    return decoded


def widget_schema(doc: dict[str, Any], kind: str = "Widget") -> dict[str, Any]:
    found: dict[str, Any] = doc["components"]["schemas"][f"com.example.shop.v1.{kind}"]
    return found


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


class TestBuiltIn:
    def test_every_stable_group_version_has_a_document(self) -> None:
        paths = builtin_documents().keys()

        versions = {resource.api_version for resource in BUILTIN_RESOURCES if resource.version in ("v1", "v2")}
        assert {f"apis/{version}" if "/" in version else f"api/{version}" for version in versions} <= paths

    def test_index_has_the_hash_of_each_document(self) -> None:
        documents = builtin_documents()

        paths = index(documents.values())["paths"]

        assert list(paths) == sorted(documents)
        assert paths["apis/apps/v1"] == {
            "serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={documents['apis/apps/v1'].hash}"
        }

    def test_patch_has_a_field_validation_parameter(self) -> None:
        paths = json.loads(builtin_documents()["apis/apps/v1"].body)["paths"]

        patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
        assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
        assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]


class TestPatchSchemas:
    @pytest.mark.parametrize(
        ("api_version", "kind", "path", "merge_key", "strategy"),
        [
            ("v1", "Pod", ["spec", "containers"], "name", "merge"),
            ("v1", "Service", ["spec", "ports"], "port", "merge"),
            ("v1", "ConfigMap", ["metadata", "ownerReferences"], "uid", "merge"),
            ("v1", "ConfigMap", ["metadata", "finalizers"], "", "merge"),
            ("v1", "Pod", ["spec", "volumes"], "name", "merge"),
            ("apps/v1", "Deployment", ["spec", "strategy"], "", ""),
            ("v1", "Pod", ["spec", "tolerations"], "", ""),
        ],
    )
    def test_patch_strategies_are_read_from_the_schema(
        self, api_version: str, kind: str, path: list[str], merge_key: str, strategy: str
    ) -> None:
        place = patch_schema(api_version, kind)
        for step in path[:-1]:
            assert place is not None
            place, _, _ = place.field(step)
        assert place is not None

        assert place.field(path[-1])[1:] == (merge_key, strategy)

    def test_unknown_kinds_have_no_patch_schema(self) -> None:
        assert patch_schema("shop.example.com/v1", "Widget") is None


class TestCustom:
    def test_every_reference_resolves(self) -> None:
        doc = document(definition(subresources={"status": {}, "scale": {}}), definition("Gadget", "Cluster"))

        names = {reference.removeprefix("#/components/schemas/") for reference in references(doc)}
        assert names <= doc["components"]["schemas"].keys()

    def test_recorded_placeholder_names_do_not_remain(self) -> None:
        bodies = b"".join(
            each.body for each in custom_documents([definition(), definition("Gadget", "Cluster")]).values()
        )

        assert b"standin" not in bodies.lower()

    def test_resources_of_one_version_share_a_document(self) -> None:
        doc = document(definition(), definition("Gadget", "Cluster"))

        assert widget_schema(doc, "Gadget")
        assert {
            "/apis/shop.example.com/v1/widgets",
            "/apis/shop.example.com/v1/namespaces/{namespace}/widgets",
            "/apis/shop.example.com/v1/gadgets",
        } <= doc["paths"].keys()
