"""What every transport promises, whichever adapter it is."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from aioinformer.errors import TransportError
from aioinformer.transport import Request
from tests.transport.loopback import Server, Stalled, bearer_only, body, cut, fetch

if TYPE_CHECKING:
    from aioinformer.transport import Transport
    from tests.transport.loopback import MakeTransport


async def test_a_body_is_yielded_as_it_arrives(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(Request("/"))
    chunks = response.chunks()
    assert await anext(chunks) == b"first"
    assert not stalled.gone.is_set()
    stalled.go_on.set()
    assert [chunk async for chunk in chunks] == []


async def test_a_large_body_arrives_whole(transport: Transport, server: Server) -> None:
    sent = bytes(range(256)) * 20_000

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=sent)

    server.answer = answer
    assert await fetch(transport) == sent


@pytest.mark.parametrize("status", [200, 302, 404, 410, 429, 500])
async def test_a_status_is_passed_on_with_its_body(transport: Transport, server: Server, status: int) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, text="why", headers={"Location": "/elsewhere"})

    server.answer = answer
    response = await transport.request(Request("/"))
    assert (response.status, await body(response)) == (status, b"why")
    assert len(server.requests) == 1


async def test_answers_that_announce_a_body_and_have_none_end(transport: Transport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="not sent")

    server.answer = answer
    for _ in range(2):
        response = await transport.request(Request("/", method="HEAD"))
        assert response.headers["content-length"] == "8"
        assert await body(response) == b""


async def test_headers_are_found_in_any_case(transport: Transport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(headers={"Retry-After": "7"})

    server.answer = answer
    response = await transport.request(Request("/"))
    await response.close()
    assert response.headers["retry-after"] == "7"


async def test_path_query_method_headers_and_body_reach_the_server(transport: Transport, server: Server) -> None:
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


async def test_a_get_says_who_asks_and_nothing_about_content(transport: Transport, server: Server) -> None:
    await fetch(transport)
    (got,) = server.requests
    assert got.headers["User-Agent"].startswith("aioinformer")
    assert "Content-Type" not in got.headers


async def test_a_path_in_the_base_url_comes_before_that_of_the_request(
    make_transport: MakeTransport, server: Server
) -> None:
    await fetch(make_transport(f"{server.url}/k8s/clusters/c-1"), "/api/v1/pods")
    assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/pods"


async def test_the_token_is_sent(make_transport: MakeTransport, server: Server) -> None:
    server.answer = bearer_only
    assert await fetch(make_transport(server.url, token="s3cret")) == b"Bearer s3cret"


async def test_a_refusal_with_credentials_that_do_not_change_is_not_tried_again(
    make_transport: MakeTransport, server: Server
) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=401, text="no")

    server.answer = answer
    response = await make_transport(server.url, token="s3cret").request(Request("/"))
    assert (response.status, await body(response)) == (401, b"no")
    assert len(server.requests) == 1


@pytest.mark.parametrize("compression", [True, False])
async def test_gzip_comes_only_when_asked_for_and_is_undone(
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


async def test_closing_in_mid_body_lets_the_connection_go(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(Request("/"))
    await anext(response.chunks())
    await response.close()
    await response.close()
    async with asyncio.timeout(10):
        await stalled.gone.wait()


async def test_closing_ends_a_pending_read(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(Request("/"))
    chunks = response.chunks()
    await anext(chunks)
    pending = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)
    await response.close()
    async with asyncio.timeout(10):
        with pytest.raises(TransportError, match="closed while it was read"):
            await pending


async def test_reading_after_close_is_an_error(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(Request("/"))
    await response.close()
    with pytest.raises(TransportError):
        await anext(response.chunks())


async def test_a_cancelled_read_leaves_a_response_that_can_be_closed(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(Request("/"))
    reader = asyncio.ensure_future(body(response))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await response.close()
    async with asyncio.timeout(10):
        await stalled.gone.wait()


async def test_a_cancelled_request_lets_the_connection_go(transport: Transport, server: Server) -> None:
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


async def test_answers_read_to_their_end_share_one_connection(transport: Transport, server: Server) -> None:
    for _ in range(3):
        await fetch(transport)
    assert len({request.transport for request in server.requests}) == 1


async def test_more_than_a_hundred_watches_run_at_once(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    async with asyncio.timeout(60):
        responses = await asyncio.gather(*(transport.request(Request("/")) for _ in range(120)))
        firsts = await asyncio.gather(*(anext(response.chunks()) for response in responses))
    assert firsts == [b"first"] * 120
    for response in responses:
        await response.close()


async def test_a_refused_connection_is_named_with_server_and_reason(make_transport: MakeTransport) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(TransportError, match=rf"^127\.0\.0\.1:{port}: .*refused") as caught:
        await make_transport(f"http://127.0.0.1:{port}", token="s3cret").request(Request("/"))
    assert isinstance(caught.value.__cause__, OSError)


async def test_a_name_that_does_not_resolve_is_said_to_be_that(make_transport: MakeTransport) -> None:
    with pytest.raises(TransportError, match=r"^nowhere\.invalid:80: the name cannot be resolved"):
        await make_transport("http://nowhere.invalid").request(Request("/"))


async def test_a_body_cut_short_is_an_error(transport: Transport, server: Server) -> None:
    server.answer = cut
    response = await transport.request(Request("/"))
    with pytest.raises(TransportError, match=f"^{server.authority}: .*ended before it was complete"):
        await body(response)


async def test_a_body_that_is_not_what_its_encoding_says_is_an_error(transport: Transport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=b"not gzip at all", headers={"Content-Encoding": "gzip"})

    server.answer = answer
    with pytest.raises(TransportError):
        await fetch(transport)


async def test_a_body_shorter_than_announced_is_an_error(transport: Transport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"short")
        assert request.transport is not None
        request.transport.close()
        return response

    server.answer = answer
    response = await transport.request(Request("/"))
    with pytest.raises(TransportError):
        await body(response)


async def test_a_reset_in_mid_body_is_an_error(transport: Transport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        assert request.transport is not None
        request.transport.abort()
        return response

    server.answer = answer
    response = await transport.request(Request("/"))
    with pytest.raises(TransportError):
        await body(response)


async def test_a_server_that_hangs_up_without_an_answer_is_an_error(transport: Transport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    server.answer = answer
    with pytest.raises(TransportError, match="before it answered"):
        await transport.request(Request("/"))


async def test_a_head_that_does_not_come_is_an_error(make_transport: MakeTransport, server: Server) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    server.answer = answer
    with pytest.raises(TransportError, match="no answer in time"):
        await make_transport(server.url, header_timeout=0.05).request(Request("/"))


async def test_a_head_that_may_come_late_is_waited_for(make_transport: MakeTransport, server: Server) -> None:
    events = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await events.wait()
        return web.Response(text="an event")

    server.answer = answer
    transport = make_transport(server.url, header_timeout=0.05)
    late = asyncio.create_task(transport.request(Request("/late", late_head=True)))
    with pytest.raises(TransportError, match="no answer in time"):
        await transport.request(Request("/"))
    assert not late.done()
    events.set()
    assert await body(await late) == b"an event"


async def test_the_total_timeout_of_a_request_ends_its_body(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(Request("/", total_timeout=0.2))
    with pytest.raises(TransportError, match="in time"):
        await body(response)


async def test_an_answer_that_is_not_http_is_an_error_that_keeps_the_token_to_itself(
    make_transport: MakeTransport,
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(TransportError, match="not HTTP") as caught:
            await make_transport(f"http://127.0.0.1:{port}", token="s3cret").request(Request("/"))
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in repr(error)
        error = error.__cause__ or error.__context__
