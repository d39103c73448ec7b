"""One request and its whole answer: for the small objects that parts beside the cache read and write."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.backoff import retry_after
from aioinformer.errors import DecodeError
from aioinformer.transport.list_parser import status_error

if TYPE_CHECKING:
    from aioinformer.transport import Request, Transport

_MOST = 1024 * 1024


async def exchange(transport: Transport, request: Request, what: str) -> dict[str, Any]:
    """Sends a request, and returns the object that the server answers with.

    Args:
        transport: reaches the server.
        request: what to send.
        what: the kind of the object, for errors.

    Raises:
        TransportError: no answer.
        ApiError: the server refuses.
        DecodeError: the answer is no object, or larger than 1 MiB.
    """
    response = await transport.request(request)
    chunks = response.chunks()
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > _MOST:
                raise DecodeError(f"the server answered with something much larger than a {what}")
    finally:
        await response.close()
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()  # or asyncio would do it, some time, in a task of nobody's
    if response.status >= 300:
        raise status_error(response.status, bytes(body), retry_after=retry_after(response.headers))
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DecodeError(f"the server answered with something that is no {what}") from None
