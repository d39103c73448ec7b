"""Send one request and read the whole answer, for small objects that are read or written outside the cache."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.backoff import retry_after
from aioinformer.errors import DecodeError
from aioinformer.transport import Request
from aioinformer.transport.list_parser import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.transport import Transport

_JSON = "application/json"
_MAX_BYTES = 1024 * 1024


def json_request(
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    total_timeout: float,
    content_type: str = _JSON,
) -> Request:
    """Return a request that sends and accepts JSON.

    Args:
        method: the HTTP method.
        path: the path on the server.
        body: the object to send, if any.
        total_timeout: seconds for the whole exchange.
        content_type: of the body, such as that of a patch.
    """
    headers = {"Accept": _JSON, "Content-Type": content_type}
    encoded = None if body is None else msgspec.json.encode(body)
    return Request(path, method=method, headers=headers, body=encoded, total_timeout=total_timeout)


async def exchange(transport: Transport, request: Request, what: str) -> dict[str, Any]:
    """Send a request and return the JSON object that the server answers with.

    Args:
        transport: sends the request.
        request: the request.
        what: the kind of the object, for error messages.

    Raises:
        TransportError: no complete answer was received.
        ApiError: the server refused the request.
        DecodeError: the answer is not a JSON object, or is larger than 1 MiB.
    """
    response = await transport.request(request)
    chunks = response.chunks()
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > _MAX_BYTES:
                raise DecodeError(f"the server's answer is larger than {_MAX_BYTES} bytes; expected a {what}")
    finally:
        await response.close()
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()  # otherwise asyncio closes it later, in a task of its own
    if response.status >= 300:
        raise status_error(response.status, bytes(body), retry_after=retry_after(response.headers))
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DecodeError(f"the server's answer is not a JSON object; expected a {what}") from None
