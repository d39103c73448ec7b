"""The check of a request is called right before its last bytes leave."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest
import trustme

from aioinformer.errors import TransportError
from aioinformer.transport import Request, SendCheck
from aioinformer.transport.http import HttpTransport
from tests.support.loopback import body, certified, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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
        connections: serve a connection each.
        reading: cleared to stop reading from the connections.
        silent: how many of the next requests are answered by closing the connection.
    """

    def __init__(self) -> None:
        self.received: list[list[bytes]] = []
        self.complete: list[str] = []
        self.size = 0
        self.connections: list[asyncio.Task[object]] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self.silent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(heads := [])
        task = asyncio.current_task()
        assert task is not None
        self.connections.append(task)
        with suppress(asyncio.IncompleteReadError, OSError), closing(writer):
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
        await asyncio.wait(server.connections)
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
            response = await transport.request(Request("/a", method=method, body=sent, check=check))
            assert await body(response) == b"ok"
        assert not permitted.unsent
        (first, second), *others = raw.received
        assert not others
        assert second == first
        check = SendCheck(refuse)
        with pytest.raises(Refused):
            await transport.request(Request("/refused", method=method, body=sent, check=check))
        assert check.unsent
        assert await body(await transport.request(Request("/b", method=method, body=sent))) == b"ok"
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
        sending = asyncio.create_task(transport.request(Request("/", method="PUT", body=LARGE, check=SendCheck(ask))))
        await asyncio.sleep(0.5)
        assert asked == []
        raw.reading.set()
        with pytest.raises(Refused):
            await sending
    # The rest was in the buffers of the kernel, and not in those of this process.
    assert len(asked) == 1
    assert asked[0] > len(LARGE) / 2
    assert raw.complete == []


async def test_repetition_by_a_borrowed_session_is_checked(
    server: tuple[RawServer, str, ssl.SSLContext | None],
) -> None:
    raw, url, tls = server
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks > 1:
            raise Refused

    async with transport_to(url, tls, borrowed=True) as transport:
        assert await body(await transport.request(Request("/"))) == b"ok"
        raw.silent = 1
        sent = SendCheck(check)
        with pytest.raises(TransportError) as failure:  # the first one may have been processed
            await transport.request(Request("/put", method="PUT", body=b"{}", check=sent))
        assert checks == 2
        assert not sent.unsent
        assert not failure.value.unsent


async def test_request_that_gets_no_connection_is_unsent() -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        stop = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await stop.wait()
            writer.close()

        async with listening(answer) as url, HttpTransport(url, session, header_timeout=0.2) as transport:
            taken = asyncio.create_task(transport.request(Request("/", total_timeout=30)))
            await asyncio.sleep(0.05)
            check = SendCheck(lambda: None)
            with pytest.raises(TransportError) as failure:
                await transport.request(Request("/", method="PUT", body=b"{}", check=check))
            assert failure.value.unsent
            stop.set()
            with pytest.raises(TransportError):
                await taken
