"""`/openapi/v2`; `/openapi/v3`, its index, and documents that may be kept as long as their hash is in the URL."""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, Any

from aiohttp import web
from multidict import CIMultiDict

from aioinformer.testing.api.answers import JSON, accepts_gzip, json_answer, standing_headers
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.negotiation import clauses
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.http.routes import UnknownPath
from aioinformer.testing.schemas.openapi_v2 import ACCEPTED, MEDIA_TYPE, document
from aioinformer.testing.schemas.openapi_v3 import builtin_documents, custom_documents, index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.api.served import Registry

_JSON_TYPES = ("application/json", "application/*", "*/*")


def openapi_answer(
    request: web.BaseRequest, path: str, registry: Registry, definitions: Iterable[Mapping[str, Any]]
) -> web.StreamResponse:
    """Answers `/openapi/v2`, `/openapi/v3`, and what the index of the latter names.

    Args:
        path: without a slash at the end.
        registry: what is served.
        definitions: the CustomResourceDefinitions of now.

    Raises:
        UnknownPath: there is no such document.
        StatusError: 501, version 2 in JSON.
    """
    if request.path == "/openapi/v2/":
        raise UnknownPath(request.path)
    if path == "/openapi/v2":
        return _older_answer(request, definitions)
    if not f"{path}/".startswith("/openapi/v3/"):
        raise UnknownPath(path)
    built_in = builtin_documents().items()
    documents = {name: document for name, document in built_in if _is_served(registry, name)}
    documents |= custom_documents(definitions)
    if request.path == "/openapi/v3":
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        return json_answer(request, encode_plain(index(documents.values())), headers=headers)
    found = documents.get(path.removeprefix("/openapi/v3/"))
    standing = standing_headers(request)
    if found is None:
        return web.Response(status=404, headers=standing)
    if not any(kind in _JSON_TYPES for kind, _, _ in clauses(request.headers.get("Accept", ""))):
        return web.Response(status=406, headers=standing | {"Vary": "Accept"})
    asked = request.query.get("hash", "")
    if asked and asked != found.hash:
        headers = {"Location": found.url, "Content-Type": JSON, "Vary": "Accept"}
        return web.Response(status=301, headers=standing | headers)
    headers = standing | {"Vary": "Accept"}
    if asked:
        headers["Cache-Control"] = "public, immutable"
    return _under_conditions(request, found.body, JSON, found.hash, headers)


def _older_answer(request: web.BaseRequest, definitions: Iterable[Mapping[str, Any]]) -> web.Response:
    headers = CIMultiDict(standing_headers(request))
    headers.extend([("Vary", "Accept-Encoding"), ("Vary", "Accept")])
    accept = request.headers.get("Accept", "")
    if not any(accepted in accept for accepted in ACCEPTED):
        if any(kind in _JSON_TYPES for kind, _, _ in clauses(accept)):
            why = f"this server has no /openapi/v2 in JSON: ask for {MEDIA_TYPE}, or for /openapi/v3"
            raise StatusError(501, "NotImplemented", why)
        return web.Response(status=406, headers=headers)
    body = document(definitions)
    name = hashlib.sha512(body).hexdigest().upper()
    if accepts_gzip(request) and request.method != "HEAD":
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, 1, mtime=0)
    return _under_conditions(request, body, MEDIA_TYPE, name, headers)


def _under_conditions(
    request: web.BaseRequest, body: bytes, media_type: str, name: str, headers: Mapping[str, str]
) -> web.Response:
    """A document, unless the client has it, or wants another one."""
    told = CIMultiDict(headers)
    told["ETag"] = etag = f'"{name}"'
    if request.headers.get("If-Match", etag) not in (etag, "*"):
        return web.Response(status=412, headers={**told, "Content-Type": media_type})
    if request.headers.get("If-None-Match") in (etag, "*"):
        told.pop("Content-Encoding", None)
        return web.Response(status=304, headers=told)
    told["Content-Type"] = media_type
    return web.Response(body=body, headers=told)


def _is_served(registry: Registry, name: str) -> bool:
    """Whether a document is about what is served: "api", "apis/GROUP" or "apis/GROUP/VERSION"."""
    root, *rest = name.split("/")
    group, versions = ("", rest) if root == "api" else (rest[0] if rest else "", rest[1:])
    known = registry.versions(group)
    return versions[0] in known if versions else bool(known)
