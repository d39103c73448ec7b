"""`/openapi/v2`; `/openapi/v3`, its index, and documents that may be kept as long as their hash is in the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.api.answers import JSON, json_answer, standing_headers
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.negotiation import clauses
from aioinformer.testing.api.routes import UnknownPath
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.openapi.v2 import ACCEPTED, MEDIA_TYPE, document
from aioinformer.testing.openapi.v3 import builtin_documents, custom_documents, index

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
        StatusError: 406, version 2 in another form than protobuf.
    """
    if path == "/openapi/v2":
        if not any(accepted in request.headers.get("Accept", "") for accepted in ACCEPTED):
            message = f"only the following media types are accepted: {MEDIA_TYPE}"
            raise StatusError(406, "NotAcceptable", message, details={})
        return web.Response(
            body=document(definitions), headers={"Content-Type": MEDIA_TYPE, **standing_headers(request)}
        )
    if not f"{path}/".startswith("/openapi/v3/"):
        raise UnknownPath(path)
    built_in = builtin_documents().items()
    documents = {name: document for name, document in built_in if _is_served(registry, name)}
    documents |= custom_documents(definitions)
    if path == "/openapi/v3":
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
    etag = f'"{found.hash}"'
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=standing | {"ETag": etag, "Vary": "Accept"})
    headers = {"ETag": etag, "Vary": "Accept"}
    if asked:
        headers["Cache-Control"] = "public, immutable"
    return json_answer(request, found.body, headers=headers)


def _is_served(registry: Registry, name: str) -> bool:
    """Whether a document is about what is served: "api", "apis/GROUP" or "apis/GROUP/VERSION"."""
    root, *rest = name.split("/")
    group, versions = ("", rest) if root == "api" else (rest[0] if rest else "", rest[1:])
    known = registry.versions(group)
    return versions[0] in known if versions else bool(known)
