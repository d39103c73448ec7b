"""OpenAPI documents: paths, representations, custom resources."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import DEFINITIONS
from tests.contract.tables import variants
from tests.contract.talk import JSON, MERGE_PATCH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contract.talk import Answer, Talk

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
LEASES = "/openapi/v3/apis/coordination.k8s.io/v1"
OWN = "/openapi/v3/apis/{ns}.example.com/v1"
_GROUP = re.compile("(?:(?<![a-z])r|R)ow[0-9a-fA-F]{8}ExampleCom")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
FIELDS: dict[str, Any] = {
    "text": {"type": "string", "description": "A text.", "minLength": 1, "maxLength": 9, "pattern": "^a"},
    "number": {"type": "number", "format": "double", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.5},
    "choice": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "nullable": {"type": "string", "nullable": True},
    "date": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "port": {"x-kubernetes-int-or-string": True},
    "bounded-port": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+$",
    },
    "open": OPEN,
    "described-open": {**OPEN, "properties": {"known": {"type": "integer"}}},
    "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, **OPEN},
    "described-embedded": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
        "required": ["spec"],
    },
    "parts": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "ref": {"x-kubernetes-int-or-string": True}},
        },
    },
    "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 3},
    "atomic": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
    "atomic-map": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}}},
    "map": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
    "open-map": {"type": "object", "additionalProperties": True},
    "rule": {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.x > 0", "message": "must be more"}],
    },
    "not": {"type": "integer", "not": {"enum": [3]}},
    "one": {"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]},
    "titled": {"type": "object", "title": "T", "externalDocs": {"url": "https://example.com"}, "example": {"x": 1}},
    "default": {"type": "object", "properties": {"x": {"type": "integer"}}, "default": {"x": 1}},
    "large": {"type": "object", "minProperties": 1, "maxProperties": 2, **OPEN},
}
METADATA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "open": OPEN,
    "nothing": {"type": "object"},
    "described": {"type": "object", "description": "A widget.", "properties": {"spec": {"type": "object"}}},
    "names": {"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}},
    "metadata": {"type": "object", "properties": {"metadata": METADATA, "spec": OPEN}},
    "required": {"type": "object", "required": ["spec"], "properties": {"spec": OPEN}},
    **{name: {"type": "object", "properties": {"spec": node}} for name, node in FIELDS.items()},
}


@pytest.fixture(autouse=True)
async def clean(talk: Talk) -> AsyncIterator[None]:
    """Takes the definition of the row away again: it lies outside of its namespace."""
    yield
    await talk("DELETE", f"{DEFINITIONS}/widgets.{talk.namespace}.example.com", kept=False)


def version(name: str = "v1", schema: dict[str, Any] = OPEN, **fields: Any) -> dict[str, Any]:
    told = {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
    return told | fields


async def defined(talk: Talk, *versions: dict[str, Any], **spec: Any) -> None:
    group = f"{talk.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget"}
    told = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions) or [version()], **spec}
    await talk.made(DEFINITIONS, {"metadata": {"name": f"widgets.{group}"}, "spec": told})


async def published(talk: Talk, shown: Any, path: str = OWN) -> Answer:
    await talk.until(path, lambda answer: answer.status == 200, kept=False)
    return await talk("GET", path, shown=shown)


def kinds(document: dict[str, Any]) -> dict[str, Any]:
    """The schemas that are not of every document."""
    schemas = document["components"]["schemas"]
    return {name: schema for name, schema in schemas.items() if not name.startswith("io.k8s.")}


def outline(document: dict[str, Any]) -> Any:
    """Which paths and operations there are, and which schemas."""
    operations = {
        path: {
            method: [told.get("operationId"), told.get("tags"), told.get("x-kubernetes-action")]
            for method, told in item.items()
            if isinstance(told, dict)
        }
        for path, item in document["paths"].items()
    }
    return named({**document, "paths": operations, "components": sorted(document["components"]["schemas"])})


def named(document: Any) -> Any:
    """With one name for the group, wherever it is part of another one."""
    return json.loads(_GROUP.sub(lambda found: "<group>" if found[0][0] == "r" else "<Group>", json.dumps(document)))


@variants("schema", SCHEMAS)
async def test_published_schema_includes_object_metadata(talk: Talk, schema: dict[str, Any]) -> None:
    await defined(talk, version(schema=schema))
    answer = await published(talk, kinds)
    assert "components" in answer.body


async def test_complete_document(talk: Talk) -> None:
    await defined(talk, version(subresources={"status": {}}))
    answer = await published(talk, named)
    assert answer.body["openapi"] == "3.0.0"


SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


@variants(
    "spec",
    {
        "namespaced": {},
        "cluster": {"scope": "Cluster"},
        "scaled": {"versions": [version(subresources={"status": {}, "scale": SCALE})]},
        "names": {
            "names": {
                "plural": "widgets",
                "kind": "Widget",
                "listKind": "Widgetry",
                "singular": "wdgt",
                "shortNames": ["wd"],
            }
        },
        "deprecated": {"versions": [version(deprecated=True)]},
        "preserving": {"preserveUnknownFields": False},
    },
)
async def test_operations_follow_the_crd(talk: Talk, spec: dict[str, Any]) -> None:
    await defined(
        talk, *spec.get("versions", ()), **{name: value for name, value in spec.items() if name != "versions"}
    )
    answer = await published(talk, outline)
    assert answer.status == 200


async def test_each_served_version_has_a_document(talk: Talk) -> None:
    await defined(talk, version(), version("v1beta1"), version("v2alpha1", served=False))
    await published(talk, outline)
    await published(talk, outline, OWN.replace("/v1", "/v1beta1"))
    answer = await talk("GET", OWN.replace("/v1", "/v2alpha1"))
    assert answer.status == 404


async def test_changed_schema_changes_the_document(talk: Talk) -> None:
    await defined(talk, version(schema=SCHEMAS["described"]))
    before = await published(talk, kinds)
    versions = [version(schema=SCHEMAS["text"])]
    change = {"spec": {"versions": versions}}
    await talk("PATCH", f"{DEFINITIONS}/widgets.{{ns}}.example.com", change, content_type=MERGE_PATCH, kept=False)
    await talk.until(OWN, lambda answer: answer.headers.get("ETag") != before.headers["ETag"], kept=False)
    answer = await talk("GET", OWN, shown=kinds)
    assert answer.status == 200


async def test_deleted_crd_has_no_document(talk: Talk) -> None:
    await defined(talk)
    await published(talk, kinds)
    await talk("DELETE", f"{DEFINITIONS}/widgets.{{ns}}.example.com", kept=False)
    await talk.until(OWN, lambda answer: answer.status == 404, kept=False)
    answer = await talk("GET", OWN)
    assert answer.status == 404


async def test_index_contains_the_document_hash(talk: Talk) -> None:
    await defined(talk)
    await published(talk, kinds)
    own = f"apis/{talk.namespace}.example.com/v1"
    await talk.until("/openapi/v3", lambda answer: own in answer.body["paths"], kept=False)
    index = await talk("GET", "/openapi/v3", shown=lambda body: {own: body["paths"][own]})
    talk.words["hash"] = index.body["paths"][own]["serverRelativeURL"].partition("=")[2]
    answer = await talk("GET", OWN + "?hash={hash}", shown=kinds)
    assert answer.headers["ETag"] == f'"{talk.words["hash"]}"'


async def test_etag_is_the_hash_of_the_bytes(talk: Talk) -> None:
    answer = await talk("GET", LEASES, as_text=True, shown=lambda _: None)
    assert len(hashlib.sha512(answer.body.encode()).hexdigest()) == len(answer.headers["ETag"]) - 2


@variants(
    "headers",
    {
        "gzip": {"Accept-Encoding": "gzip"},
        "none": {"Accept-Encoding": "identity"},
        "weak": {"If-None-Match": 'W/"00"'},
        "other": {"If-None-Match": '"00"'},
        "any": {"If-None-Match": "*"},
        "if-match": {"If-Match": '"00"'},
    },
)
async def test_conditional_requests(talk: Talk, headers: dict[str, str]) -> None:
    answer = await talk("GET", LEASES, headers=headers, shown=lambda _: None)
    assert answer.status in (200, 206, 304, 412)


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/openapi/v3", LEASES, "/openapi/v2"], ids=["index", "document", "v2"])
async def test_other_methods_on_documents(talk: Talk, path: str, method: str) -> None:
    answer = await talk(method, path, accept=f"{V2_PROTOBUF},{JSON}", shown=lambda _: None)
    assert answer.status in (200, 404, 405, 406)


@variants(
    "accept",
    {
        "nothing": "",
        "anything": "*/*",
        "json": JSON,
        "protobuf": "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        "old-protobuf": "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        "protobuf-or-json": f"application/com.github.proto-openapi.spec.v3.v1.0+protobuf,{JSON}",
        "any-application": "application/*",
        "yaml": "application/yaml",
        "text": "text/plain",
        "worse": f"{JSON};q=0.1",
        "none": f"{JSON};q=0",
    },
)
@variants("path", {"index": "/openapi/v3", "document": LEASES})
async def test_accept_headers(talk: Talk, path: str, accept: str) -> None:
    answer = await talk("GET", path, accept=accept, shown=lambda _: None)
    assert answer.status in (200, 406)


@variants(
    "accept",
    {
        "nothing": "",
        "anything": "*/*",
        "json": JSON,
        "protobuf": V2_PROTOBUF,
        "old-protobuf": V2_PROTOBUF.replace("v2.v1", "v2@v1"),
        "text": "text/plain",
    },
)
async def test_v2_document_accept_headers(talk: Talk, accept: str) -> None:
    answer = await talk("GET", "/openapi/v2", accept=accept, shown=lambda _: None)
    assert answer.status in (200, 406, 501)


async def test_v2_document_honors_if_none_match(talk: Talk) -> None:
    first = await talk("GET", "/openapi/v2", accept=V2_PROTOBUF, kept=False)
    answer = await talk("GET", "/openapi/v2", accept=V2_PROTOBUF, headers={"If-None-Match": first.headers["ETag"]})
    assert answer.status == 304


@pytest.mark.parametrize(
    "path",
    ["/openapi/v3/", "/openapi/v2/", "/openapi/v3/apis", "/openapi/v3/api", "/openapi/"],
    ids=lambda path: path.strip("/").replace("/", "-"),
)
async def test_other_paths_are_404(talk: Talk, path: str) -> None:
    answer = await talk("GET", path, shown=lambda body: body if isinstance(body, str) else None)
    assert answer.status in (200, 404, 301)


@pytest.mark.parametrize("path", ["/swagger.json", "/swaggerapi"], ids=lambda path: path.strip("/"))
async def test_legacy_swagger_paths(talk: Talk, path: str) -> None:
    answer = await talk("GET", path, shown=lambda body: body if isinstance(body, str) else None)
    assert answer.status in (200, 404)
