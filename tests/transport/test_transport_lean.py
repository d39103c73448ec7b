"""The decoder for bodies beneath aiohttp: what a reader gets, and when aiohttp reads bodies itself."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import ssl
import tracemalloc
import weakref
from asyncio.sslproto import SSLProtocol
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport import Request, streaming
from aioinformer.transport.http import READ_BUFFER, HttpTransport
from aioinformer.transport.session import TLS
from aioinformer.transport.streaming import LeanHandler, lean_connector
from tests.transport.loopback import body, fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.transport.http import HttpResponse
    from aioinformer.transport.session import Reader

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@pytest.fixture(params=[False, True], ids=["through aiohttp's stream", "as a stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    """Whether the request is for a stream of small pieces."""
    return bool(request.param)


class Scripted:
    """A server that answers the requests of all connections, in order, with given bytes.

    Args:
        answers: None closes the connection.
    """

    def __init__(self, *answers: bytes | None) -> None:
        self._answers = list(answers)
        self.connections = 0
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                answer = self._answers.pop(0)
                writer.write(answer or b"")
                if self._answers and self._answers[0] is None:
                    self._answers.pop(0)
                    break
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def scripted(*answers: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    server = Scripted(*answers)
    async with await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls) as listening:
        scheme = "https" if tls else "http"
        server.url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server


async def test_own_decoder_works_with_this_aiohttp() -> None:
    async with lean_connector() as connector:
        assert isinstance(connector._factory(), LeanHandler)


async def test_chunks_of_one_read_are_one_piece(stream: bool) -> None:
    sent = [b'{"event":%d}\n' % number for number in range(100)]
    async with scripted(CHUNKED + b"".join(map(chunk, sent)) + END) as server, HttpTransport(server.url) as transport:
        response = await transport.request(Request("/", stream=stream))
        assert [part async for part in response.chunks()] == [b"".join(sent)]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        CHUNKED + chunk(b"hel") + chunk(b"lo") + END,
        CHUNKED + chunk(b"hello") + b"0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + CHUNKED + chunk(b"hello") + END,
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    ],
    ids=["of a stated length", "in chunks", "with trailers", "behind an interim answer", "behind bare line feeds"],
)
async def test_connection_is_reused_after_a_response(answer: bytes, stream: bool) -> None:
    async with scripted(answer, answer, answer) as server, HttpTransport(server.url) as transport:
        assert [await fetch(transport, stream=stream) for _ in range(3)] == [b"hello"] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        CHUNKED.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n") + chunk(b"hello") + END,
    ],
    ids=["without a length", "of an old server", "of a stated length", "in chunks"],
)
async def test_body_is_complete_if_the_connection_ends_after_it(answer: bytes, stream: bool) -> None:
    async with scripted(answer, None) as server, HttpTransport(server.url) as transport:
        assert await fetch(transport, stream=stream) == b"hello"


@pytest.mark.parametrize(
    "rest", [b"x\r\n", b"5\r\nhello!\r\n", b"0\r\nno trailer\r\n\r\n", b"10000000000000000\r\n", b"1;" + b"x" * 5000]
)
async def test_malformed_body_raises_at_once(rest: bytes, stream: bool) -> None:
    async with scripted(CHUNKED + chunk(b"first") + rest) as server, HttpTransport(server.url) as transport:
        response = await transport.request(Request("/", stream=stream))
        async with asyncio.timeout(10):
            with pytest.raises(TransportError, match="ended before it was complete, or cannot be decoded"):
                await body(response)


@pytest.mark.parametrize("answer", [CHUNKED + chunk(b"hel"), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"])
async def test_connection_that_ends_before_the_body_raises(answer: bytes, stream: bool) -> None:
    async with scripted(answer, None) as server, HttpTransport(server.url) as transport:
        with pytest.raises(TransportError, match="ended before it was complete"):
            await fetch(transport, stream=stream)


@pytest.mark.parametrize("answer", [CHUNKED + chunk(b"hi") + END, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"])
async def test_bytes_after_a_body_are_not_the_next_response(answer: bytes, stream: bool) -> None:
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    async with scripted(answer + forged, answer + forged) as server, HttpTransport(server.url) as transport:
        assert [await fetch(transport, stream=stream) for _ in range(2)] == [b"hi"] * 2
    assert server.connections == 2


async def until_it_waits(response: HttpResponse) -> None:
    """Wait until reading pauses."""
    connection = response._response.connection
    assert connection is not None
    assert connection.transport is not None
    async with asyncio.timeout(10):
        while connection.transport.is_reading():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_buffer_is_limited_while_the_reader_waits(stream: bool) -> None:
    sent = b"x" * 32 * 1024 * 1024
    async with scripted(CHUNKED + chunk(sent) + END) as server, HttpTransport(server.url) as transport:
        response = await transport.request(Request("/", stream=stream))
        chunks = response.chunks()
        first = await anext(chunks)
        await until_it_waits(response)
        waiting = await anext(chunks)
        assert 2 * READ_BUFFER < len(waiting) <= 2 * READ_BUFFER + streaming._READ
        assert len(first) + len(waiting) + sum([len(part) async for part in chunks]) == len(sent)


@pytest.mark.parametrize("head", [CHUNKED + b"100000\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n"])
async def test_unread_body_pauses_after_the_head(head: bytes, stream: bool) -> None:
    sent = b"x" * 1024 * 1024
    end = b"\r\n" + END if head.startswith(CHUNKED) else b""
    async with scripted(head + sent + end) as server, HttpTransport(server.url) as transport:
        response = await transport.request(Request("/", stream=stream))
        await until_it_waits(response)
        chunks = [part async for part in response.chunks()]
    assert len(chunks[0]) < streaming._SLICE
    assert b"".join(chunks) == sent


@pytest.mark.parametrize("begun", range(len(b"5\r\nhel")))
async def test_reading_continues_if_little_came_with_the_head(begun: int, stream: bool) -> None:
    whole = chunk(b"hello") + END
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + whole[:begun])
        await answered.wait()
        writer.write(whole[begun:])
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, HttpTransport(url) as transport:
        response = await transport.request(Request("/", stream=stream))
        reading = asyncio.create_task(body(response), name="reading")
        await asyncio.sleep(0)
        answered.set()
        async with asyncio.timeout(10):
            assert await reading == b"hello"


@asynccontextmanager
async def begun_stream(reader: Reader, total_timeout: float | None = None) -> AsyncIterator[tuple[Any, asyncio.Event]]:
    """A response of which one piece has arrived; two more arrive after the event is set."""
    go_on = asyncio.Event()

    async def serve(requests: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await requests.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + chunk(b"one"))
        await go_on.wait()
        writer.write(chunk(b"two") + chunk(b"three") + END)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with HttpTransport(url, reader=reader) as transport:
            yield await transport.request(Request("/", stream=True, total_timeout=total_timeout)), go_on
            go_on.set()


READERS: list[Reader] = ["lean", "aiohttp"]


@pytest.mark.parametrize("reader", READERS)
async def test_second_iteration_continues_the_body(reader: Reader) -> None:
    async with begun_stream(reader) as (response, go_on):
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        go_on.set()
        await response._response.content.wait_eof()
        await chunks.aclose()
        assert await body(response) == b"twothree"


@pytest.mark.parametrize("reader", READERS)
async def test_two_tasks_cannot_read_one_stream(reader: Reader) -> None:
    async with begun_stream(reader) as (response, go_on):
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        first = asyncio.create_task(body(response), name="first")
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another"):
            await anext(chunks)
        go_on.set()
        assert await first == b"twothree"


@pytest.mark.parametrize("reader", READERS)
async def test_stream_keeps_the_total_timeout_of_its_request(reader: Reader) -> None:
    async with begun_stream(reader, total_timeout=0.1) as (response, _):
        with pytest.raises(TransportError, match="timed out"):
            await asyncio.wait_for(body(response), 10)


@pytest.mark.parametrize("reader", READERS)
async def test_close_ends_the_pending_read_of_a_stream(reader: Reader) -> None:
    async def close_while_it_is_read() -> weakref.ref[Any]:
        async with begun_stream(reader) as (response, _):
            reading = asyncio.create_task(body(response), name="reads")
            await asyncio.sleep(0.01)
            await response.close()
            with pytest.raises(TransportError, match="closed while it was being read"):
                await asyncio.wait_for(reading, 10)
            return weakref.ref(response)

    response = await close_while_it_is_read()
    await asyncio.sleep(0)
    gc.collect()
    assert response() is None  # the shared exception of aiohttp does not keep it


async def test_old_response_does_not_resume_the_next() -> None:
    handler, wire = on_a_wire()
    handler.data_received(CHUNKED)
    _, stream = await handler.read()
    content = handler.divert(stream, 10)
    assert content is not None
    handler.data_received(chunk(b"x" * 20) + END)
    handler.set_response_params(read_bufsize=10)
    handler.data_received(CHUNKED + chunk(b"y" * 100))
    assert not wire.reading
    assert await content.read() == b"x" * 20
    assert not wire.reading


async def test_body_of_known_length_is_yielded_as_it_was_read() -> None:
    sent = b"x" * 4 * 1024 * 1024
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(sent)
    async with scripted(head + sent) as server, HttpTransport(server.url) as transport:
        response = await transport.request(Request("/"))
        reading = response.chunks()
        chunks = [await anext(reading)]
        await until_it_waits(response)
        chunks += [part async for part in reading]
    assert max(map(len, chunks)) <= streaming._READ
    assert b"".join(chunks) == sent


@pytest.fixture
def tls_files(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    return tmp_path / "ca.crt", context


async def test_large_body_over_tls_is_complete(tls_files: tuple[Path, ssl.SSLContext], stream: bool) -> None:
    ca_file, context = tls_files
    parts = [bytes(range(256)) * size for size in range(200)]
    answer = CHUNKED + b"".join(chunk(part) for part in parts if part) + END
    async with (
        scripted(answer, answer, tls=context) as server,
        HttpTransport(server.url, ssl=TLS(certificate_authority=ca_file)) as transport,
    ):
        assert [await fetch(transport, stream=stream) for _ in range(2)] == [b"".join(parts)] * 2
    assert server.connections == 1


async def test_concurrent_bodies_over_tls_do_not_mix(tls_files: tuple[Path, ssl.SSLContext]) -> None:
    ca_file, context = tls_files
    bodies = [bytes([number]) * 700_000 for number in range(8)]
    async with (
        scripted(*(CHUNKED + chunk(each) + END for each in bodies), tls=context) as server,
        HttpTransport(server.url, ssl=TLS(certificate_authority=ca_file)) as transport,
    ):
        assert sorted(await asyncio.gather(*(fetch(transport) for _ in bodies))) == bodies
    assert server.connections == len(bodies)


@pytest.mark.parametrize(("reader", "buffers"), [("lean", 1), ("aiohttp", 2)])
async def test_tls_connections_share_a_read_buffer(
    tls_files: tuple[Path, ssl.SSLContext], reader: Reader, buffers: int
) -> None:
    ca_file, context = tls_files
    count, size = 10, SSLProtocol.max_size
    async with (
        scripted(*[CHUNKED] * (count + 1), tls=context) as server,
        HttpTransport(server.url, ssl=TLS(certificate_authority=ca_file), reader=reader) as transport,
        contextlib.AsyncExitStack() as stack,
    ):

        async def open_response() -> None:
            stack.push_async_callback((await transport.request(Request("/"))).close)

        await open_response()  # creates what is created once
        tracemalloc.start()
        try:
            for _ in range(count):
                await open_response()
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    # The server in this process has a buffer for each connection, too.
    assert buffers <= grown / (count * size) < buffers + 0.5


class Unexpected:
    """A TLS protocol with the attributes of asyncio's, which uses another buffer than they hold."""

    def __init__(self) -> None:
        self._ssl_buffer = bytearray(8)
        self._ssl_buffer_view = memoryview(self._ssl_buffer)

    def get_buffer(self, size: int) -> memoryview:
        return memoryview(bytearray(8))


async def test_unexpected_tls_protocol_keeps_its_buffer() -> None:
    protocol = Unexpected()
    own = protocol._ssl_buffer, protocol._ssl_buffer_view
    wire: Any = Wire()
    wire._ssl_protocol = protocol
    LeanHandler(asyncio.get_running_loop(), memoryview(bytearray(8))).connection_made(wire)
    assert (protocol._ssl_buffer, protocol._ssl_buffer_view) == own
    assert protocol._ssl_buffer is own[0]


class Tunnel:
    """A proxy that connects, and then forwards bytes."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(request.split(b"\r\n")[0])
        host, _, port = request.split()[1].decode().partition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()


async def test_body_through_a_proxy_tunnel_is_complete(tls_files: tuple[Path, ssl.SSLContext]) -> None:
    ca_file, context = tls_files
    answer = CHUNKED + chunk(b"x" * 500_000) + END
    tunnel = Tunnel()
    async with (
        scripted(answer, answer, tls=context) as server,
        await asyncio.start_server(tunnel, "127.0.0.1", 0) as listening,
        HttpTransport(
            server.url,
            ssl=TLS(certificate_authority=ca_file),
            proxy=f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}",
        ) as transport,
    ):
        assert [await fetch(transport) for _ in range(2)] == [b"x" * 500_000] * 2
    assert tunnel.asked == [f"CONNECT {server.url.partition('//')[2]} HTTP/1.1".encode()]


class Wire(asyncio.Transport):
    """A connection whose bytes the test provides."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.closed = False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def on_a_wire(**options: Any) -> tuple[LeanHandler, Wire]:
    handler, wire = LeanHandler(asyncio.get_running_loop(), memoryview(bytearray(streaming._READ))), Wire()
    handler.connection_made(wire)
    handler.set_response_params(**options)
    return handler, wire


async def test_response_does_not_depend_on_the_split() -> None:
    sent = b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + chunk(b"one") + chunk(b"two") + END
    for cut in range(1, len(sent)):
        handler, wire = on_a_wire()
        handler.data_received(sent[:cut])
        rest = sent[cut:]
        handler.get_buffer(-1)[: len(rest)] = rest
        handler.buffer_updated(len(rest))
        await handler.read()
        message, stream = await handler.read()
        assert (message.code, await stream.read(), handler.should_close, wire.closed) == (200, b"onetwo", False, False)


async def test_unexpected_bytes_close_a_pooled_connection() -> None:
    handler, wire = on_a_wire()
    handler.data_received(CHUNKED + END)
    await handler.read()
    assert (handler.should_close, wire.closed) == (False, False)
    handler.data_received(CHUNKED + END)
    assert (handler.should_close, wire.closed) == (True, True)


async def test_malformed_body_closes_its_connection() -> None:
    handler, wire = on_a_wire()
    handler.data_received(CHUNKED + b"x\r\n")
    assert (handler.should_close, wire.closed) == (True, True)


async def test_unread_response_does_not_block_the_next() -> None:
    handler, wire = on_a_wire(read_bufsize=10)
    handler.data_received(CHUNKED + chunk(b"x" * 100))
    paused = not wire.reading
    handler.data_received(END)
    _, stream = await handler.read()
    assert (paused, wire.reading) == (True, True)
    assert await stream.read() == b"x" * 100


async def test_incompatible_aiohttp_reads_bodies_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def renamed(self: LeanHandler, **options: Any) -> None:
        raise AttributeError("set_response_params")

    caplog.set_level(logging.DEBUG, "aioinformer.transport")
    monkeypatch.setattr(LeanHandler, "set_response_params", renamed)
    async with scripted(CHUNKED + chunk(b"hello") + END) as server, HttpTransport(server.url) as transport:
        assert await fetch(transport) == b"hello"
    assert "reads bodies itself" in caplog.text


def test_unknown_reader_raises() -> None:
    with pytest.raises(UsageError, match='reader: expected "lean" or "aiohttp"'):
        HttpTransport("http://127.0.0.1:1", reader="fast")  # type: ignore[arg-type]
