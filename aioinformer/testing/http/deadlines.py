"""The time limit of a request: its `timeout`, at most a minute.

It is checked before anything else about a request, even its sender. Long-running requests have none, whatever their
`timeout` says: watches, logs, and streams to containers.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aioinformer.testing.access.attributes import is_stream
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.golike import DurationError, seconds
from aioinformer.testing.api.responses import drop_priority, text_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from aiohttp import web

    from aioinformer.testing.access.rbac import RequestAttributes

_LONGEST = 60.0
# A shorter limit is over before a server can do anything.
_SHORTEST = 1e-4
_MESSAGE = "Timeout: request did not complete within the allotted timeout"


@asynccontextmanager
async def deadline(attributes: RequestAttributes, query: Mapping[str, str]) -> AsyncIterator[None]:
    """Limit the time of the block.

    Raises:
        StatusError: 400, `timeout` is not a duration.
        TimeoutError: the time is over; `timed_out` makes the response.
    """
    if attributes.verb == "watch" or is_stream(attributes):
        yield
        return
    allowed = _LONGEST
    if timeout := query.get("timeout"):
        try:
            allowed = min(seconds(timeout), _LONGEST) or _LONGEST
        except DurationError as error:
            raise _unqueued(statuses.bad_request(f"invalid timeout specified in the request URL - {error}")) from None
        if 0 < allowed < _SHORTEST:
            raise TimeoutError
    async with asyncio.timeout(allowed if allowed > 0 else _LONGEST):
        yield


def timed_out(request: web.BaseRequest) -> web.Response:
    """Return 504. It ignores the requested media type, as in a real server.

    Raises:
        CancelledError: a part of the response has been sent; the connection is cut.
    """
    if request.writer.output_size and request.transport is not None:
        request.transport.abort()
        raise asyncio.CancelledError
    error = statuses.StatusError(504, "Timeout", _MESSAGE, details={})
    body = {name: field for name, field in error.body().items() if name not in ("kind", "apiVersion")}
    answer = text_response(request, encode_plain(body).decode() + "\n", 504)
    drop_priority(answer)
    return answer


def _unqueued(error: statuses.StatusError) -> statuses.StatusError:
    error.queued = False
    return error
