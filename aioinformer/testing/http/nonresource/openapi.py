"""`/openapi/v2` and `/openapi/v3`: the index, and documents that clients may cache while their hash is in the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web
from multidict import CIMultiDict

from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.negotiation import clauses
from aioinformer.testing.api.responses import JSON, common_headers, json_response
from aioinformer.testing.api.routes import UnknownPath
from aioinformer.testing.schemas.openapi_v3 import builtin_documents, custom_documents, index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.api.served import Registry

#: The document of version 2, without definitions. kubectl asks for it before it reports that a kind is unknown.
_VERSION_2 = b"\n\x032.0\x12\x19\n\nKubernetes\x12\x0bunversioned"
_VERSION_2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_JSON_TYPES = ("application/json", "application/*", "*/*")


def openapi_response(
    request: web.BaseRequest, path: str, registry: Registry, definitions: Iterable[Mapping[str, Any]]
) -> web.StreamResponse:
    """Answer `/openapi/v2`, `/openapi/v3` and the documents of its index.

    Args:
        path: without a trailing slash.
        registry: the served resources.
        definitions: the current CustomResourceDefinitions.

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
    response_headers["ETag"] = etag = f'"{name}"'
    if request.headers.get("If-Match", etag) not in (etag, "*"):
        return web.Response(status=412, headers={**response_headers, "Content-Type": media_type})
    if request.headers.get("If-None-Match") in (etag, "*"):
        response_headers.pop("Content-Encoding", None)
        return web.Response(status=304, headers=response_headers)
    response_headers["Content-Type"] = media_type
    return web.Response(body=body, headers=response_headers)


def _is_served(registry: Registry, name: str) -> bool:
    """Return whether a document ("api", "apis/GROUP" or "apis/GROUP/VERSION") describes served resources."""
    root, *rest = name.split("/")
    group, versions = ("", rest) if root == "api" else (rest[0] if rest else "", rest[1:])
    known = registry.versions(group)
    return versions[0] in known if versions else bool(known)
