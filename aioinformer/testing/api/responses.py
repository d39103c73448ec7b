"""HTTP responses: the form that the client accepts, headers, JSON bodies, compression, chunks."""

from __future__ import annotations

import asyncio
import time
import uuid
import zlib
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import formatdate
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from aiohttp import web

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain, pretty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import StatusError

Form = Literal["object", "partial", "table", "nothing"]

_FORMS: Mapping[str, Form] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}
BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAM_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form of a response.

    Attributes:
        form: whole objects, their metadata only, a table, or a form that watch events cannot have.
        group_version: of metadata and tables, "meta.k8s.io/v1" or the beta.
        of_list: whether the metadata of a list is requested.
    """

    form: Form = "object"
    group_version: str = "meta.k8s.io/v1"
    of_list: bool = False


def negotiate(accept: str, *, watch: bool = False) -> Wanted:
    """Return the first form in an Accept header that the server supports.

    Raises:
        StatusError: 406, none is supported.
    """
    for media_type, params, _ in clauses(accept):
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        if "as" not in params:
            return Wanted()
        kind = params["as"]
        version = params.get("v", "")
        form = _FORMS.get(kind)
        if form is None or params.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
            continue
        of_list = kind == "PartialObjectMetadataList"
        if watch and of_list:
            return Wanted("nothing")
        return Wanted(form, f"meta.k8s.io/{version}", of_list)
    raise _only(_STREAM_TYPES if watch else ("application/json",))


def _only(media_types: tuple[str, ...]) -> statuses.StatusError:
    return statuses.not_acceptable(f"only the following media types are accepted: {', '.join(media_types)}")


def clauses(accept: str) -> list[tuple[str, dict[str, str], float]]:
    """Return media types with their parameters and qualities, best first."""
    found = [_clause(text) for text in (accept or "*/*").split(",") if text.strip()]
    return sorted(found, key=lambda clause: -clause[2])


def check_partial(served: Served, wanted: Wanted, *, is_list: bool) -> None:
    """Refuse the metadata form of one object for a list, and the reverse. It is checked once the response is known.

    Raises:
        StatusError: 406; 500 for a custom resource that is requested as a list.
    """
    if wanted.form != "partial" or wanted.of_list == is_list:
        return
    if served.custom and wanted.of_list:
        raise statuses.StatusError(500, "", "content is not a list")
    kind = "PartialObjectMetadataList" if wanted.of_list else "PartialObjectMetadata"
    found = "a list" if is_list else "not a list"
    raise statuses.not_acceptable(f"you requested {kind}, but the requested object is {found}")


def media_type(header: str) -> str:
    """Return the media type of a Content-Type header, without its parameters."""
    return header.partition(";")[0].strip().lower()


def _clause(text: str) -> tuple[str, dict[str, str], float]:
    name, *rest = text.split(";")
    params = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest)}
    try:
        quality = float(params.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return name.strip().lower(), params, quality


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
