"""`/openapi/v3` over HTTP: the index, and documents that clients may keep as long as their hash is in the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.answers import json_answer
from aioinformer.testing.encoding import encode_plain
from aioinformer.testing.openapi import builtin_documents, custom_documents, index
from aioinformer.testing.routes import UnknownPath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def openapi_answer(request: web.BaseRequest, path: str, definitions: Iterable[Mapping[str, Any]]) -> web.StreamResponse:
    """Answers `/openapi/v3` and what its index names.

    Args:
        path: without a slash at the end.
        definitions: the CustomResourceDefinitions of now.

    Raises:
        UnknownPath: there is no such document.
    """
    documents = {**builtin_documents(), **custom_documents(definitions)}
    if path == "/openapi/v3":
        return json_answer(request, encode_plain(index(documents.values())))
    document = documents.get(path.removeprefix("/openapi/v3/"))
    if document is None:
        raise UnknownPath(path)
    asked = request.query.get("hash", "")
    if asked and asked != document.hash:
        return web.Response(status=301, headers={"Location": document.url})
    etag = f'"{document.hash}"'
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers={"ETag": etag})
    headers = {"ETag": etag, "Vary": "Accept"}
    if asked:
        headers["Cache-Control"] = "public, immutable"
    return json_answer(request, document.body, headers=headers)
