"""The contract of each transport, and what HttpTransport does beyond it."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import TYPE_CHECKING, Any

import aiohttp
import aiohttp.web
import pytest
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import HttpTransport, ListWatch
from aioinformer.errors import TransportError, UsageError
from aioinformer.transport import HttpRequest, KubernetesTransport
from tests.support.collection import PODS
from tests.support.loopback import Server, Stalled, body, fetch, listening, respond, silent, socket_of

if TYPE_CHECKING:
    from aioinformer.transport import Transport
    from tests.support.loopback import MakeTransport


async def test_borrowed_session_stays_open(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        async with HttpTransport(server.url, session) as transport:
            await fetch(transport)
        assert not session.closed


async def test_closed_borrowed_session_raises_with_a_remedy(server: Server) -> None:
    session = aiohttp.ClientSession()
    await session.close()
    with pytest.raises(UsageError, match="keep it open"):
        await HttpTransport(server.url, session).request(HttpRequest("/"))


@pytest.mark.parametrize(("option", "limit", "limit_per_host"), [("limit", 2, 0), ("limit_per_host", 100, 2)])
async def test_full_pool_of_a_borrowed_session_is_the_reason(
    server: Server, caplog: pytest.LogCaptureFixture, option: str, limit: int, limit_per_host: int
) -> None:
    server.answer = Stalled()
    remedy = (
        rf"all connections that {option}=2 allows .* each watch holds one; make it with aiohttp.TCPConnector\(limit=0"
    )
    connector = aiohttp.TCPConnector(limit=limit, limit_per_host=limit_per_host)
    async with aiohttp.ClientSession(connector=connector) as session:
        patient = HttpTransport(server.url, session)
        watches = [await patient.request(HttpRequest("/")) for _ in range(2)]
        assert caplog.text == ""
        transport = HttpTransport(server.url, session, connect_timeout=0.05)
        for _ in range(2):
            with pytest.raises(TransportError, match=f"the connection timed out; {remedy}"):
                await transport.request(HttpRequest("/"))
        (warning,) = caplog.records
        assert re.search(f"a request waits for a connection: {remedy}", warning.getMessage())
        for watch in watches:
            await watch.close()
        await (await patient.request(HttpRequest("/"))).close()


async def test_slow_server_is_not_reported_as_full_pool(server: Server) -> None:
    server.answer = silent
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=10)) as session:
        transport = HttpTransport(server.url, session, header_timeout=0.05)
        with pytest.raises(TransportError, match=r"the response timed out$"):
            await transport.request(HttpRequest("/"))


async def test_closed_transport_raises(server: Server) -> None:
    transport = HttpTransport(server.url)
    await fetch(transport)
    await transport.aclose()
    await transport.aclose()
    with pytest.raises(UsageError, match="closed"):
        await transport.request(HttpRequest("/"))


async def test_aclose_ends_requests_that_wait_for_a_response(server: Server) -> None:
    arrived = asyncio.Event()

    async def answer(request: aiohttp.web.BaseRequest) -> aiohttp.web.StreamResponse:
        arrived.set()
        await asyncio.Event().wait()
        return aiohttp.web.Response()

    server.answer = answer
    transport = HttpTransport(server.url)
    pending = asyncio.ensure_future(transport.request(HttpRequest("/")))
    await arrived.wait()
    await transport.aclose()
    async with asyncio.timeout(50):
        with pytest.raises(TransportError):
            await pending


async def test_headers_of_a_request_replace_those_of_the_transport(server: Server) -> None:
    async with HttpTransport(server.url, headers={"accept": "a", "X-Kept": "yes"}) as transport:
        response = await transport.request(HttpRequest("/", headers={"Accept": "b"}))
        await body(response)
    (got,) = server.requests
    assert (got.headers.getall("Accept"), got.headers["X-Kept"]) == (["b"], "yes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": None}, "base_url: expected the URL of the server, https://host:6443, not NoneType"),
        ({"base_url": "https://host", "session": "token"}, "session: expected an aiohttp.ClientSession, not str"),
        ({"base_url": "ftp://host"}, "base_url must begin with http"),
        ({"base_url": "host:6443"}, "base_url must begin with http"),
        ({"base_url": "https://"}, "base_url"),
        ({"base_url": "https://me:s3cret@host"}, "base_url must not hold a user"),
        ({"base_url": "https://host?x=1"}, "query"),
        ({"base_url": "https://host", "token": "s3cret", "token_file": "f"}, "pass only one of them"),
        ({"base_url": "https://host", "token": "two s3cret"}, "token holds something"),
    ],
)
def test_invalid_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        HttpTransport(**arguments)
    assert "s3cret" not in str(caught.value)


async def test_header_with_a_line_break_raises(server: Server) -> None:
    async with HttpTransport(server.url, headers={"X-Note": "s3cret\r\nX-Other: 1"}) as transport:
        with pytest.raises(UsageError, match="cannot be sent") as caught:
            await fetch(transport)
    assert "s3cret" not in str(caught.value)


async def test_ipv6_server_is_named_with_brackets() -> None:
    with socket.socket(socket.AF_INET6) as unused:
        unused.bind(("::1", 0))
        port = unused.getsockname()[1]
    async with HttpTransport(f"http://[::1]:{port}") as transport:
        with pytest.raises(TransportError, match=rf"^\[::1\]:{port}: "):
            await fetch(transport)


async def test_proxy_gets_the_request(server: Server) -> None:
    async with HttpTransport("http://api.invalid:8080", proxy=server.url) as transport:
        assert await fetch(transport, "/api/v1/pods") == b"ok"
    assert server.requests[0].headers["Host"] == "api.invalid:8080"


class Hasty:
    """A server that answers some requests of each connection, then closes it without a response."""

    def __init__(self, answers: int) -> None:
        self.asked = 0
        self._answers = answers

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(self._answers):
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1


async def test_request_is_sent_once_if_the_server_closes() -> None:
    hasty = Hasty(answers=0)
    async with listening(hasty) as url, HttpTransport(url) as transport:
        with pytest.raises(TransportError, match="before it answered"):
            await transport.request(HttpRequest("/"))
    assert hasty.asked == 1


async def test_closed_pooled_connection_is_replaced() -> None:
    hasty = Hasty(answers=1)
    async with listening(hasty) as url, HttpTransport(url) as transport:
        assert [await fetch(transport) for _ in range(3)] == [b"hi"] * 3
    assert hasty.asked == 5


async def test_sockets_detect_a_lost_peer_within_90_seconds(server: Server) -> None:
    server.answer = Stalled()
    async with HttpTransport(server.url) as transport:
        response = await transport.request(HttpRequest("/"))
        opened = socket_of(response)
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options = {
            name: opened.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            if hasattr(socket, name)
        }
        idle = options.get("TCP_KEEPIDLE", options.get("TCP_KEEPALIVE", 30))
        assert idle + options.get("TCP_KEEPINTVL", 15) * options.get("TCP_KEEPCNT", 4) == 90
        assert options.get("TCP_USER_TIMEOUT", 90_000) == 90_000
        await response.close()


# The repr shows the server, and no credential.


async def test_repr_shows_the_server_and_no_credential() -> None:
    async with HttpTransport(
        "https://api:6443/base", token="secret", headers={"X": "secret"}, proxy="http://user:secret@proxy:1"
    ) as transport:
        assert repr(transport) == "<HttpTransport https://api:6443/base>"
        assert repr(ListWatch(transport, PODS, "team", label_selector="app=web")) == (
            "<ListWatch v1/pods, namespace=team, label_selector=app=web>"
        )
    assert repr(transport) == "<HttpTransport https://api:6443/base, closed>"


async def test_repr_shows_the_host_of_an_api_client() -> None:
    configuration = Configuration(host="https://api:6443", api_key={"BearerToken": "secret"})
    async with ApiClient(configuration) as client, KubernetesTransport(client) as transport:
        assert repr(transport) == "<KubernetesTransport https://api:6443>"


# The contract of the `Transport` protocol, for each transport.


async def test_body_is_yielded_as_it_arrives(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(HttpRequest("/"))
    chunks = response.chunks()
    assert await anext(chunks) == b"first"
    assert not stalled.gone.is_set()
    stalled.go_on.set()
    assert [chunk async for chunk in chunks] == []


@pytest.mark.parametrize("status", [200, 302, 401, 404, 410, 429, 500])
async def test_any_status_is_returned_with_its_body(transport: Transport, server: Server, status: int) -> None:
    server.answer = respond(status=status, text="why", headers={"Location": "/elsewhere"})
    response = await transport.request(HttpRequest("/"))
    assert (response.status, response.headers["location"], await body(response)) == (status, "/elsewhere", b"why")
    assert len(server.requests) == 1


async def test_response_without_its_announced_body_ends(transport: Transport, server: Server) -> None:
    server.answer = respond(text="not sent")
    for _ in range(2):
        response = await transport.request(HttpRequest("/", method="HEAD"))
        assert response.headers["content-length"] == "8"
        assert await body(response) == b""


async def test_server_gets_path_query_method_headers_and_body(transport: Transport, server: Server) -> None:
    seen: list[bytes] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(await request.read())
        return web.Response()

    server.answer = answer
    request = HttpRequest(
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
    response = await make_transport(server.url, compression=compression).request(HttpRequest("/"))
    assert await body(response) == b"a" * 10_000
    assert (response.headers.get("Content-Encoding") == "gzip") is compression


async def test_close_in_mid_body_closes_the_connection(transport: Transport, server: Server) -> None:
    server.answer = stalled = Stalled()
    response = await transport.request(HttpRequest("/"))
    await anext(response.chunks())
    await response.close()
    await response.close()
    async with asyncio.timeout(50):
        await stalled.gone.wait()


async def test_close_ends_a_pending_read(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(HttpRequest("/"))
    chunks = response.chunks()
    await anext(chunks)
    pending = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)
    await response.close()
    async with asyncio.timeout(50):
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
    pending = asyncio.ensure_future(transport.request(HttpRequest("/")))
    await arrived.wait()
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    async with asyncio.timeout(50):
        await gone.wait()


async def test_more_than_a_hundred_watches_can_be_open(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    async with asyncio.timeout(60):
        watch = HttpRequest("/", late_head=True, stream=True)
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
        await make_transport(f"http://127.0.0.1:{port}", token="s3cret").request(HttpRequest("/"))
    assert isinstance(caught.value.__cause__, OSError)


async def test_unresolvable_name_is_the_reason(make_transport: MakeTransport) -> None:
    with pytest.raises(TransportError, match=r"^nowhere\.invalid:80: the name cannot be resolved"):
        await make_transport("http://nowhere.invalid").request(HttpRequest("/"))


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
    late = asyncio.create_task(transport.request(HttpRequest("/late", late_head=True)))
    with pytest.raises(TransportError, match="the response timed out"):
        await transport.request(HttpRequest("/"))
    assert not late.done()
    events.set()
    assert await body(await late) == b"an event"


async def test_total_timeout_includes_the_body(transport: Transport, server: Server) -> None:
    server.answer = Stalled()
    response = await transport.request(HttpRequest("/", total_timeout=0.2))
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
            await make_transport(url, token="s3cret").request(HttpRequest("/"))
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in repr(error)
        error = error.__cause__ or error.__context__
