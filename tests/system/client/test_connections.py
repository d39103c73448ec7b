"""The client over a real connection: failures before a request is sent, failures after that, and a late server."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest

from aioinformer import Client, HttpTransport
from aioinformer.errors import TransportError, WriteOutcomeUnknown
from aioinformer.testing import ApiServer
from tests.support.loopback import free_port
from tests.support.scripted_transport import OBJECT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.transport import Credential

ANSWER = json.dumps(OBJECT).encode()
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWER) + ANSWER


class Counting:
    """Answers each request by the next of its answers, and closes the connection if that is incomplete.

    Attributes:
        methods: of the requests.
    """

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.methods: list[str] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                _, found, rest = head.lower().partition("content-length:")
                if found:
                    await reader.readexactly(int(rest.partition("\r\n")[0]))
                self.methods.append(head.partition(" ")[0])
                answer = self._answers.pop(0) if self._answers else WHOLE
                writer.write(answer)
                if answer != WHOLE:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        server = await asyncio.start_server(self.connected, "127.0.0.1", port)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()


class Failing:
    """Credentials that cannot be obtained."""

    async def current(self) -> Credential:
        raise TransportError("the login has expired")

    async def renew(self, refused: Credential) -> Credential:
        raise TransportError("the login has expired")


async def test_write_waits_for_a_server_that_starts() -> None:
    port = free_port()
    server = Counting()
    async with HttpTransport(f"http://127.0.0.1:{port}") as transport:
        writing = asyncio.ensure_future(Client(transport).core.v1.configmaps.create(OBJECT))
        await asyncio.sleep(0.2)
        assert not writing.done()
        async with server.serve(port):
            made = await writing
    assert (made.metadata.name, server.methods) == ("a", ["POST"])


async def test_refused_connection_means_that_nothing_was_written() -> None:
    async with HttpTransport(f"http://127.0.0.1:{free_port()}") as transport:
        with pytest.raises(TransportError, match="cannot connect") as caught:
            await Client(transport, timeout=0.5).core.v1.configmaps.create(OBJECT)
    assert (type(caught.value), caught.value.unsent) == (TransportError, True)


async def test_untrusted_certificate_is_raised_at_once() -> None:
    async with ApiServer(tls=True) as server, HttpTransport(server.url) as transport, asyncio.timeout(50):
        with pytest.raises(TransportError, match="certificate is not trusted") as caught:
            await Client(transport).core.v1.namespaces.get("default")
    assert (caught.value.unsent, caught.value.transient) == (True, False)


async def test_failed_credentials_are_raised_at_once() -> None:
    async with HttpTransport("http://127.0.0.1:1", credentials=Failing()) as transport, asyncio.timeout(50):
        with pytest.raises(TransportError, match="login has expired") as caught:
            await Client(transport).core.v1.configmaps.create(OBJECT)
    assert type(caught.value) is TransportError


@pytest.mark.parametrize("cut", [b"", WHOLE[:20], WHOLE[:-5]], ids=["no answer", "half a head", "half a body"])
async def test_cut_write_is_sent_once_and_has_an_unknown_outcome(cut: bytes) -> None:
    server = Counting(WHOLE, cut)
    async with server.serve() as url, HttpTransport(url) as transport:
        config_maps = Client(transport).core.v1.configmaps
        await config_maps.create(OBJECT)  # the next request uses a pooled connection
        with pytest.raises(WriteOutcomeUnknown):
            await config_maps.create(OBJECT)
    assert server.methods == ["POST", "POST"]


@pytest.mark.parametrize("cut", [b"", WHOLE[:20], WHOLE[:-5]], ids=["no answer", "half a head", "half a body"])
async def test_cut_read_is_repeated(cut: bytes) -> None:
    server = Counting(cut)
    async with server.serve() as url, HttpTransport(url) as transport:
        found = await Client(transport).core.v1.configmaps.get("shop/a")
    assert (found.metadata.name, server.methods) == ("a", ["GET", "GET"])


@asynccontextmanager
async def silent(answer: bytes = b"") -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Yield the authority of a server that never answers more than this, and an event: it has received something."""
    received, connections = asyncio.Event(), set[asyncio.StreamWriter]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        while await reader.read(1000):
            received.set()
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", received
        for each in connections:
            each.close()


each_session = pytest.mark.parametrize("borrowed", [False, True], ids=["own session", "borrowed session"])


@each_session
async def test_write_whose_connection_was_never_made_has_a_known_outcome(borrowed: bool) -> None:
    async with silent() as (authority, _), aiohttp.ClientSession() as session:
        url = f"https://{authority}"  # the handshake gets no answer
        async with HttpTransport(url, session if borrowed else None) as transport:
            with pytest.raises(TransportError, match=r"no answer within 0\.3 s") as caught:
                await Client(transport, timeout=0.3).core.v1.configmaps.create(OBJECT)
        assert (type(caught.value), caught.value.unsent) == (TransportError, True)


@each_session
async def test_write_that_was_handed_over_has_an_unknown_outcome_after_its_timeout(borrowed: bool) -> None:
    async with silent() as (authority, received), aiohttp.ClientSession() as session:
        async with HttpTransport(f"http://{authority}", session if borrowed else None) as transport:
            with pytest.raises(WriteOutcomeUnknown):
                await Client(transport, timeout=0.3).core.v1.configmaps.create(OBJECT)
        assert received.is_set()
