"""Connections that open together over TLS, and the check that is called right before the last bytes of a request."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from aioinformer import HttpTransport
from aioinformer.errors import TransportError
from aioinformer.transport import TLS, HttpRequest, SendCheck
from aioinformer.transport.connections import AT_ONCE, share_buffer
from aioinformer.transport.failures import transport_error
from tests.support.loopback import Server, body, certified, fetch, forward, listening, ok
from tests.support.silent_link import SilentLink
from tests.support.silent_peers import left_open, silent_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from aioinformer.transport.connections import HttpResponse

_STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"


class Cluster:
    """A TLS server whose responses are streams that do not end, behind a gate that holds new connections.

    Attributes:
        held: the connections that have not been passed on to the server.
        hold: the number of connections to hold; later ones pass.
        full: set when as many are held as may open at once.
    """

    def __init__(self) -> None:
        self.url = ""
        self.settings = TLS()
        self.hold = 0
        self.full = asyncio.Event()
        self.held: list[asyncio.StreamWriter] = []
        self._open: list[asyncio.StreamWriter] = []
        self._port: int | None = None

    @asynccontextmanager
    async def serve(self, folder: Path) -> AsyncIterator[None]:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.crt")
        self.settings = TLS(certificate_authority=folder / "ca.crt")
        async with listening(self._respond, certified(authority)) as server, listening(self._admit) as gate:
            self._port = URL(server).port
            self.url = gate.replace("http:", "https:")
            yield
            self.drop()

    def drop(self) -> None:
        """Break all connections."""
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()
        self.held.clear()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(_STREAM)

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        if self.hold:
            self.hold -= 1
            self.held.append(writer)
            if len(self.held) == AT_ONCE:
                self.full.set()
            await reader.read()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._open.append(back)
        await asyncio.gather(forward(reader, back), forward(there, writer))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster()
    async with cluster.serve(tmp_path):
        yield cluster


class ClientProtocols:
    """Records the TLS protocols of clients, and how many of them had a read buffer of their own at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.all: list[Any] = []
        self.most = 0
        record, make = self._record, SSLProtocol.__init__

        def init(protocol: Any, *arguments: Any, **options: Any) -> None:
            make(protocol, *arguments, **options)
            if not protocol._server_side:
                record(protocol)

        monkeypatch.setattr(SSLProtocol, "__init__", init)

    def _record(self, protocol: Any) -> None:
        self.all.append(protocol)
        self.most = max(self.most, sum(isinstance(each._ssl_buffer, bytearray) for each in self.all))

    def buffered(self) -> int:
        """Return the size of all read buffers together."""
        return sum({id(each._ssl_buffer): len(each._ssl_buffer) for each in self.all}.values())


async def open_streams(transport: HttpTransport, count: int) -> list[HttpResponse]:
    """Open streams together, and read the first byte of each."""

    async def open_stream() -> HttpResponse:
        response = await transport.request(HttpRequest("/", stream=True, late_head=True))
        assert await anext(response.chunks()) == b"x"
        return response

    async with asyncio.timeout(60):
        return await asyncio.gather(*(open_stream() for _ in range(count)))


async def test_connections_that_open_together_share_a_buffer(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async with HttpTransport(cluster.url, ssl=cluster.settings) as transport:
        protocols = ClientProtocols(monkeypatch)
        for _ in range(3):  # the server breaks all connections, and all streams open again
            responses = await open_streams(transport, 5 * AT_ONCE)
            assert protocols.most <= AT_ONCE
            assert SSLProtocol.max_size <= protocols.buffered() < 2 * SSLProtocol.max_size
            cluster.drop()
            for response in responses:
                await response.close()
            protocols.all = protocols.all[:1]  # its buffer is the shared one


async def test_request_with_a_timeout_does_not_wait_for_watches_to_connect(cluster: Cluster) -> None:
    cluster.hold = AT_ONCE
    async with HttpTransport(cluster.url, ssl=cluster.settings, connect_timeout=60.0) as transport:
        opening = asyncio.create_task(open_streams(transport, AT_ONCE))
        async with asyncio.timeout(50):
            await cluster.full.wait()
            response = await transport.request(HttpRequest("/", total_timeout=10.0))
            assert response.status == 200
            await response.close()
        opening.cancel()
        await asyncio.wait({opening})


async def test_connect_timeout_begins_after_the_wait_for_others(cluster: Cluster) -> None:
    cluster.hold = AT_ONCE
    async with HttpTransport(cluster.url, ssl=cluster.settings, connect_timeout=1.0) as transport:
        opened = await asyncio.gather(*(open_streams(transport, 1) for _ in range(2 * AT_ONCE)), return_exceptions=True)
        errors = [each for each in opened if isinstance(each, BaseException)]
        assert {type(error) for error in errors} == {TransportError}
        assert all("the connection timed out" in str(error) for error in errors)
        assert len(errors) == AT_ONCE


async def test_wait_for_others_ends_with_the_transport(cluster: Cluster) -> None:
    cluster.hold = 2 * AT_ONCE
    async with HttpTransport(cluster.url, ssl=cluster.settings) as transport:
        opening = [asyncio.create_task(open_streams(transport, 1)) for _ in range(2 * AT_ONCE)]
        async with asyncio.timeout(50):
            await cluster.full.wait()
            await transport.aclose()
            cluster.drop()
            ended = await asyncio.gather(*opening, return_exceptions=True)
    assert {type(each) for each in ended} == {TransportError}
    assert not cluster.held


class Unexpected:
    """A TLS protocol with the attributes of asyncio's, which uses another buffer than they hold."""

    def __init__(self) -> None:
        self._ssl_buffer = bytearray(8)
        self._ssl_buffer_view = memoryview(self._ssl_buffer)

    def get_buffer(self, size: int) -> memoryview:
        return memoryview(bytearray(8))


def test_unexpected_tls_protocol_keeps_its_buffer() -> None:
    protocol = Unexpected()
    own = protocol._ssl_buffer, protocol._ssl_buffer_view
    wire: Any = SimpleNamespace(_ssl_protocol=protocol)
    share_buffer(wire, memoryview(bytearray(8)))
    assert (protocol._ssl_buffer, protocol._ssl_buffer_view) == own
    assert protocol._ssl_buffer is own[0]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(50):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_body_that_an_abrupt_end_of_tls_limits_is_complete() -> None:
    authority, trusting, go_on = trustme.CA(), ssl.create_default_context(), asyncio.Semaphore(0)
    authority.configure_trust(trusting)
    # Reading pauses after the first part. The second and third wait in asyncio's buffers until the reader continues:
    # one read takes 256 KiB of them or more; 256 KiB end within a record. The last part waits while reading is paused.
    parts = [40_000, 250_000, 24_000, 253_000]

    async def answer(reader: asyncio.StreamReader, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for part in parts:
            await go_on.acquire()
            for at in range(0, part, 16_000):
                writer.write(bytes([at // 16_000]) * min(16_000, part - at))
            await writer.drain()
        writer.transport._ssl_protocol._transport.close()  # TLS does not announce the end

    async with (
        listening(answer, certified(authority)) as url,
        HttpTransport(url, ssl=trusting, read_bufsize=16 * 1024) as transport,
    ):
        response = await transport.request(HttpRequest("/"))
        connection: Any = response._response.connection
        wire = connection.transport
        go_on.release()
        await until(lambda: not wire.is_reading())
        for waiting in (250_000, 274_000):
            go_on.release()
            await until(lambda least=waiting: wire.get_read_buffer_size() >= least)  # type: ignore[misc]
        chunks = response.chunks()
        received = [await anext(chunks)]
        await until(lambda: wire.get_read_buffer_size() < 16_000)
        go_on.release()
        await until(lambda: wire._ssl_protocol._eof_received)
        received += [chunk async for chunk in chunks]
    expected = [bytes([at // 16_000]) * min(16_000, part - at) for part in parts for at in range(0, part, 16_000)]
    assert b"".join(received) == b"".join(expected)


def test_nothing_is_open_after_the_end_of_a_transport() -> None:
    authority, trusting = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(trusting)

    async def main() -> None:
        async with HttpTransport(url, ssl=trusting) as transport:
            assert await fetch(transport) == b"ok"

    with silent_server(authority) as url:
        assert left_open(main) == []


# The check of a request is called right before its last bytes leave.


LARGE = b"x" * 20_000_000


class Refused(Exception):
    """The check has refused a request."""


def refuse() -> None:
    raise Refused


class RawServer:
    """Records what each connection receives, and answers a request once it is complete.

    Attributes:
        received: the heads of the requests of each connection.
        complete: the paths of the requests that were received as a whole.
        size: the number of bytes of the last body so far.
        reading: cleared to stop reading from the connections.
        silent: how many of the next requests are answered by closing the connection.
    """

    def __init__(self) -> None:
        self.received: list[list[bytes]] = []
        self.complete: list[str] = []
        self.size = 0
        self.reading = asyncio.Event()
        self.reading.set()
        self.silent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(heads := [])
        with suppress(OSError):
            while True:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                self.size, length = 0, length_of(heads[-1])
                while self.size < length:
                    await self.reading.wait()
                    piece = await reader.read(min(65536, length - self.size))
                    if not piece:
                        return
                    self.size += len(piece)
                self.complete.append(heads[-1].split()[1].decode())
                if self.silent:
                    self.silent -= 1
                    break
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def length_of(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


@pytest.fixture(params=["plain", "tls"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[tuple[RawServer, str, ssl.SSLContext | None]]:
    server, secured, trusting = RawServer(), None, None
    if request.param == "tls":
        authority = trustme.CA()
        secured, trusting = certified(authority), ssl.create_default_context()
        authority.configure_trust(trusting)
    async with listening(server.serve, secured) as url:
        yield server, url, trusting
    await asyncio.sleep(0.05)  # connections of TLS close


@asynccontextmanager
async def transport_to(url: str, tls: ssl.SSLContext | None, *, borrowed: bool) -> AsyncIterator[HttpTransport]:
    if not borrowed:
        async with HttpTransport(url, ssl=tls) as transport:
            yield transport
        return
    async with aiohttp.ClientSession() as session, HttpTransport(url, session, ssl=tls) as transport:
        yield transport


@pytest.mark.behaviour("C-111")
@pytest.mark.parametrize("borrowed", [False, True])
@pytest.mark.parametrize("sent", [None, b"{}", b"x" * 100_000], ids=["no body", "small", "large"])
async def test_refused_request_never_arrives(
    server: tuple[RawServer, str, ssl.SSLContext | None], borrowed: bool, sent: bytes | None
) -> None:
    raw, url, tls = server
    method = "DELETE" if sent is None else "PUT"
    async with transport_to(url, tls, borrowed=borrowed) as transport:
        permitted = SendCheck(lambda: None)
        for check in (None, permitted):
            response = await transport.request(HttpRequest("/a", method=method, body=sent, check=check))
            assert await body(response) == b"ok"
        assert not permitted.unsent
        (first, second), *others = raw.received
        assert not others
        assert second == first
        check = SendCheck(refuse)
        with pytest.raises(Refused):
            await transport.request(HttpRequest("/refused", method=method, body=sent, check=check))
        assert check.unsent
        assert await body(await transport.request(HttpRequest("/b", method=method, body=sent))) == b"ok"
    assert raw.complete == ["/a", "/a", "/b"]
    assert b"/b" in raw.received[1][0]  # on another connection


@pytest.mark.behaviour("C-111")
@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_end_of_a_large_body_waits_for_its_beginning(
    server: tuple[RawServer, str, ssl.SSLContext | None],
) -> None:
    raw, url, tls = server
    asked: list[int] = []

    def ask() -> None:
        asked.append(raw.size)
        raise Refused

    raw.reading.clear()
    async with HttpTransport(url, ssl=tls) as transport:
        sending = asyncio.create_task(
            transport.request(HttpRequest("/", method="PUT", body=LARGE, check=SendCheck(ask)))
        )
        await asyncio.sleep(0.5)
        assert asked == []
        raw.reading.set()
        with pytest.raises(Refused):
            await sending
    # The rest was in the buffers of the kernel, and not in those of this process.
    assert len(asked) == 1
    assert asked[0] > len(LARGE) / 2
    assert raw.complete == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_borrowed_session_does_not_repeat_a_write(
    server: tuple[RawServer, str, ssl.SSLContext | None], method: str
) -> None:
    raw, url, tls = server
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    async with transport_to(url, tls, borrowed=True) as transport:
        for sent in (SendCheck(check), None):
            assert await body(await transport.request(HttpRequest("/"))) == b"ok"
            raw.silent = 1
            with pytest.raises(TransportError) as failure:  # it may have been processed
                await transport.request(HttpRequest("/write", method=method, body=b"{}", check=sent))
            assert not failure.value.unsent
        assert checks == 1
        assert raw.complete == ["/", "/write"] * 2


async def test_request_that_gets_no_connection_is_unsent() -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        stop = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await stop.wait()
            writer.close()

        async with listening(answer) as url, HttpTransport(url, session, header_timeout=0.2) as transport:
            taken = asyncio.create_task(transport.request(HttpRequest("/", total_timeout=30)))
            await asyncio.sleep(0.05)
            check = SendCheck(lambda: None)
            with pytest.raises(TransportError) as failure:
                await transport.request(HttpRequest("/", method="PUT", body=b"{}", check=check))
            assert failure.value.unsent
            stop.set()
            with pytest.raises(TransportError):
                await taken


@pytest.mark.parametrize("borrowed", [False, True])
async def test_fresh_request_uses_a_new_connection_and_closes_idle_ones(borrowed: bool) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server().started(ok))
        link = await stack.enter_async_context(SilentLink(server.url).started())
        session = await stack.enter_async_context(aiohttp.ClientSession()) if borrowed else None
        transport = await stack.enter_async_context(HttpTransport(link.url, session))
        for _ in range(2):
            await asyncio.gather(*(fetch(transport) for _ in range(3)))
        assert link.opened == 3
        link.silence()
        assert await body(await transport.request(HttpRequest("/", fresh=True))) == b"ok"
        assert link.opened == 4
        assert await fetch(transport) == b"ok"
        assert link.opened == 4


def _key(host: str = "api.example", port: int = 6443) -> Any:
    return ConnectionKey(host, port, True, True, None, None, None)


def _dns(code: int) -> Exception:
    return aiohttp.ClientConnectorDNSError(_key(), socket.gaierror(code, "Name or service not known"))


@pytest.mark.parametrize(
    ("error", "reason", "state"),
    [
        (
            aiohttp.ClientConnectorError(_key(), OSError(111, "x")),
            "cannot connect: Connection refused",
            "unsent transient",
        ),
        (aiohttp.ClientConnectorError(_key(), OSError("no route")), "cannot connect: no route", "unsent transient"),
        (aiohttp.ConnectionTimeoutError(), "the connection timed out", "unsent transient"),
        (_dns(socket.EAI_AGAIN), "the name cannot be resolved: Name or service not known", "unsent transient"),
        (_dns(socket.EAI_NONAME), "the name cannot be resolved: Name or service not known", "unsent"),
        (aiohttp.ClientConnectorSSLError(_key(), ssl.SSLError(1, "x")), "TLS failed: the handshake failed", "unsent"),
        (aiohttp.ServerDisconnectedError(), "the server closed the connection before it answered", "sent transient"),
        (aiohttp.ClientPayloadError("x"), "the response ended before it was complete", "sent transient"),
        (aiohttp.ClientOSError(104, "x"), "the connection broke: Connection reset by peer", "sent transient"),
        (ConnectionResetError(), "the connection broke: ConnectionResetError", "sent transient"),
        (BrokenPipeError(32, "x"), "the connection broke: Broken pipe", "sent transient"),
        (TimeoutError(), "the response timed out", "transient"),
        (aiohttp.InvalidURL("x"), "the URL is not valid", ""),
        (RuntimeError("s3cret"), "the connection broke: RuntimeError", "transient"),
    ],
)
def test_failure_says_whether_it_was_sent_and_may_be_repeated(error: Exception, reason: str, state: str) -> None:
    failure = transport_error("api.example:6443", error, "check the address")
    assert str(failure).startswith(f"api.example:6443: {reason}")
    assert str(failure).endswith("; check the address")
    assert [name for name in ("sent", "unsent", "transient") if getattr(failure, name)] == state.split()
    assert str(transport_error("a", error)).endswith(reason) or "payload" in type(error).__name__.lower()
