"""Paths: the root, debugging endpoints, unusual and invalid paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.contract.conversation import APPLY, MERGE_PATCH
from tests.contract.paths import CONFIGMAPS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")
ANONYMOUS = "system:anonymous"
LONGEST_SHOWN = 3000
NO_NAMESPACE = "/api/v1/namespaces//configmaps"
ODD = {
    "root": "/",
    "two-slashes": "//",
    "api": "/api",
    "api-slash": "/api/",
    "core": "/api/v1",
    "core-slash": "/api/v1/",
    "no-core": "/api/v2",
    "below-no-core": "/api/v2/pods",
    "upper-case-core": "/api/V1",
    "upper-case-api": "/API/v1",
    "apis": "/apis",
    "apis-slash": "/apis/",
    "no-apis": "/apix",
    "group": "/apis/apps",
    "group-slash": "/apis/apps/",
    "version-of-group": "/apis/apps/v1",
    "no-group": "/apis/nope",
    "version-of-no-group": "/apis/nope/v1",
    "below-no-group": "/apis/nope/v1/x",
    "no-version": "/apis/apps/v9",
    "below-no-version": "/apis/apps/v9/x",
    "version": "/version",
    "version-slash": "/version/",
    "openapi": "/openapi",
    "openapi-slash": "/openapi/",
    "logs": "/logs/",
    "profiles": "/debug/pprof/",
    "no-resource": "/api/v1/nope",
    "upper-case-resource": "/api/v1/namespaces/{ns}/ConfigMaps/a",
    "part-of-no-kind": "/api/v1/namespaces/{ns}/configmaps/a/b",
    "part-of-part": "/api/v1/namespaces/{ns}/configmaps/a/b/c",
    "object-without-namespace": "/api/v1/configmaps/a",
    "namespace-of-nodes": "/api/v1/namespaces/{ns}/nodes",
    "watch-of-nothing": "/api/v1/watch",
    "watch-of-nothing-slash": "/api/v1/watch/",
    "proxy-of-nothing": "/api/v1/proxy",
    "proxy": "/api/v1/proxy/namespaces/{ns}/pods/a",
    "empty-version": "/api//v1",
    "empty-first": "//api/v1",
    "empty-resource": "/api/v1//namespaces",
    "empty-before-resource": "/api/v1/namespaces/{ns}//configmaps",
    "empty-name": "/api/v1/namespaces/{ns}/configmaps//a",
    "slash-in-name": "/api/v1/namespaces/{ns}/configmaps/a%2Fb",
    "slash-in-namespace": "/api/v1/namespaces/{ns}%2Fconfigmaps/a",
    "space": "/api/v1/namespaces/{ns}/configmaps/%20",
    "letter": "/api/v1/namespaces/{ns}/configmaps/%C3%A9",
    "zero": "/api/v1/namespaces/{ns}/configmaps/%00",
    "quotes": "/api/v1/namespaces/{ns}/configmaps/%22%5C%0A",
    "percent": "/api/v1/namespaces/{ns}/configmaps/a%25",
    "plus": "/api/v1/namespaces/{ns}/configmaps/a+b",
    "semicolon": "/api/v1/namespaces/{ns}/configmaps/a;b",
    "colon": "/api/v1/namespaces/{ns}/configmaps/a:b",
    "long-name": f"/api/v1/namespaces/{{ns}}/configmaps/{'x' * 3000}",
}
INSIDE = {
    "metrics": "/metrics",
    "levels": "/metrics/slis",
    "status": "/statusz",
    "flags": "/flagz",
    "issuer": "/.well-known/openid-configuration",
    "keys": "/openid/v1/jwks",
}


def short(body: Any) -> Any:
    """Return a body that is short enough to record."""
    return body if len(json.dumps(body)) < LONGEST_SHOWN else "long"


@variants("path", ODD)
async def test_unusual_paths_with_every_method(api: Conversation, path: str) -> None:
    for method in METHODS:
        answer = await api(method, path, shown=short)
        assert answer.status < 600
    answer = await api("GET", path, user=ANONYMOUS, shown=short)
    assert answer.status in (200, 403, 500)


async def test_root_lists_paths(api: Conversation) -> None:
    answer = await api("GET", "/")
    assert "/readyz/etcd" in answer.body["paths"]


@variants("path", INSIDE)
async def test_debugging_endpoints(api: Conversation, path: str) -> None:
    answer = await api("GET", path, accept="*/*", shown=lambda _: "whatever is inside")
    assert answer.status in (200, 501)
    answer = await api("GET", path, user="nobody")
    assert answer.status == 403


async def test_empty_namespace_in_a_collection_path(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a", "labels": {"row": api.namespace}}})
    own = f"labelSelector=row={api.namespace}"
    answer = await api("GET", f"{NO_NAMESPACE}?{own}")
    assert len(answer.body["items"]) == 1
    answer = await api.watch(f"{NO_NAMESPACE}?watch=1&{own}", events=1)
    assert answer.status == 200
    answer = await api.watch(f"/api/v1/watch/namespaces//configmaps?{own}", events=1)
    assert answer.status == 200
    answer = await api("DELETE", f"{NO_NAMESPACE}?{own}")
    assert answer.status == 400
    answer = await api("DELETE", f"{NO_NAMESPACE}?labelSelector=row=none")
    assert answer.status == 200


async def test_empty_namespace_in_an_object_path_is_refused(api: Conversation) -> None:
    for path in (f"{NO_NAMESPACE}/a", "/apis/apps/v1/namespaces//deployments/a/scale", "/api/v1/namespaces//status"):
        for method in ("GET", "DELETE", "POST"):
            answer = await api(method, path)
            assert answer.status in (400, 405)
    answer = await api("GET", "/api/v1/namespaces//pods/a/log")
    assert answer.status == 400
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    for method, content_type in (("PUT", "application/json"), ("PATCH", MERGE_PATCH), ("PATCH", APPLY)):
        answer = await api(method, f"{NO_NAMESPACE}/a?fieldManager=m", obj, content_type=content_type)
        assert answer.status == 400


async def test_create_with_an_empty_namespace_is_422(api: Conversation) -> None:
    for metadata in ({"name": "a"}, {"name": "a", "namespace": api.namespace}):
        answer = await api("POST", NO_NAMESPACE, {"metadata": metadata})
        assert answer.status == 422


async def test_invalid_names_in_a_path(api: Conversation) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a%"}}
    for method, body, content_type in (
        ("GET", None, ""),
        ("DELETE", None, ""),
        ("PUT", obj, "application/json"),
        ("PATCH", {}, MERGE_PATCH),
        ("PATCH", obj, APPLY),
    ):
        answer = await api(
            method, "/api/v1/namespaces/{ns}/configmaps/a%25?fieldManager=m", body, content_type=content_type
        )
        assert answer.status in (400, 404, 422)
