"""Invalid HTTP: the informer reports it, backs off, and recovers with the server.

A server on loopback sends exact bytes as its first responses; later ones are correct.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import tracemalloc
import zlib
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp
import pytest

from aioinformer import HttpTransport, ListWatch, Resource, RunOptions, SharedIndexInformer
from aioinformer.backoff import BackoffOptions
from aioinformer.errors import AioinformerError, TransportError
from aioinformer.models import core_v1
from aioinformer.reflector import InformerState, Phase
from aioinformer.reflector import response_reader as responses
from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator


#: Writes a response on a connection after its request was read; the connection is closed when it returns.
Script: TypeAlias = "Callable[[asyncio.StreamWriter], Awaitable[None]]"

LIST = json.dumps(
    {
        "kind": "ConfigMapList",
        "metadata": {"resourceVersion": "7"},
        "items": [
            {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "3"}}
            for name in "ab"
        ],
    }
).encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class RawServer:
    """Answers the first requests by scripts, and all others as an API server with two ConfigMaps.

    Attributes:
        url: of the server.
        paths: requested paths.
    """

    def __init__(self, scripts: list[Script]) -> None:
        self._scripts = scripts
        self.paths: list[str] = []
        self.url = ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.paths.append(head.split(b" ", 2)[1].decode())
                if self._scripts:
                    await self._scripts.pop(0)(writer)
                    return
                await self._good(writer)

    async def _good(self, writer: asyncio.StreamWriter) -> None:
        if "watch=true" in self.paths[-1]:
            writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
            await asyncio.get_running_loop().create_future()
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(LIST) + LIST)
        await writer.drain()


@asynccontextmanager
async def raw_server(*scripts: Script) -> AsyncIterator[RawServer]:
    """Run a server for the length of a block."""
    server = RawServer(list(scripts))
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(asyncio.CancelledError):
                await server.connected(reader, writer)
        finally:
            connections.discard(task)
            writer.close()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        listener.close()
        for connection in connections:
            connection.cancel()
        if connections:
            await asyncio.wait(connections)


def says(data: bytes, *, hangs: bool = False) -> Script:
    """Return a script that writes bytes, then closes the connection or leaves it open."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if hangs:
            await asyncio.get_running_loop().create_future()

    return script


def for_ever(first: bytes, again: bytes) -> Script:
    """Return a script that repeats bytes without end."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(0)

    return script


CAP = 1_000_000
OPTIONS = RunOptions(
    streaming_list=False, idle_timeout=0.2, max_frame=CAP, backoff=BackoffOptions(initial=0.01, cap=0.02)
)
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = b"Content-Length: %d\r\n\r\n" % len(LIST) + LIST


def chunks(data: bytes, size: int, extension: bytes = b"") -> bytes:
    """Return a body in chunked encoding."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n\r\n"


def bomb(megabytes: int) -> Script:
    """Return a script that writes a response that is small on the wire and large when decompressed."""

    async def script(writer: asyncio.StreamWriter) -> None:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        spaces = b" " * 1_000_000
        pieces = [packer.compress(b'{"items":[{"a":"'), *[packer.compress(spaces) for _ in range(megabytes)]]
        packed = b"".join(pieces) + packer.flush()
        writer.write(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
        await writer.drain()

    return script


#: Invalid responses: the informer must report an error and retry.
BROKEN: dict[str, Script] = {
    "nothing": says(b""),
    "silence": says(b"", hangs=True),
    "noise": says(bytes(range(256)) * 8),
    "a TLS alert": says(b"\x15\x03\x03\x00\x02\x02\x28"),
    "a status that is no number": says(b"HTTP/1.1 abc OK\r\n\r\n"),
    "half a head": says(b"HTTP/1.1 200 OK\r\nContent-"),
    "half a head, and silence": says(b"HTTP/1.1 200 OK\r\nContent-", hangs=True),
    "headers without end": for_ever(b"HTTP/1.1 200 OK\r\n", b"X-Header: value\r\n" * 100),
    "a header without end": for_ever(b"HTTP/1.1 200 OK\r\nX-Header: ", b"x" * 10_000),
    "continues without end": for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a body that is shorter than it says": says(OK + b"Content-Length: 100000\r\n\r\n" + LIST),
    "a body that is longer than it says": says(OK + b"Content-Length: 20\r\n\r\n" + LIST),
    "a negative length": says(OK + b"Content-Length: -5\r\n\r\n" + LIST),
    "a chunk with a size that is none": says(CHUNKED + b"xyz\r\n" + LIST),
    "a chunk of exabytes": says(CHUNKED + b"ffffffffffffff\r\n" + LIST),
    "a chunk with a size without end": for_ever(CHUNKED, b"0" * 10_000),
    "a chunk with an extension without end": for_ever(CHUNKED + b"5;", b"x" * 10_000),
    "a chunk without its end": says(CHUNKED + b'5\r\n{"ite5\r\nms":['),
    "trailers without end": for_ever(CHUNKED + b"0\r\n", b"X-Trailer: value\r\n" * 100),
    "a redirect": says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
    "an upgrade": says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nxyz"),
    "no content": says(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "an unknown encoding": says(OK + b"Content-Encoding: rot13\r\nContent-Length: 5\r\n\r\nuryyb"),
    "an encoding that it is not in": says(OK + b"Content-Encoding: gzip\r\n" + SIZED),
    "a gzip bomb": bomb(100),
    "a refusal without end": for_ever(
        b"HTTP/1.1 500 Error\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\noh no\r\n" * 99
    ),
    "a wait that is no number": says(b"HTTP/1.1 429 Busy\r\nRetry-After: NaN\r\nContent-Length: 0\r\n\r\n"),
    "a wait until never": says(b"HTTP/1.1 503 Busy\r\nRetry-After: Wed, 99 Foo 0\r\nContent-Length: 0\r\n\r\n"),
    "a list without end": for_ever(CHUNKED, chunks(b'{"a":"' + b"x" * 50_000, 50_006)[:-5]),
    "an item without end": for_ever(CHUNKED + chunks(b'{"items":[{"a":"', 16)[:-5], chunks(b"x" * 50_000, 50_000)[:-5]),
    "ever more brackets": for_ever(CHUNKED + chunks(b'{"items":[{"a":', 15)[:-5], chunks(b"[" * 50_000, 50_000)[:-5]),
}
#: Unusual but valid responses.
ODD: dict[str, Script] = {
    "chunks of one byte": says(CHUNKED + chunks(LIST, 1)),
    "chunks with extensions": says(CHUNKED + chunks(LIST, 50, b";name=value")),
    "a body until the connection ends": says(OK + b"\r\n" + LIST),
    "an old protocol": says(b"HTTP/1.0 200 OK\r\n\r\n" + LIST),
    "a type that is none": says(b"HTTP/1.1 200 OK\r\nContent-Type: text/\xff\r\n" + SIZED),
    "continues before it": says(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3 + OK + SIZED),
    "another answer behind it": says(OK + SIZED + OK + b"Content-Length: 2\r\n\r\n[]"),
}


@pytest.fixture(autouse=True)
def short_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time after which silence is noticed."""
    monkeypatch.setattr(responses, "_MIN_READ", 0.1)


@pytest.fixture(autouse=True)
def nothing_left_to_asyncio_to_report(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    gc.collect()
    complaints = [record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"]
    assert not complaints


async def followed(script: Script) -> tuple[list[Exception], int]:
    """Return the errors of an informer with these responses, and its number of requests until it watched."""
    resource: Resource[Any] = core_v1.CONFIG_MAPS
    errors: list[Exception] = []
    async with (
        raw_server(script) as server,
        HttpTransport(server.url, header_timeout=0.2) as transport,
    ):
        informer: SharedIndexInformer[Any] = SharedIndexInformer(ListWatch(transport, resource), options=OPTIONS)
        informer.set_watch_error_handler(errors.append)
        watching = asyncio.Event()
        informer.add_state_handler(lambda state: watching.set() if state.healthy else watching.clear())
        async with informer, asyncio.timeout(50):
            await informer.wait_for_sync()
            await watching.wait()
            assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b"]
        return errors, len(server.paths)


@pytest.mark.parametrize("what", BROKEN)
async def test_invalid_response_is_a_named_error_and_retried(what: str) -> None:
    errors, requests = await followed(BROKEN[what])
    assert errors
    assert all(isinstance(error, AioinformerError) and str(error) for error in errors)
    assert requests <= 4


@pytest.mark.parametrize("what", ODD)
async def test_unusual_response_is_accepted(what: str) -> None:
    errors, _ = await followed(ODD[what])
    assert errors == []


BOUNDED = pytest.mark.skipif(
    [int(each) for each in re.findall(r"\d+", aiohttp.__version__)[:3]] < [3, 13, 3],
    reason="aiohttp limits what it decompresses at once since 3.13.3",
)


@pytest.mark.parametrize(
    "what",
    [
        *[what for what in BROKEN if "without end" in what],
        *[pytest.param(what, marks=BOUNDED) for what in BROKEN if "bomb" in what],
    ],
)
async def test_endless_response_uses_bounded_memory(what: str) -> None:
    await followed(ODD["an old protocol"])  # do not count first imports
    tracemalloc.start()
    try:
        await followed(BROKEN[what])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * CAP


EVENT = json.dumps(
    {
        "type": "ADDED",
        "object": {"metadata": {"name": "c", "namespace": "default", "uid": "uid-c", "resourceVersion": "8"}},
    }
).encode()


async def test_watch_waits_for_its_head_as_long_as_for_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("watches", "list_watch"):
        monkeypatch.setattr(f"aioinformer.reflector.protocol.{module}.HEAD_PATIENCE", 0.05)
    happened, watching = asyncio.Event(), asyncio.Event()
    watches = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal watches
        while b"watch=true" not in await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(LIST) + LIST)
        watches += 1
        await happened.wait()
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\n\r\n" % (len(EVENT) + 1, EVENT))
        await reader.read()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        writer.close()

    def shown(state: InformerState) -> None:
        if state.phase is Phase.WATCHING:
            watching.set()

    resource: Any = core_v1.CONFIG_MAPS
    async with asyncio.timeout(50), await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with HttpTransport(f"http://127.0.0.1:{port}", header_timeout=0.2) as transport:
            with pytest.raises(TransportError, match="the response timed out"):
                await transport.request(HttpRequest("/watched-by-others", (("watch", "true"),)))
            informer = SharedIndexInformer(ListWatch(transport, resource), options=RunOptions(streaming_list=False))
            informer.add_state_handler(shown)
            async with informer:
                await watching.wait()
                happened.set()
                await informer.wait_for("default/c")
                assert informer.state.phase is Phase.WATCHING
    assert watches == 2
