"""HttpTransport: borrowed sessions, connection limits, closing, headers, proxies, and its repr."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import Any

import aiohttp
import aiohttp.web
import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer.errors import TransportError, UsageError
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.transport import Request
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.kubernetes import KubernetesTransport
from tests.support.collection import PODS
from tests.support.loopback import Server, Stalled, body, fetch, listening, silent, socket_of


async def test_borrowed_session_stays_open(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        async with HttpTransport(server.url, session) as transport:
            await fetch(transport)
        assert not session.closed


async def test_closed_borrowed_session_raises_with_a_remedy(server: Server) -> None:
    session = aiohttp.ClientSession()
    await session.close()
    with pytest.raises(UsageError, match="keep it open"):
        await HttpTransport(server.url, session).request(Request("/"))


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
        watches = [await patient.request(Request("/")) for _ in range(2)]
        assert caplog.text == ""
        transport = HttpTransport(server.url, session, connect_timeout=0.05)
        for _ in range(2):
            with pytest.raises(TransportError, match=f"the connection timed out; {remedy}"):
                await transport.request(Request("/"))
        (warning,) = caplog.records
        assert re.search(f"a request waits for a connection: {remedy}", warning.getMessage())
        for watch in watches:
            await watch.close()
        await (await patient.request(Request("/"))).close()


async def test_slow_server_is_not_reported_as_full_pool(server: Server) -> None:
    server.answer = silent
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=10)) as session:
        transport = HttpTransport(server.url, session, header_timeout=0.05)
        with pytest.raises(TransportError, match=r"the response timed out$"):
            await transport.request(Request("/"))


async def test_closed_transport_raises(server: Server) -> None:
    transport = HttpTransport(server.url)
    await fetch(transport)
    await transport.aclose()
    await transport.aclose()
    with pytest.raises(UsageError, match="closed"):
        await transport.request(Request("/"))


async def test_aclose_ends_requests_that_wait_for_a_response(server: Server) -> None:
    arrived = asyncio.Event()

    async def answer(request: aiohttp.web.BaseRequest) -> aiohttp.web.StreamResponse:
        arrived.set()
        await asyncio.Event().wait()
        return aiohttp.web.Response()

    server.answer = answer
    transport = HttpTransport(server.url)
    pending = asyncio.ensure_future(transport.request(Request("/")))
    await arrived.wait()
    await transport.aclose()
    async with asyncio.timeout(10):
        with pytest.raises(TransportError):
            await pending


async def test_headers_of_a_request_replace_those_of_the_transport(server: Server) -> None:
    async with HttpTransport(server.url, headers={"accept": "a", "X-Kept": "yes"}) as transport:
        response = await transport.request(Request("/", headers={"Accept": "b"}))
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
            await transport.request(Request("/"))
    assert hasty.asked == 1


async def test_closed_pooled_connection_is_replaced() -> None:
    hasty = Hasty(answers=1)
    async with listening(hasty) as url, HttpTransport(url) as transport:
        assert [await fetch(transport) for _ in range(3)] == [b"hi"] * 3
    assert hasty.asked == 5


async def test_sockets_detect_a_lost_peer_within_90_seconds(server: Server) -> None:
    server.answer = Stalled()
    async with HttpTransport(server.url) as transport:
        response = await transport.request(Request("/"))
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
