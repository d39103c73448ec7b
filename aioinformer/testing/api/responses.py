"""HTTP responses: headers, JSON bodies, compression, chunks."""

from __future__ import annotations

import asyncio
import time
import uuid
import zlib
from contextvars import ContextVar
from email.utils import formatdate
from itertools import chain
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.api.encoding import encode_plain, pretty
from aioinformer.testing.api.negotiation import clauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.api.statuses import StatusError

JSON = "application/json"
SERVER_CLOCK: ContextVar[Callable[[], float]] = ContextVar("server_clock", default=time.time)
"""The clock of the server that answers the current request: seconds since 1970."""

# Newer versions of aiohttp warn about string keys, older ones have no other keys.
DEPRECATED: Any = (
    web.RequestKey("aioinformer.deprecated", str) if hasattr(web, "RequestKey") else "aioinformer.deprecated"
)
"""The key of a request for the deprecation warning of its response."""

_COMPRESS_FROM = 128 * 1024
_COMPRESSION = 1


def common_headers(request: web.BaseRequest) -> dict[str, str]:
    """Return the headers of every response. An `Audit-Id` of the request is returned."""
    audit = request.headers.get("Audit-Id") or str(uuid.uuid4())
    warned = request.get(DEPRECATED, "")
    warnings = {"Warning": f'299 - "{warned}"'} if warned else {}
    date = formatdate(SERVER_CLOCK.get()(), usegmt=True)
    return {"Audit-Id": audit, "Cache-Control": "no-cache, private", "Date": date, **warnings}


def status_response(request: web.BaseRequest, error: StatusError) -> web.Response:
    """Return an error as the API reports it."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    return json_response(request, encode_plain(error.body()), status=error.code, headers=headers)


def text_response(request: web.BaseRequest, text: str, status: int = 200) -> web.Response:
    """Return plain text, the form of health checks and unknown paths."""
    return web.Response(
        text=text,
        status=status,
        content_type="text/plain",
        headers={"X-Content-Type-Options": "nosniff", **common_headers(request)},
    )


def json_response(
    request: web.BaseRequest,
    body: bytes,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> web.Response:
    """Return one JSON value, indented if the client prefers that."""
    if wants_pretty(request):
        body = pretty(body)
    elif not body.endswith(b"\n"):
        body += b"\n"
    all_headers = {"Content-Type": JSON, **common_headers(request), **(headers or {})}
    if len(body) > _COMPRESS_FROM and accepts_gzip(request):
        all_headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        compressor = zlib.compressobj(_COMPRESSION, wbits=31)
        body = compressor.compress(body) + compressor.flush()
    return web.Response(body=body, status=status, headers=all_headers)


async def chunked_response(
    request: web.BaseRequest, chunks: Iterator[bytes], headers: dict[str, str] | None = None
) -> web.StreamResponse:
    """Send a list in pieces, so that it neither needs much memory nor blocks the event loop."""
    first = next(chunks)
    second = next(chunks, None)
    if second is None or wants_pretty(request):
        body = b"".join(chain((first, second or b""), chunks))
        return json_response(request, body, headers=headers)
    response = web.StreamResponse(headers={"Content-Type": JSON, **common_headers(request), **(headers or {})})
    compressor = None
    if accepts_gzip(request):
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        compressor = zlib.compressobj(_COMPRESSION, wbits=31)
    await response.prepare(request)
    for chunk in chain((first, second), chunks):
        data = chunk if compressor is None else compressor.compress(chunk)
        if data:
            await response.write(data)
        await asyncio.sleep(0)
    if compressor is not None:
        await response.write(compressor.flush())
    await response.write_eof()
    return response


async def truncated_response(request: web.BaseRequest, chunks: Iterator[bytes]) -> web.StreamResponse:
    """Send the first half of a body, then close the connection."""
    body = b"".join(chunks)
    response = web.StreamResponse(headers={"Content-Type": JSON, **common_headers(request)})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def accepts_gzip(request: web.BaseRequest) -> bool:
    accepted = clauses(request.headers.get("Accept-Encoding") or "identity")
    return any(coding == "gzip" and quality for coding, _, quality in accepted)


def wants_pretty(request: web.BaseRequest) -> bool:
    """Return whether to indent: `pretty` is set, or the client is a tool for people."""
    asked = request.query.get("pretty")
    if asked:
        return asked.lower() not in ("0", "false")
    return request.headers.get("User-Agent", "").startswith(("curl", "Wget", "Mozilla/5.0"))
