"""Clients that ask before they send a body: `Expect: 100-continue`.

The server lets them continue when it wants to read the body: not before the sender and the target are known. A client
whose request is refused earlier need not send the body. The server cannot know whether it does, so the connection is
closed after the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from aiohttp.web import StreamResponse

_CONTINUE = "100-continue"


def expectation_failed(request: web.BaseRequest) -> web.Response | None:
    """Return 417 for any other expectation; None if there is none."""
    if _expected(request) in ("", _CONTINUE):
        return None
    answer = web.Response(status=417)
    answer.force_close()
    return answer


def let_body_come(request: web.BaseRequest) -> None:
    """Send `100 Continue` if the client waits for it."""
    if _expected(request) == _CONTINUE and request.body_exists and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def close_without_body(request: web.BaseRequest, answer: StreamResponse) -> None:
    """Close the connection after the response if the client's body was not read."""
    if _expected(request) == _CONTINUE and request.can_read_body and not answer.prepared:
        answer.force_close()


def _expected(request: web.BaseRequest) -> str:
    return request.headers.get("Expect", "").lower()
