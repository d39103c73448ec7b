"""Connections that open together over TLS: how many handshakes run at once, and what memory the connections keep."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.sslproto import SSLProtocol
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from yarl import URL

from aioinformer.errors import TransportError
from aioinformer.transport import Request
from aioinformer.transport.connections import AT_ONCE
from aioinformer.transport.http import HttpTransport
from aioinformer.transport.session import TLS
from tests.support.loopback import certified, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.transport.http import HttpResponse

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
        self._serving = set[asyncio.Task[Any]]()
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
            await asyncio.gather(*self._serving)

    def drop(self) -> None:
        """Break all connections."""
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()
        self.held.clear()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._serve(writer):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(_STREAM)

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._serve(writer):
            if self.hold:
                self.hold -= 1
                self.held.append(writer)
                if len(self.held) == AT_ONCE:
                    self.full.set()
                await reader.read()
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            async with self._serve(back):
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(1 << 16):
                target.write(data)
                await target.drain()
        target.transport.abort()

    @asynccontextmanager
    async def _serve(self, writer: asyncio.StreamWriter) -> AsyncIterator[None]:
        """Keep a connection until the block ends, or until all are broken."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self._open.append(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                yield
        finally:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


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
        response = await transport.request(Request("/", stream=True, late_head=True))
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
            assert protocols.buffered() == SSLProtocol.max_size
            cluster.drop()
            for response in responses:
                await response.close()
            protocols.all = protocols.all[:1]  # its buffer is the shared one


async def test_request_with_a_timeout_does_not_wait_for_watches_to_connect(cluster: Cluster) -> None:
    cluster.hold = AT_ONCE
    async with HttpTransport(cluster.url, ssl=cluster.settings, connect_timeout=60.0) as transport:
        opening = asyncio.create_task(open_streams(transport, AT_ONCE))
        async with asyncio.timeout(30):
            await cluster.full.wait()
            response = await transport.request(Request("/", total_timeout=10.0))
            assert response.status == 200
            await response.close()
        opening.cancel()
        await asyncio.wait({opening})


async def test_connect_timeout_begins_after_the_wait_for_others(cluster: Cluster) -> None:
    cluster.hold = AT_ONCE
    async with HttpTransport(cluster.url, ssl=cluster.settings, connect_timeout=2.0) as transport:
        opened = await asyncio.gather(*(open_streams(transport, 1) for _ in range(2 * AT_ONCE)), return_exceptions=True)
        errors = [each for each in opened if isinstance(each, BaseException)]
        assert {type(error) for error in errors} == {TransportError}
        assert all("the connection timed out" in str(error) for error in errors)
        assert len(errors) == AT_ONCE


async def test_wait_for_others_ends_with_the_transport(cluster: Cluster) -> None:
    cluster.hold = 2 * AT_ONCE
    async with HttpTransport(cluster.url, ssl=cluster.settings) as transport:
        opening = [asyncio.create_task(open_streams(transport, 1)) for _ in range(2 * AT_ONCE)]
        async with asyncio.timeout(30):
            await cluster.full.wait()
            await transport.aclose()
            cluster.drop()
            ended = await asyncio.gather(*opening, return_exceptions=True)
    assert {type(each) for each in ended} == {TransportError}
    assert not cluster.held
