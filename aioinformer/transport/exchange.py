"""Send one request and read the whole answer, for small answers of any kind; `aioinformer.client` reads objects."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.backoff import retry_after
from aioinformer.errors import DecodeError
from aioinformer.transport.list_parser import status_error

if TYPE_CHECKING:
    from aioinformer.transport import Request, Transport

_MAX_BYTES = 1024 * 1024


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
