"""Discovery: groups, resources, version, health, OpenAPI."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.resources import BUILTIN_RESOURCES
from tests.real.contract.custom_resources import define, version
from tests.real.contract.tables import CONFIGMAPS, DEFINITIONS, variants

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.real.contract.conversation import Answer, Conversation


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = AGGREGATED.replace("v=v2", "v=v2beta1")
VERSIONS = sorted({each.api_version for each in BUILTIN_RESOURCES if each.version in ("v1", "v2")})


async def test_api_groups_are_listed(api: Conversation) -> None:
    answer = await api("GET", "/apis")
    assert answer.body["kind"] == "APIGroupList"


@pytest.mark.parametrize(
    "accept", [AGGREGATED, BETA, f"{AGGREGATED},{BETA},application/json"], ids=["v2", "beta", "client"]
)
@pytest.mark.parametrize("path", ["/api", "/apis"], ids=["core", "groups"])
async def test_aggregated_discovery(api: Conversation, path: str, accept: str) -> None:
    await api("GET", path, accept=accept)


async def test_aggregated_discovery_honors_if_none_match(api: Conversation) -> None:
    answer = await api("GET", "/api", accept=AGGREGATED, recorded=False)
    again = await api("GET", "/api", accept=AGGREGATED, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.replace("/", "."))
async def test_version_lists_its_resources(api: Conversation, version: str) -> None:
    answer = await api("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
    assert answer.body["groupVersion"] == version


async def test_server_version(api: Conversation) -> None:
    answer = await api("GET", "/version")
    assert answer.body["major"] == "1"


@pytest.mark.parametrize("path", ["healthz", "livez", "readyz", "readyz/ping"])
async def test_health_endpoints_return_ok(api: Conversation, path: str) -> None:
    answer = await api("GET", f"/{path}")
    assert answer.body == "ok"


PATHS = {
    "group": "/apis/nothing.example.com",
    "version": "/apis/nothing.example.com/v1",
    "other-version": "/apis/apps/v9",
    "resource": "/api/v1/nothings",
    "cluster-resource-in-namespace": "/api/v1/namespaces/{ns}/nodes",
    "subresource": "/api/v1/namespaces/{ns}/configmaps/a/status",
}


@variants("path", PATHS)
async def test_unknown_paths_are_404(api: Conversation, path: str) -> None:
    await api("GET", path)


@variants(
    "asked",
    {
        "post-to-object": ("POST", f"{CONFIGMAPS}/a"),
        "put-to-list": ("PUT", CONFIGMAPS),
        "patch-of-list": ("PATCH", CONFIGMAPS),
        "delete-of-namespaces": ("DELETE", "/api/v1/namespaces"),
        "post-to-all-namespaces": ("POST", "/api/v1/configmaps"),
    },
)
async def test_unsupported_methods_are_405(api: Conversation, asked: tuple[str, str]) -> None:
    await api(*asked)


async def test_openapi_v3_index(api: Conversation) -> None:
    answer = await api("GET", "/openapi/v3")
    assert "apis/apps/v1" in answer.body["paths"]


async def test_openapi_document_with_its_hash_is_cacheable(api: Conversation) -> None:
    index = await api("GET", "/openapi/v3", recorded=False)
    url = index.body["paths"]["apis/coordination.k8s.io/v1"]["serverRelativeURL"]
    api.variables["hash"] = url.partition("=")[2]
    await api("GET", "/openapi/v3/apis/coordination.k8s.io/v1?hash={hash}", shown=outline)


async def test_openapi_document_honors_if_none_match(api: Conversation) -> None:
    path = "/openapi/v3/apis/coordination.k8s.io/v1"
    first = await api("GET", path, recorded=False)
    answer = await api("GET", path, headers={"If-None-Match": first.headers["ETag"]})
    assert answer.status == 304


def outline(document: Any) -> Any:
    """Return an outline of an OpenAPI document."""
    if not isinstance(document, dict) or "openapi" not in document:
        return document
    schemas = document["components"]["schemas"]
    return {"openapi": document["openapi"], "paths": list(document["paths"]), "schemas": list(schemas)}


OWN = "/openapi/v3/apis/{ns}.example.com/v1"
_GROUP = re.compile("(?:(?<![a-z])r|R)ow[0-9a-fA-F]{8}ExampleCom")
PARTS: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "ref": {"x-kubernetes-int-or-string": True}},
    },
}


@pytest.fixture(autouse=True)
async def clean(api: Conversation) -> AsyncIterator[None]:
    """Delete the CRD of the row, which is cluster-scoped."""
    yield
    await api("DELETE", f"{DEFINITIONS}/widgets.{api.namespace}.example.com", recorded=False)


async def read_document(api: Conversation, shown: Any, path: str = OWN) -> Answer:
    await api.poll(path, lambda answer: answer.status == 200, recorded=False)
    return await api("GET", path, shown=shown)


def kinds(document: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas that not every document has."""
    schemas = document["components"]["schemas"]
    return {name: schema for name, schema in schemas.items() if not name.startswith("io.k8s.")}


def named(document: Any) -> Any:
    """Return a document with a placeholder for the reversed name of the group."""
    return json.loads(_GROUP.sub(lambda found: "<group>" if found[0][0] == "r" else "<Group>", json.dumps(document)))


async def test_published_schema_includes_object_metadata(api: Conversation) -> None:
    await define(api, version(schema={"type": "object", "properties": {"spec": PARTS}}))
    answer = await read_document(api, kinds)
    assert "components" in answer.body


async def test_complete_document(api: Conversation) -> None:
    await define(api, version(subresources={"status": {}}))
    answer = await read_document(api, named)
    assert answer.body["openapi"] == "3.0.0"
