"""The contract of the `Transport` protocol, for each transport."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from aioinformer.errors import TransportError
from aioinformer.transport import Request
from tests.support.loopback import Server, Stalled, body, fetch, listening, respond

if TYPE_CHECKING:
    from aioinformer.transport import Transport
    from tests.support.loopback import MakeTransport


async def test_body_is_yielded_as_it_arrives(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(Request("/"))
    chunks = response.chunks()
    assert await anext(chunks) == b"first"
    assert not stalled.gone.is_set()
    stalled.go_on.set()
    assert [chunk async for chunk in chunks] == []


@pytest.mark.parametrize("status", [200, 302, 401, 404, 410, 429, 500])
async def test_any_status_is_returned_with_its_body(transport: Transport, server: Server, status: int) -> None:
    server.answer = respond(status=status, text="why", headers={"Location": "/elsewhere"})
    response = await transport.request(Request("/"))
    assert (response.status, response.headers["location"], await body(response)) == (status, "/elsewhere", b"why")
    assert len(server.requests) == 1


async def test_response_without_its_announced_body_ends(transport: Transport, server: Server) -> None:
    server.answer = respond(text="not sent")
    for _ in range(2):
        response = await transport.request(Request("/", method="HEAD"))
        assert response.headers["content-length"] == "8"
        assert await body(response) == b""


async def test_server_gets_path_query_method_headers_and_body(transport: Transport, server: Server) -> None:
    seen: list[bytes] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(await request.read())
        return web.Response()

    server.answer = answer
    request = Request(
        "/api/v1/pods/a%2Fb",
        query=(("labelSelector", "a in (b,c),d!=e&f"), ("continue", "x+y/z==")),
        method="POST",
        headers={"Accept": "application/json;as=Table", "Content-Type": "application/json"},
        body=b"{}",
    )
    await (await transport.request(request)).close()
    (got,) = server.requests
    assert got.raw_path.partition("?")[0] == "/api/v1/pods/a%2Fb"
    assert dict(got.query) == dict(request.query)
    assert (got.method, got.headers["Accept"], got.content_type) == (
        "POST",
        "application/json;as=Table",
        "application/json",
    )
    assert seen == [b"{}"]


async def test_get_has_a_user_agent_and_no_content_type(transport: Transport, server: Server) -> None:
    await fetch(transport)
    (got,) = server.requests
    assert got.headers["User-Agent"].startswith("aioinformer")
    assert "Content-Type" not in got.headers


async def test_path_of_the_base_url_precedes_the_request_path(make_transport: MakeTransport, server: Server) -> None:
    await fetch(make_transport(f"{server.url}/k8s/clusters/c-1"), "/api/v1/pods")
    assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/pods"


@pytest.mark.parametrize("compression", [True, False])
async def test_gzip_is_an_option_and_is_decoded(
    make_transport: MakeTransport, server: Server, compression: bool
) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.Response(body=b"a" * 10_000)
        response.enable_compression()
        return response

    server.answer = answer
    response = await make_transport(server.url, compression=compression).request(Request("/"))
    assert await body(response) == b"a" * 10_000
    assert (response.headers.get("Content-Encoding") == "gzip") is compression


async def test_close_in_mid_body_closes_the_connection(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(Request("/"))
    await anext(response.chunks())
    await response.close()
    await response.close()
    async with asyncio.timeout(10):
        await stalled.gone.wait()


async def test_close_ends_a_pending_read(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(Request("/"))
    chunks = response.chunks()
    await anext(chunks)
    pending = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)
    await response.close()
    async with asyncio.timeout(10):
        with pytest.raises(TransportError, match="closed while it was being read"):
            await pending


async def test_cancelled_request_closes_the_connection(transport: Transport, server: Server) -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return web.Response()

    server.answer = answer
    pending = asyncio.ensure_future(transport.request(Request("/")))
    await arrived.wait()
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    async with asyncio.timeout(10):
        await gone.wait()


async def test_more_than_a_hundred_watches_can_be_open(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    async with asyncio.timeout(60):
        watch = Request("/", late_head=True, stream=True)
        responses = await asyncio.gather(*(transport.request(watch) for _ in range(120)))
        firsts = await asyncio.gather(*(anext(response.chunks()) for response in responses))
    assert firsts == [b"first"] * 120
    for response in responses:
        await response.close()


async def test_refused_connection_names_server_and_reason(make_transport: MakeTransport) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(TransportError, match=rf"^127\.0\.0\.1:{port}: .*refused") as caught:
        await make_transport(f"http://127.0.0.1:{port}", token="s3cret").request(Request("/"))
    assert isinstance(caught.value.__cause__, OSError)


async def test_unresolvable_name_is_the_reason(make_transport: MakeTransport) -> None:
    with pytest.raises(TransportError, match=r"^nowhere\.invalid:80: the name cannot be resolved"):
        await make_transport("http://nowhere.invalid").request(Request("/"))


async def test_body_with_invalid_encoding_raises(transport: Transport, server: Server) -> None:
    server.answer = respond(body=b"not gzip at all", headers={"Content-Encoding": "gzip"})
    with pytest.raises(TransportError):
        await fetch(transport)


async def test_late_head_has_no_timeout_if_allowed(make_transport: MakeTransport, server: Server) -> None:
    events = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await events.wait()
        return web.Response(text="an event")

    server.answer = answer
    transport = make_transport(server.url, header_timeout=0.05)
    late = asyncio.create_task(transport.request(Request("/late", late_head=True)))
    with pytest.raises(TransportError, match="the response timed out"):
        await transport.request(Request("/"))
    assert not late.done()
    events.set()
    assert await body(await late) == b"an event"


async def test_total_timeout_includes_the_body(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(Request("/", total_timeout=0.2))
    with pytest.raises(TransportError, match="timed out"):
        await body(response)


async def test_non_http_response_raises_without_the_token(
    make_transport: MakeTransport,
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")

    async with listening(answer) as url:
        with pytest.raises(TransportError, match="not HTTP") as caught:
            await make_transport(url, token="s3cret").request(Request("/"))
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in repr(error)
        error = error.__cause__ or error.__context__
