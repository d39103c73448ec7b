"""How long a request may take: as its `timeout` says, a minute at most.

This is looked at before anything else about a request, who sent it included. What takes its time by nature is spared,
with all that is said of its `timeout`: watches, logs, and streams to containers.
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
# In less than that no server does anything.
_SHORTEST = 1e-4
_MESSAGE = "Timeout: request did not complete within the allotted timeout"


@asynccontextmanager
async def deadline(attributes: RequestAttributes, query: Mapping[str, str]) -> AsyncIterator[None]:
    """The time that a request may take.

    Raises:
        StatusError: 400, `timeout` is no length of time.
        TimeoutError: it is over; `timed_out` says so.
    """
    if attributes.verb == "watch" or is_stream(attributes):
        yield
        return
    allowed = _LONGEST
    if said := query.get("timeout"):
        try:
            allowed = min(seconds(said), _LONGEST) or _LONGEST
        except DurationError as error:
            raise _unqueued(statuses.bad_request(f"invalid timeout specified in the request URL - {error}")) from None
        if 0 < allowed < _SHORTEST:
            raise TimeoutError
    async with asyncio.timeout(allowed if allowed > 0 else _LONGEST):
        yield


def timed_out(request: web.BaseRequest) -> web.Response:
    """504 as it comes from those who watch the clock: they know neither versions nor media types.

    Raises:
        CancelledError: a part of the answer has gone; the connection is cut.
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
