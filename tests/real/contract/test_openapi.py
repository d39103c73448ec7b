"""OpenAPI documents: paths, representations, custom resources."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, MERGE_PATCH
from tests.real.contract.paths import DEFINITIONS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Answer, Conversation

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
async def clean(api: Conversation) -> AsyncIterator[None]:
    """Delete the CRD of the row, which is cluster-scoped."""
    yield
    await api("DELETE", f"{DEFINITIONS}/widgets.{api.namespace}.example.com", recorded=False)


def version(name: str = "v1", schema: dict[str, Any] = OPEN, **fields: Any) -> dict[str, Any]:
    told = {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
    return told | fields


async def define(api: Conversation, *versions: dict[str, Any], **spec: Any) -> None:
    group = f"{api.namespace}.example.com"
    names = {"plural": "widgets", "kind": "Widget"}
    told = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions) or [version()], **spec}
    await api.create(DEFINITIONS, {"metadata": {"name": f"widgets.{group}"}, "spec": told})


async def read_document(api: Conversation, shown: Any, path: str = OWN) -> Answer:
    await api.poll(path, lambda answer: answer.status == 200, recorded=False)
    return await api("GET", path, shown=shown)


def kinds(document: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas that not every document has."""
    schemas = document["components"]["schemas"]
    return {name: schema for name, schema in schemas.items() if not name.startswith("io.k8s.")}


def outline(document: dict[str, Any]) -> Any:
    """Return the paths with their operations, and the names of the schemas."""
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
    """Return a document with a placeholder for the reversed name of the group."""
    return json.loads(_GROUP.sub(lambda found: "<group>" if found[0][0] == "r" else "<Group>", json.dumps(document)))


@variants("schema", SCHEMAS)
async def test_published_schema_includes_object_metadata(api: Conversation, schema: dict[str, Any]) -> None:
    await define(api, version(schema=schema))
    answer = await read_document(api, kinds)
    assert "components" in answer.body


async def test_complete_document(api: Conversation) -> None:
    await define(api, version(subresources={"status": {}}))
    answer = await read_document(api, named)
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
async def test_operations_follow_the_crd(api: Conversation, spec: dict[str, Any]) -> None:
    await define(api, *spec.get("versions", ()), **{name: value for name, value in spec.items() if name != "versions"})
    answer = await read_document(api, outline)
    assert answer.status == 200


async def test_each_served_version_has_a_document(api: Conversation) -> None:
    await define(api, version(), version("v1beta1"), version("v2alpha1", served=False))
    await read_document(api, outline)
    await read_document(api, outline, OWN.replace("/v1", "/v1beta1"))
    answer = await api("GET", OWN.replace("/v1", "/v2alpha1"))
    assert answer.status == 404


async def test_changed_schema_changes_the_document(api: Conversation) -> None:
    await define(api, version(schema=SCHEMAS["described"]))
    before = await read_document(api, kinds)
    versions = [version(schema=SCHEMAS["text"])]
    change = {"spec": {"versions": versions}}
    await api("PATCH", f"{DEFINITIONS}/widgets.{{ns}}.example.com", change, content_type=MERGE_PATCH, recorded=False)
    await api.poll(OWN, lambda answer: answer.headers.get("ETag") != before.headers["ETag"], recorded=False)
    answer = await api("GET", OWN, shown=kinds)
    assert answer.status == 200


async def test_deleted_crd_has_no_document(api: Conversation) -> None:
    await define(api)
    await read_document(api, kinds)
    await api("DELETE", f"{DEFINITIONS}/widgets.{{ns}}.example.com", recorded=False)
    await api.poll(OWN, lambda answer: answer.status == 404, recorded=False)
    answer = await api("GET", OWN)
    assert answer.status == 404


async def test_index_contains_the_document_hash(api: Conversation) -> None:
    await define(api)
    await read_document(api, kinds)
    own = f"apis/{api.namespace}.example.com/v1"
    await api.poll("/openapi/v3", lambda answer: own in answer.body["paths"], recorded=False)
    index = await api("GET", "/openapi/v3", shown=lambda body: {own: body["paths"][own]})
    api.variables["hash"] = index.body["paths"][own]["serverRelativeURL"].partition("=")[2]
    answer = await api("GET", OWN + "?hash={hash}", shown=kinds)
    assert answer.headers["ETag"] == f'"{api.variables["hash"]}"'


async def test_etag_is_the_hash_of_the_bytes(api: Conversation) -> None:
    answer = await api("GET", LEASES, as_text=True, shown=lambda _: None)
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
async def test_conditional_requests(api: Conversation, headers: dict[str, str]) -> None:
    answer = await api("GET", LEASES, headers=headers, shown=lambda _: None)
    assert answer.status in (200, 206, 304, 412)


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/openapi/v3", LEASES, "/openapi/v2"], ids=["index", "document", "v2"])
async def test_other_methods_on_documents(api: Conversation, path: str, method: str) -> None:
    answer = await api(method, path, accept=f"{V2_PROTOBUF},{JSON}", shown=lambda _: None)
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
async def test_accept_headers(api: Conversation, path: str, accept: str) -> None:
    answer = await api("GET", path, accept=accept, shown=lambda _: None)
    assert answer.status in (200, 406)


@pytest.mark.parametrize(
    "path",
    ["/openapi/v3/", "/openapi/v2/", "/openapi/v3/apis", "/openapi/v3/api", "/openapi/"],
    ids=lambda path: path.strip("/").replace("/", "-"),
)
async def test_other_paths_are_404(api: Conversation, path: str) -> None:
    answer = await api("GET", path, shown=lambda body: body if isinstance(body, str) else None)
    assert answer.status in (200, 404, 301)


@pytest.mark.parametrize("path", ["/swagger.json", "/swaggerapi"], ids=lambda path: path.strip("/"))
async def test_legacy_swagger_paths(api: Conversation, path: str) -> None:
    answer = await api("GET", path, shown=lambda body: body if isinstance(body, str) else None)
    assert answer.status in (200, 404)
