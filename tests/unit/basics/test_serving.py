"""What an ASGI server sees of the HTTP servers of a manager."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.serving import Answer, WebRequest, answer_asgi


async def ask(scope: dict[str, Any], *bodies: bytes, limit: int = 10) -> tuple[list[WebRequest], list[dict[str, Any]]]:
    """Return the requests that the application saw, and the messages that it sent."""
    seen: list[WebRequest] = []
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    messages.append({"type": "http.request"})

    async def respond(request: WebRequest) -> Answer:
        seen.append(request)
        return Answer(200, "text/plain", await request.read(), {"X-Test": "a"})

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    known = {"type": "http", "method": "POST", "path": "/", "headers": [(b"Host", b"a"), (b"X-B", b"1")]}
    await answer_asgi({**known, **scope}, receive, send, respond, limit)
    return seen, sent


@pytest.mark.parametrize(
    ("scope", "path", "root"),
    [
        ({"path": "/api/report"}, "/api/report", ""),
        ({"path": "/debug/api", "root_path": "/debug"}, "/api", "/debug"),
        ({"path": "/debugger", "root_path": "/debug/"}, "/debugger", "/debug"),
        ({"path": "/debug", "root_path": "/debug"}, "", "/debug"),
    ],
)
async def test_path_is_that_below_the_place_of_the_application(scope: dict[str, Any], path: str, root: str) -> None:
    [request], _ = await ask({**scope, "query_string": b"timeout=5s&a=b", "client": ("::1", 80)})
    assert (request.path, request.root, request.client) == (path, root, "::1")
    assert request.query == {"timeout": "5s", "a": "b"}
    assert request.headers == {"host": "a", "x-b": "1"}


async def test_body_is_read_in_parts_up_to_the_limit() -> None:
    _, sent = await ask({}, b"123", b"456")
    assert sent[0] == {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"text/plain"), (b"x-test", b"a")],
    }
    assert sent[1]["body"] == b"123456"
    _, sent = await ask({}, b"12345678", b"12345678", b"12345678")
    assert sent[1]["body"] == b"1234567812345678"  # the part that exceeds it is the last one


async def test_answer_to_head_has_no_body() -> None:
    _, sent = await ask({"method": "HEAD"}, b"123")
    assert sent[1]["body"] == b""


async def test_lifespan_is_completed_and_websockets_are_closed() -> None:
    _, sent = await ask({"type": "lifespan"}, b"")
    assert [each["type"] for each in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    _, sent = await ask({"type": "websocket"})
    assert sent == [{"type": "websocket.close", "code": 1000}]
