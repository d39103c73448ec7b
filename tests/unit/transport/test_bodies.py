"""The bodies of responses: what a reader gets, when it fails, and which connections are used again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import sys
import weakref
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme

from aioinformer import HttpTransport
from aioinformer.errors import TransportError
from aioinformer.transport import TLS, HttpRequest, http
from aioinformer.transport.http import READ_BUFFER, STREAM_BUFFER
from tests.support.loopback import body, certified, fetch, forward, listening

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path
    from types import FrameType

    from aioinformer.transport.connections import HttpResponse

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
#: The most that asyncio reads from a socket at once.
READ = 272 * 1024


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@pytest.fixture(params=[False, True], ids=["as a whole", "as a stream"])
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
        while await reader.readuntil(b"\r\n\r\n"):
            answer = self._answers.pop(0)
            writer.write(answer or b"")
            if self._answers and self._answers[0] is None:
                self._answers.pop(0)
                break
            await writer.drain()


@asynccontextmanager
async def scripted(*answers: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    server = Scripted(*answers)
    async with listening(server, tls) as server.url:
        yield server


async def test_chunks_of_one_read_are_one_piece(stream: bool) -> None:
    sent = [b'{"event":%d}\n' % number for number in range(100)]
    async with scripted(CHUNKED + b"".join(map(chunk, sent)) + END) as server, HttpTransport(server.url) as transport:
        response = await transport.request(HttpRequest("/", stream=stream))
        assert [part async for part in response.chunks()] == [b"".join(sent)]


async def test_nudge_yields_an_empty_piece() -> None:
    async with scripted(CHUNKED + chunk(b"hello")) as server, HttpTransport(server.url) as transport:
        response: Any = await transport.request(HttpRequest("/", stream=True))
        chunks = response.chunks()
        assert await anext(chunks) == b"hello"
        asyncio.get_running_loop().call_later(0.01, response.nudge)
        async with asyncio.timeout(50):
            assert await anext(chunks) == b""
        response.nudge()  # while nothing reads
        async with asyncio.timeout(50):
            assert await anext(chunks) == b""
        await response.close()
        await chunks.aclose()


@pytest.mark.parametrize("borrowed", [False, True], ids=["own session", "borrowed session"])
async def test_chunk_of_a_stream_costs_few_calls(borrowed: bool) -> None:
    many = 20_000
    begun, more = CHUNKED + chunk(b"begin"), chunk(b"x" * 50) * many
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(scripted(begun + more + END))
        session = await stack.enter_async_context(aiohttp.ClientSession()) if borrowed else None
        transport = await stack.enter_async_context(HttpTransport(server.url, session=session))
        response = await transport.request(HttpRequest("/", stream=True))
        calls, size = 0, 0

        def count(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call" and "aiohttp" in frame.f_code.co_filename + frame.f_globals.get("__name__", "")

        sys.setprofile(count)
        try:
            async for part in response.chunks():
                size += len(part)
        finally:
            sys.setprofile(None)
    assert size == 5 + 50 * many
    # For each chunk, aiohttp's parser calls its stream three times; the stream itself would need at least three more.
    assert calls < 4 * many


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


#: Chunks that Go's net/http accepts.
TOLERATED = {
    "blanks after a size": b"5  \r\nhello\r\n0 \r\n\r\n",
    "a tab after a size": b"5\t\r\nhello\r\n0\r\n\r\n",
    "extensions": b"5;a;b=c\r\nhello\r\n0;last\r\n\r\n",
    "a trailer": b"5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    "a folded trailer": b"5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n",
    "leading zeros": b"0005\r\nhello\r\n000\r\n\r\n",
}
MALFORMED = {
    "a size that is none": b"x\r\n",
    "a chunk that is longer than its size": b"5\r\nhello!\r\n",
    "a trailer that is none": b"0\r\nno trailer\r\n\r\n",
    "a size beyond 64 bits": b"10000000000000000\r\n",
    "a bare line feed after a size": b"5\nhello\r\n",
    "a negative size": b"-5\r\nhello\r\n",
}


@pytest.mark.parametrize("sent", TOLERATED.values(), ids=TOLERATED)
@pytest.mark.parametrize("apart", [False, True])
async def test_chunks_that_go_accepts_are_accepted(sent: bytes, apart: bool, stream: bool) -> None:
    async with replying(CHUNKED, sent, apart=apart) as url, HttpTransport(url) as transport:
        assert await fetch(transport, stream=stream) == b"hello"


async def test_malformed_chunks_are_noticed_within_seconds(
    tls_files: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server keeps the connection open, and a peer of TLS does not confirm its end."""
    assert 2 * http._CHECK_EVERY < 5
    monkeypatch.setattr(http, "_CHECK_EVERY", 0.2)
    ca_file, context = tls_files

    async def error_of(rest: bytes, tls: bool, borrows: bool, stream: bool) -> str:
        async with contextlib.AsyncExitStack() as stack:
            url = await stack.enter_async_context(
                replying(CHUNKED + chunk(b"first"), rest, apart=True, tls=context if tls else None)
            )
            session = await stack.enter_async_context(aiohttp.ClientSession()) if borrows else None
            settings = TLS(certificate_authority=ca_file) if tls else None
            transport = await stack.enter_async_context(HttpTransport(url, session, ssl=settings))
            response = await transport.request(HttpRequest("/", stream=stream))
            with pytest.raises(TransportError) as raised:
                await asyncio.wait_for(body(response), 50)
            return str(raised.value)

    errors = await asyncio.gather(
        *(
            error_of(rest, tls, borrows, stream)
            for rest in MALFORMED.values()
            for tls in (False, True)
            for borrows in (False, True)
            for stream in (False, True)
        )
    )
    assert {error.partition(": ")[2] for error in errors} == {
        "the response ended before it was complete, or cannot be decoded"
    }


async def test_malformed_chunk_fails_a_read_that_begins_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CHECK_EVERY", 3600.0)
    async with replying(CHUNKED + chunk(b"first"), b"x\r\n", apart=True) as url, HttpTransport(url) as transport:
        response = await transport.request(HttpRequest("/", stream=True))
        chunks = response.chunks()
        assert await anext(chunks) == b"first"
        async with asyncio.timeout(50):
            while not response._is_cut():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            with pytest.raises(TransportError, match="ended before it was complete"):
                await anext(chunks)


async def test_quiet_stream_is_not_taken_for_a_broken_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CHECK_EVERY", 0.01)
    async with begun_stream() as (response, go_on):
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        await asyncio.sleep(0.1)
        go_on.set()
        assert b"".join([part async for part in chunks]) == b"twothree"


@asynccontextmanager
async def replying(
    first: bytes, second: bytes, *, apart: bool, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve two pieces of a response, by one write or apart, and keep the connection open; return the URL."""
    end = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first if apart else first + second)
        if apart:
            await asyncio.sleep(0.02)
            writer.write(second)
        await end.wait()
        writer.transport.abort()

    async with listening(serve, tls) as url:
        yield url
        end.set()


@pytest.mark.parametrize("answer", [CHUNKED + chunk(b"hel"), b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"])
async def test_connection_that_ends_before_the_body_raises(answer: bytes, stream: bool) -> None:
    async with scripted(answer, None) as server, HttpTransport(server.url) as transport:
        with pytest.raises(TransportError, match="ended before it was complete"):
            await fetch(transport, stream=stream)


@pytest.mark.parametrize("closed", [False, True], ids=["lost", "lost and closed"])
async def test_what_arrived_before_a_reset_is_read(closed: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + chunk(b"one") + chunk(b"two"))
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with listening(serve) as url, HttpTransport(url) as transport:
        response = await transport.request(HttpRequest("/", stream=True))
        chunks = response.chunks()
        async with asyncio.timeout(50):
            while response._response.content.exception() is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
        if closed:
            await response.close()
        else:
            assert await anext(chunks) == b"onetwo"
        with pytest.raises(TransportError, match="closed while it was being read" if closed else "ended before"):
            await anext(chunks)


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
    async with asyncio.timeout(50):
        while connection.transport.is_reading():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_buffer_is_limited_while_the_reader_waits(stream: bool) -> None:
    sent = b"x" * 64 * 1024 * 1024
    async with scripted(CHUNKED + chunk(sent) + END) as server, HttpTransport(server.url) as transport:
        response = await transport.request(HttpRequest("/", stream=stream))
        chunks = response.chunks()
        first = await anext(chunks)
        await until_it_waits(response)
        waiting = await anext(chunks)
        limit = 2 * (STREAM_BUFFER if stream else READ_BUFFER)
        assert limit < len(waiting) <= limit + READ
        assert len(first) + len(waiting) + sum([len(part) async for part in chunks]) == len(sent)


@pytest.mark.parametrize("begun", range(len(b"5\r\nhel")))
async def test_reading_continues_if_little_came_with_the_head(begun: int, stream: bool) -> None:
    whole = chunk(b"hello") + END
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + whole[:begun])
        await answered.wait()
        writer.write(whole[begun:])

    async with listening(serve) as url, HttpTransport(url) as transport:
        response = await transport.request(HttpRequest("/", stream=stream))
        reading = asyncio.create_task(body(response), name="reading")
        await asyncio.sleep(0)
        answered.set()
        async with asyncio.timeout(50):
            assert await reading == b"hello"


@asynccontextmanager
async def begun_stream(total_timeout: float | None = None) -> AsyncIterator[tuple[Any, asyncio.Event]]:
    """A response of which one piece has arrived; two more arrive after the event is set."""
    go_on = asyncio.Event()

    async def serve(requests: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await requests.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + chunk(b"one"))
        await go_on.wait()
        writer.write(chunk(b"two") + chunk(b"three") + END)

    async with listening(serve) as url, HttpTransport(url) as transport:
        yield await transport.request(HttpRequest("/", stream=True, total_timeout=total_timeout)), go_on
        go_on.set()


async def test_second_iteration_continues_the_body() -> None:
    async with begun_stream() as (response, go_on):
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        go_on.set()
        await response._response.content.wait_eof()
        await chunks.aclose()
        assert await body(response) == b"twothree"


async def test_two_tasks_cannot_read_one_stream() -> None:
    async with begun_stream() as (response, go_on):
        chunks = response.chunks()
        assert await anext(chunks) == b"one"
        first = asyncio.create_task(body(response), name="first")
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another"):
            await anext(chunks)
        go_on.set()
        assert await first == b"twothree"


async def test_close_ends_the_pending_read_of_a_stream() -> None:
    async def close_while_it_is_read() -> weakref.ref[Any]:
        async with begun_stream() as (response, _):
            reading = asyncio.create_task(body(response), name="reads")
            await asyncio.sleep(0.01)
            await response.close()
            with pytest.raises(TransportError, match="closed while it was being read"):
                await asyncio.wait_for(reading, 50)
            return weakref.ref(response)

    response = await close_while_it_is_read()
    await asyncio.sleep(0)
    gc.collect()
    assert response() is None  # the shared exception of aiohttp does not keep it


@pytest.fixture
def tls_files(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    return tmp_path / "ca.crt", certified(authority)


async def test_connections_read_into_one_buffer(tls_files: tuple[Path, ssl.SSLContext]) -> None:
    ca_file, context = tls_files
    buffers: set[int] = set()
    async with (
        AsyncExitStack() as stack,
        scripted(*(CHUNKED + chunk(b"x") for _ in range(3)), tls=context) as server,
        HttpTransport(server.url, ssl=TLS(certificate_authority=ca_file)) as transport,
    ):
        for _ in range(3):
            response = await transport.request(HttpRequest("/", stream=True))
            stack.push_async_callback(response.close)
            assert await anext(response.chunks()) == b"x"
            connection: Any = response._response.connection
            # Other protocols get bytes, for which asyncio allocates 256 KiB for each record of TLS.
            protocol = connection.transport.get_protocol()
            assert isinstance(protocol, asyncio.BufferedProtocol)
            buffers.add(id(protocol.get_buffer(-1)))
    assert server.connections == 3
    assert len(buffers) == 1


async def test_concurrent_bodies_over_tls_do_not_mix(tls_files: tuple[Path, ssl.SSLContext]) -> None:
    ca_file, context = tls_files
    bodies = [bytes([number]) * 700_000 for number in range(8)]
    async with (
        scripted(*(CHUNKED + chunk(each) + END for each in bodies), tls=context) as server,
        HttpTransport(server.url, ssl=TLS(certificate_authority=ca_file)) as transport,
    ):
        assert sorted(await asyncio.gather(*(fetch(transport) for _ in bodies))) == bodies
    assert server.connections == len(bodies)


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
        await asyncio.gather(forward(reader, back), forward(there, writer))


async def test_body_through_a_proxy_tunnel_is_complete(tls_files: tuple[Path, ssl.SSLContext]) -> None:
    ca_file, context = tls_files
    answer = CHUNKED + chunk(b"x" * 500_000) + END
    tunnel = Tunnel()
    async with (
        scripted(answer, answer, tls=context) as server,
        listening(tunnel) as proxy,
        HttpTransport(server.url, ssl=TLS(certificate_authority=ca_file), proxy=proxy) as transport,
    ):
        assert [await fetch(transport) for _ in range(2)] == [b"x" * 500_000] * 2
    assert tunnel.asked == [f"CONNECT {server.url.partition('//')[2]} HTTP/1.1".encode()]
