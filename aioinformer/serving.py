"""The HTTP servers of a manager: what they answer is plain data, to aiohttp at a port, or as an ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from aioinformer.concurrency import create_task
from aioinformer.logs import without_values
from aioinformer.transport.auth.secret import PrivateDict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web


async def _nothing() -> bytes:
    return b""


def joined_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers of a request by name in lower case; `repr` hides their values.

    The values of a header that was sent several times are separated by line feeds, which a value cannot contain; those
    of Cookie are separated as in one header, as HTTP/2 requires.
    """
    found = PrivateDict()
    for name, value in headers:
        key = name.lower()
        separator = "; " if key == "cookie" else "\n"
        found[key] = f"{found[key]}{separator}{value}" if key in found else value
    return found


class WebRequest(msgspec.Struct, frozen=True):
    """A request. Its headers are those of `joined_headers`.

    Attributes:
        path: below the place where the application is mounted.
        client: the address of the peer; "" if it is not known.
        root: where an ASGI server has mounted the application: "/debug".
        read: returns the body, of which more than the limit of the server is not read.
    """

    method: str
    path: str
    headers: Mapping[str, str] = {}
    client: str = ""
    query: Mapping[str, str] = {}
    root: str = ""
    read: Callable[[], Awaitable[bytes]] = _nothing

    def __repr__(self) -> str:
        return without_values(self)


class Answer(msgspec.Struct, frozen=True):
    """An answer: all of its body, or a stream of the parts that follow."""

    status: int
    content_type: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    stream: AsyncIterator[bytes] | None = None

    def __repr__(self) -> str:
        return without_values(self)

    def all_headers(self) -> dict[str, str]:
        """Return the headers with the type."""
        return {"Content-Type": self.content_type, **self.headers}


Respond: TypeAlias = Callable[[WebRequest], Awaitable[Answer]]


async def answer_asgi(scope: Any, receive: Any, send: Any, respond: Respond, limit: int) -> None:
    """Answer a request as an ASGI application, with a body of at most `limit` bytes."""
    if scope["type"] == "lifespan":
        for each in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{each}.complete"})
        return
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1000})
        return

    async def read() -> bytes:
        found = b""
        more = True
        while more and len(found) <= limit:
            message = await receive()
            found += message.get("body", b"")
            more = message.get("more_body", False)
        return found

    headers = joined_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    root = scope.get("root_path", "").rstrip("/")
    path = scope["path"]
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    client = (scope.get("client") or ("",))[0]
    query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
    answer = await respond(WebRequest(scope["method"], path, headers, client, query, root, read))
    names = [(name.lower().encode(), value.encode()) for name, value in answer.all_headers().items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": names})
    if answer.stream is None:
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
        return
    gone = create_task(_until_gone(receive), name=f"reader of {path}")
    try:
        async for chunk in answer.stream:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if gone.done():
                break
        else:
            await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()
        await answer.stream.aclose()  # type: ignore[attr-defined]


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def aiohttp_application(
    respond: Respond, limit: int, read: Callable[[web.Request], Awaitable[bytes]] | None = None
) -> web.Application:
    """Return an aiohttp application that answers all requests, with bodies of at most `limit` bytes.

    Args:
        read: returns the body of a request; by default, aiohttp reads it.
    """
    from aiohttp import web

    async def handle(request: web.Request) -> web.StreamResponse:
        headers = joined_headers(request.headers.items())
        path = request.match_info["path"]
        client = request.remote or ""
        query = dict(request.query)
        body = request.read if read is None else partial(read, request)
        answer = await respond(WebRequest(request.method, path, headers, client, query, read=body))
        if answer.stream is None:
            return web.Response(status=answer.status, body=answer.body, headers=answer.all_headers())
        response = web.StreamResponse(status=answer.status, headers=answer.all_headers())
        try:
            await response.prepare(request)
            async for chunk in answer.stream:
                await response.write(chunk)
        except ConnectionError:
            pass  # the reader has gone
        finally:
            await answer.stream.aclose()  # type: ignore[attr-defined]
        return response

    app = web.Application(client_max_size=limit)
    app.router.add_route("*", "/{path:.*}", handle)
    return app
