"""Documents about the API: discovery of versions, groups and resources, and OpenAPI with hashes in its URLs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from aiohttp import web
from multidict import CIMultiDict

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.responses import BODY_TYPES, JSON, clauses, common_headers, json_response
from aioinformer.testing.api.routes import UnknownPath
from aioinformer.testing.schemas.openapi_v3 import builtin_documents, custom_documents, index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.api.served import Registry, Served

VERSION: Mapping[str, str] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.4",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26.8",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""The version that this server imitates; the field names are the API's."""

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
#: The document of version 2, without definitions. kubectl asks for it before it reports that a kind is unknown.
_VERSION_2 = b"\n\x032.0\x12\x19\n\nKubernetes\x12\x0bunversioned"
_VERSION_2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_JSON_TYPES = ("application/json", "application/*", "*/*")


def discovery_document(
    registry: Registry, path: str, accept: str, address: str
) -> tuple[Mapping[str, Any], dict[str, str]] | None:
    """Return one discovery document and its headers; None for a group or version that is not served.

    Args:
        path: "/api", "/apis", "/api/v1", "/apis/GROUP" or "/apis/GROUP/VERSION".
        accept: the Accept header, which may ask for aggregated discovery.

    Raises:
        StatusError: 404 for an unknown version of a known group, 406 for an unknown form of discovery.
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) == 1:
        groups = [""] if parts == ["api"] else [group for group in registry.groups() if group]
        if wants_aggregated(accept):
            document = _aggregated(registry, groups)
            etag = hashlib.sha512(encode_plain(document)).hexdigest().upper()
            return document, {
                "Content-Type": AGGREGATED,
                "ETag": f'"{etag}"',
                "Vary": "Accept",
                "Cache-Control": "public",
            }
        if parts == ["api"]:
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}, {}
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(registry, name) for name in groups]}, {}
    group = "" if parts[0] == "api" else parts[1]
    if parts[0] == "apis" and len(parts) == 2:
        if not group or not registry.versions(group):
            return None
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}, {}
    version = parts[-1]
    if version not in registry.versions(group):
        if registry.versions(group):
            raise statuses.resource_not_found()
        return None
    served = registry.of_version(group, version)
    resources = [row for one in served for row in one.entries]
    head: dict[str, Any] = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    return {**head, "groupVersion": f"{group}/{version}" if group else version, "resources": resources}, {}


def _group(registry: Registry, group: str) -> dict[str, Any]:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in registry.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def wants_aggregated(accept: str) -> bool:
    """Return whether the client wants all groups with their resources.

    Raises:
        StatusError: 406, the client accepts only an unknown form.
    """
    for media_type, params, _ in clauses(accept):
        if media_type not in (*BODY_TYPES, "application/*", "*/*"):
            continue
        if "as" not in params:
            return False
        if media_type == "application/json" and {name: params.get(name) for name in _AGGREGATED} == _AGGREGATED:
            return True
    raise statuses.not_acceptable(f"only the following media types are accepted: {', '.join(BODY_TYPES)}")


def _aggregated(registry: Registry, groups: list[str]) -> dict[str, Any]:
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_resource(served) for served in registry.of_version(group, version)],
                    "freshness": "Current",
                }
                for version in registry.versions(group)
            ],
        }
        for group in groups
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _resource(served: Served) -> dict[str, Any]:
    row, *others = served.entries
    resource: dict[str, Any] = {
        "resource": row["name"],
        "responseKind": _response_kind(served, row),
        "scope": "Namespaced" if row["namespaced"] else "Cluster",
        "singularResource": row["singularName"],
        "verbs": row["verbs"],
    }
    for name in ("shortNames", "categories"):
        if name in row:
            resource[name] = row[name]
    if others:
        resource["subresources"] = [
            {
                "subresource": other["name"].partition("/")[2],
                "responseKind": _response_kind(served, other),
                "verbs": other["verbs"],
            }
            for other in others
        ]
    return resource


def _response_kind(served: Served, row: Mapping[str, Any]) -> dict[str, str]:
    # Built-in kinds omit group and version if they equal those of the list; custom ones name them.
    group, version = (served.resource.group, served.resource.version) if served.custom else ("", "")
    return {"group": row.get("group", group), "version": row.get("version", version), "kind": row["kind"]}


def openapi_response(
    request: web.BaseRequest, path: str, registry: Registry, definitions: Iterable[Mapping[str, Any]]
) -> web.StreamResponse:
    """Answer `/openapi/v2`, `/openapi/v3` and the documents of its index.

    Raises:
        UnknownPath: there is no such document.
    """
    if request.path == "/openapi/v2/":
        raise UnknownPath(request.path)
    if path == "/openapi/v2":
        return web.Response(body=_VERSION_2, content_type=_VERSION_2_TYPE, headers=common_headers(request))
    if not f"{path}/".startswith("/openapi/v3/"):
        raise UnknownPath(path)
    built_in = builtin_documents().items()
    documents = {name: document for name, document in built_in if _is_served(registry, name)}
    documents |= custom_documents(definitions)
    if request.path == "/openapi/v3":
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        return json_response(request, encode_plain(index(documents.values())), headers=headers)
    found = documents.get(path.removeprefix("/openapi/v3/"))
    standing = common_headers(request)
    if found is None:
        return web.Response(status=404, headers=standing)
    if not any(kind in _JSON_TYPES for kind, _, _ in clauses(request.headers.get("Accept", ""))):
        return web.Response(status=406, headers=standing | {"Vary": "Accept"})
    requested_hash = request.query.get("hash", "")
    if requested_hash and requested_hash != found.hash:
        headers = {"Location": found.url, "Content-Type": JSON, "Vary": "Accept"}
        return web.Response(status=301, headers=standing | headers)
    headers = standing | {"Vary": "Accept"}
    if requested_hash:
        headers["Cache-Control"] = "public, immutable"
    return _conditional_answer(request, found.body, JSON, found.hash, headers)


def _conditional_answer(
    request: web.BaseRequest, body: bytes, media_type: str, name: str, headers: Mapping[str, str]
) -> web.Response:
    """Answer with the document, or with 304 or 412 as the conditional headers require."""
    response_headers = CIMultiDict(headers)
    etag = f'"{name}"'
    response_headers["ETag"] = etag
    if request.headers.get("If-Match", etag) not in (etag, "*"):
        return web.Response(status=412, headers={**response_headers, "Content-Type": media_type})
    if request.headers.get("If-None-Match") in (etag, "*"):
        response_headers.pop("Content-Encoding", None)
        return web.Response(status=304, headers=response_headers)
    response_headers["Content-Type"] = media_type
    return web.Response(body=body, headers=response_headers)


def _is_served(registry: Registry, name: str) -> bool:
    """Return whether a document ("api", "apis/GROUP" or "apis/GROUP/VERSION") describes served resources."""
    root, *versions = name.split("/")
    group = ""
    if root != "api" and versions:
        group, *versions = versions
    known = registry.versions(group)
    return versions[0] in known if versions else bool(known)
