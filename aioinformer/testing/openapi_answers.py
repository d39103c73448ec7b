"""`/openapi/v2`; `/openapi/v3`, its index, and documents that may be kept as long as their hash is in the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.answers import json_answer, standing_headers
from aioinformer.testing.encoding import encode_plain
from aioinformer.testing.openapi import builtin_documents, custom_documents, index
from aioinformer.testing.openapi_v2 import ACCEPTED, MEDIA_TYPE, document
from aioinformer.testing.routes import UnknownPath
from aioinformer.testing.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def openapi_answer(request: web.BaseRequest, path: str, definitions: Iterable[Mapping[str, Any]]) -> web.StreamResponse:
    """Answers `/openapi/v2`, `/openapi/v3`, and what the index of the latter names.

    Args:
        path: without a slash at the end.
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
    documents = {**builtin_documents(), **custom_documents(definitions)}
    if path == "/openapi/v3":
        return json_answer(request, encode_plain(index(documents.values())))
    found = documents.get(path.removeprefix("/openapi/v3/"))
    if found is None:
        raise UnknownPath(path)
    asked = request.query.get("hash", "")
    if asked and asked != found.hash:
        return web.Response(status=301, headers={"Location": found.url})
    etag = f'"{found.hash}"'
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers={"ETag": etag})
    headers = {"ETag": etag, "Vary": "Accept"}
    if asked:
        headers["Cache-Control"] = "public, immutable"
    return json_answer(request, found.body, headers=headers)
