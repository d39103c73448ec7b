"""Discovery: groups, resources, version, health, OpenAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.paths import CONFIGMAPS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = AGGREGATED.replace("v=v2", "v=v2beta1")
GROUPS = [
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
]


async def test_core_group_lists_its_versions(api: Conversation) -> None:
    answer = await api("GET", "/api")
    assert answer.body["versions"] == ["v1"]


async def test_api_groups_are_listed(api: Conversation) -> None:
    answer = await api("GET", "/apis")
    assert answer.body["kind"] == "APIGroupList"


@pytest.mark.parametrize(
    "accept", [AGGREGATED, BETA, f"{AGGREGATED},{BETA},application/json"], ids=["v2", "beta", "client"]
)
@pytest.mark.parametrize("path", ["/api", "/apis"], ids=["core", "groups"])
async def test_aggregated_discovery(api: Conversation, path: str, accept: str) -> None:
    answer = await api("GET", path, accept=accept)
    assert answer.status in (200, 406)


async def test_aggregated_discovery_honors_if_none_match(api: Conversation) -> None:
    answer = await api("GET", "/api", accept=AGGREGATED, recorded=False)
    again = await api("GET", "/api", accept=AGGREGATED, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304


@pytest.mark.parametrize("group", sorted({version.partition("/")[0] for version in GROUPS}))
async def test_group_lists_its_versions(api: Conversation, group: str) -> None:
    answer = await api("GET", f"/apis/{group}")
    assert answer.body["name"] == group


@pytest.mark.parametrize("version", ["v1", *GROUPS], ids=lambda version: version.replace("/", "."))
async def test_version_lists_its_resources(api: Conversation, version: str) -> None:
    answer = await api("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
    assert answer.body["groupVersion"] == version


async def test_server_version(api: Conversation) -> None:
    answer = await api("GET", "/version")
    assert answer.body["major"] == "1"


@pytest.mark.parametrize("path", ["healthz", "livez", "readyz", "healthz/ping", "livez/ping", "readyz/ping"])
async def test_health_endpoints_return_ok(api: Conversation, path: str) -> None:
    answer = await api("GET", f"/{path}")
    assert answer.body == "ok"


@pytest.mark.parametrize("path", ["healthz/other", "livez/other", "readyz/other", "healthz?exclude=other"])
async def test_unknown_health_check_is_404(api: Conversation, path: str) -> None:
    answer = await api("GET", f"/{path}")
    assert answer.status in (200, 404)


PATHS = {
    "root": "/nothing",
    "group": "/apis/nothing.example.com",
    "version": "/apis/nothing.example.com/v1",
    "resource-of-no-group": "/apis/nothing.example.com/v1/things",
    "other-version": "/apis/apps/v9",
    "other-version-of-core": "/api/v2",
    "resource-of-other-version": "/apis/apps/v9/deployments",
    "resource": "/api/v1/nothings",
    "namespaced-resource": "/api/v1/namespaces/{ns}/nothings",
    "object-of-no-resource": "/api/v1/namespaces/{ns}/nothings/a",
    "resource-of-another-group": "/apis/apps/v1/namespaces/{ns}/configmaps",
    "cluster-resource-in-namespace": "/api/v1/namespaces/{ns}/nodes",
    "object-without-namespace": "/api/v1/configmaps/a",
    "subresource": "/api/v1/namespaces/{ns}/configmaps/a/status",
    "subresource-of-pods": "/api/v1/namespaces/{ns}/pods/a/nothing",
    "too-deep": "/api/v1/namespaces/{ns}/configmaps/a/b/c/d",
    "kind": "/api/v1/namespaces/{ns}/ConfigMap",
    "singular": "/api/v1/namespaces/{ns}/configmap",
    "trailing-slash": "/api/v1/namespaces/{ns}/configmaps/",
    "api-slash": "/api/",
    "apis-slash": "/apis/",
    "group-slash": "/apis/apps/",
    "version-slash": "/apis/apps/v1/",
    "openapi": "/openapi",
    "document": "/openapi/v3/apis/nothing.example.com/v1",
    "watch-of-nothing": "/api/v1/watch/nothings",
    "dots": "/api/v1/namespaces/{ns}/configmaps/..",
}


@variants("path", PATHS)
async def test_unknown_paths_are_404(api: Conversation, path: str) -> None:
    answer = await api("GET", path)
    assert answer.status in (200, 301, 404)


@variants(
    "asked",
    {
        "post-to-object": ("POST", f"{CONFIGMAPS}/a"),
        "put-to-list": ("PUT", CONFIGMAPS),
        "patch-of-list": ("PATCH", CONFIGMAPS),
        "delete-of-namespaces": ("DELETE", "/api/v1/namespaces"),
        "post-to-all-namespaces": ("POST", "/api/v1/configmaps"),
        "delete-of-all-namespaces": ("DELETE", "/api/v1/configmaps"),
        "options-of-list": ("OPTIONS", CONFIGMAPS),
        "options-of-object": ("OPTIONS", f"{CONFIGMAPS}/a"),
        "options-of-discovery": ("OPTIONS", "/apis"),
        "trace": ("TRACE", CONFIGMAPS),
        "post-to-discovery": ("POST", "/apis"),
        "delete-of-version": ("DELETE", "/apis/apps/v1"),
        "post-to-version": ("POST", "/version"),
        "post-to-health": ("POST", "/healthz"),
        "delete-of-status": ("DELETE", "/api/v1/namespaces/{ns}/pods/a/status"),
        "list-of-reviews": ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        "list-of-bindings": ("GET", "/api/v1/namespaces/{ns}/bindings"),
        "post-to-watch": ("POST", "/api/v1/watch/namespaces/{ns}/configmaps"),
    },
)
async def test_unsupported_methods_are_405(api: Conversation, asked: tuple[str, str]) -> None:
    answer = await api(*asked)
    assert answer.status in (200, 404, 405)


@variants(
    "path",
    {
        "list": CONFIGMAPS,
        "object": f"{CONFIGMAPS}/a",
        "missing": f"{CONFIGMAPS}/b",
        "discovery": "/apis/apps/v1",
        "version": "/version",
        "health": "/healthz",
        "nothing": "/nothing",
    },
)
async def test_head_requests(api: Conversation, path: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("HEAD", path)
    assert answer.body == ""


async def test_openapi_v3_index(api: Conversation) -> None:
    answer = await api("GET", "/openapi/v3")
    assert "apis/apps/v1" in answer.body["paths"]


async def test_openapi_document_with_its_hash_is_cacheable(api: Conversation) -> None:
    index = await api("GET", "/openapi/v3", recorded=False)
    url = index.body["paths"]["apis/coordination.k8s.io/v1"]["serverRelativeURL"]
    api.variables["hash"] = url.partition("=")[2]
    answer = await api("GET", "/openapi/v3/apis/coordination.k8s.io/v1?hash={hash}", shown=outline)
    assert answer.status == 200


async def test_openapi_document_with_an_old_hash_redirects(api: Conversation) -> None:
    answer = await api("GET", "/openapi/v3/apis/coordination.k8s.io/v1?hash=00")
    assert answer.status in (200, 301)


async def test_openapi_document_without_a_hash(api: Conversation) -> None:
    answer = await api("GET", "/openapi/v3/apis/coordination.k8s.io/v1", shown=outline)
    assert answer.body["openapi"] == "3.0.0"


async def test_openapi_document_honors_if_none_match(api: Conversation) -> None:
    path = "/openapi/v3/apis/coordination.k8s.io/v1"
    first = await api("GET", path, recorded=False)
    answer = await api("GET", path, headers={"If-None-Match": first.headers["ETag"]})
    assert answer.status == 304


@pytest.mark.parametrize(
    "accept", ["*/*", "application/vnd.kubernetes.protobuf", "text/plain"], ids=["any", "protobuf", "text"]
)
async def test_openapi_document_accept_headers(api: Conversation, accept: str) -> None:
    answer = await api("GET", "/openapi/v3/apis/coordination.k8s.io/v1", accept=accept, shown=outline)
    assert answer.status in (200, 406)


def outline(document: Any) -> Any:
    """Return an outline of an OpenAPI document."""
    if not isinstance(document, dict) or "openapi" not in document:
        return document
    schemas = document["components"]["schemas"]
    return {"openapi": document["openapi"], "paths": list(document["paths"]), "schemas": list(schemas)}
