"""Clients that ask whether they may send a body before they do: `Expect: 100-continue`.

They are told to go on when somebody wants to read it: not before it is known who asks, and for what. Whoever is refused
until then need not send it; as nobody knows whether he does, the connection ends with the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from aiohttp.web import StreamResponse

_CONTINUE = "100-continue"


def expectation_failed(request: web.BaseRequest) -> web.Response | None:
    """417 for whoever expects anything else of a server."""
    if _expected(request) in ("", _CONTINUE):
        return None
    answer = web.Response(status=417)
    answer.force_close()
    return answer


def let_body_come(request: web.BaseRequest) -> None:
    """Tells a client to go on, if it waits for that."""
    if _expected(request) == _CONTINUE and request.body_exists and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def close_without_body(request: web.BaseRequest, answer: StreamResponse) -> None:
    """Ends the connection after an answer to a client whose body nobody has read."""
    if _expected(request) == _CONTINUE and request.can_read_body and not answer.prepared:
        answer.force_close()


def _expected(request: web.BaseRequest) -> str:
    return request.headers.get("Expect", "").lower()
