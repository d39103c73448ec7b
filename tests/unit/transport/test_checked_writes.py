"""Checked writes without an answer: the kernel discards what it holds of them when they end, and of no others.

The server here reads nothing of a request until the request has ended, so most of it waits in the kernel of the client.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import HttpTransport
from aioinformer.errors import TransportError
from aioinformer.transport import TLS, HttpRequest, KubernetesTransport, SendCheck
from tests.support.loopback import Server, body, certified, ok, socket_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.transport import Transport

#: The kernel takes the first one as a whole. The other one is being sent when its request ends.
BODIES = {"sent": b"x" * 8192, "being sent": b"x" * 1_000_000}


HEAD, BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"{}"


class Unread:
    """Accepts one connection, answers one request on it, and reads nothing more until `rest`.

    Attributes:
        url: of the server. With `proxy`, this is an HTTP proxy on the way to it.
        seen: set it to get the body of the first answer.
    """

    def __init__(self, tls: ssl.SSLContext | None, *, proxy: bool) -> None:
        self._tls = tls
        self._proxy = proxy
        self.seen = threading.Event()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.settimeout(20)
        self._listener.listen()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"{'http' if tls is None else 'https'}://{'127.0.0.1:9' if proxy else self.address}"

    def accept(self) -> socket.socket:
        """Return the connection, of which the server has read the first request."""
        connection, _ = self._listener.accept()
        connection.settimeout(20)
        self._listener.close()
        if self._proxy:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if self._tls is None:
            self._answer(connection)
            return connection
        encrypted = self._tls.wrap_socket(connection, server_side=True)
        self._answer(encrypted)
        plain = socket.socket(fileno=encrypted.detach())
        plain.settimeout(20)
        return plain

    def _answer(self, connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(HEAD)
        self.seen.wait(20)
        connection.sendall(BODY)


def rest(connection: socket.socket) -> tuple[int, bool]:
    """Read a connection to its end; return the number of bytes, and whether it was reset."""
    size = 0
    with connection:
        try:
            while read := connection.recv(65536):
                size += len(read)
        except ConnectionResetError:
            return size, True
    return size, False


@asynccontextmanager
async def connected(kind: str, server: Unread, settings: TLS) -> AsyncIterator[Transport]:
    proxy = f"http://{server.address}" if kind == "proxy" else None
    async with AsyncExitStack() as stack:
        if kind == "kubernetes_asyncio":
            configuration = Configuration(host=server.url)
            configuration.ssl_ca_cert = str(settings.certificate_authority)
            client = ApiClient(configuration)
            stack.push_async_callback(client.close)
            yield await stack.enter_async_context(KubernetesTransport(client))
        else:
            session = None
            if kind == "borrowed session":
                session = await stack.enter_async_context(aiohttp.ClientSession())
            ssl = settings if server.url.startswith("https") else None
            yield await stack.enter_async_context(HttpTransport(server.url, session, ssl=ssl, proxy=proxy))


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ssl.SSLContext | None, TLS]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    return (
        certified(authority, "127.0.0.1") if request.param == "https" else None,
        TLS(certificate_authority=tmp_path / "ca.crt"),
    )


@pytest.mark.parametrize("end", ["a cancellation", "an abort", "a timeout"])
@pytest.mark.parametrize("size", BODIES)
@pytest.mark.parametrize("kind", ["own session", "borrowed session", "kubernetes_asyncio", "proxy"])
async def test_write_that_ended_is_never_received_as_a_whole(
    tls: tuple[ssl.SSLContext | None, TLS], kind: str, size: str, end: str
) -> None:
    context, settings = tls
    if kind == "proxy" and context is None:
        pytest.skip("a request without TLS goes to the proxy itself")
    server, sent = Unread(context, proxy=kind == "proxy"), asyncio.Event()
    check: SendCheck[Any] = SendCheck(sent.set)
    write = HttpRequest(
        "/", method="PUT", body=BODIES[size], check=check, total_timeout=0.3 if end == "a timeout" else None
    )
    async with connected(kind, server, settings) as transport:
        accepted = asyncio.create_task(asyncio.to_thread(server.accept))
        first = await transport.request(HttpRequest("/"))
        if size == "being sent":
            socket_of(first).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        server.seen.set()
        await body(first)
        connection = await accepted
        answer = asyncio.create_task(transport.request(write))
        if size == "sent":
            await sent.wait()
        await asyncio.to_thread(connection.recv, 1, socket.MSG_PEEK)
        if end == "a cancellation":
            answer.cancel()
        elif end == "an abort":
            check.abort()
        error = (await asyncio.gather(answer, return_exceptions=True))[0]
        assert isinstance(error, asyncio.CancelledError if end == "a cancellation" else TransportError)
        if end == "an abort":
            assert "the request may not be sent any more" in str(error)
        received, reset = await asyncio.to_thread(rest, connection)
    assert reset
    assert received < len(BODIES[size])
    assert check.carrier is None


async def test_others_are_not_aborted() -> None:
    arrived, answers = asyncio.Semaphore(0), asyncio.Event()

    async def answer(request: Any) -> Any:
        arrived.release()
        await answers.wait()
        return await ok(request)

    checks: list[SendCheck[Any]] = [SendCheck(lambda: None) for _ in range(4)]
    async with Server().started(answer) as server, HttpTransport(server.url) as transport:
        requests = [HttpRequest("/", method="PUT", body=b"{}", check=check) for check in checks]
        tasks = [asyncio.create_task(transport.request(each)) for each in [*requests, HttpRequest("/")]]
        for _ in tasks:
            await arrived.acquire()
        checks[0].abort()
        tasks[1].cancel()
        await asyncio.wait(tasks[:2])
        answers.set()
        assert [await body(await each) for each in tasks[2:]] == [b"ok"] * 3
    assert isinstance(tasks[0].exception(), TransportError)


async def test_connection_of_an_answered_write_is_closed_as_any_other() -> None:
    closed = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await closed.wait()
        return response

    async with Server().started(answer) as server, HttpTransport(server.url) as transport:
        check: SendCheck[Any] = SendCheck(lambda: None)
        response = await transport.request(HttpRequest("/", method="PUT", body=b"{}", check=check))
        check.abort()  # too late
        lingers = socket_of(response).getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
        assert struct.unpack("ii", lingers) == (0, 0)
        closed.set()
        assert await body(response) == b""
