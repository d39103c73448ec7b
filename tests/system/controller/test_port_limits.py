"""The ports of a manager under slow, invalid and many connections."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme

from aioinformer import listening as module
from aioinformer.controller import Manager
from aioinformer.listening import Port, listening
from aioinformer.serving import Answer, WebRequest
from aioinformer.webhooks import AdmissionRequest, WebhookServer
from tests.support.loopback import certified, free_port
from tests.support.reviews import WIDGETS, Widget, review, widget
from tests.support.silent_peers import SilentClients, left_open

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from aioinformer.testing import ApiServer

HALF = b"POST / HTTP/1.1\r\nHost: a\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1"
WHOLE = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"


async def respond(request: WebRequest) -> Answer:
    if request.path == "wait":
        await asyncio.sleep(0.5)
    if request.path == "fail":
        raise ValueError("broken")
    return Answer(200, "text/plain", b"x" * (8_000_000 if request.path == "large" else 2))


@asynccontextmanager
async def serving(most: int = 4) -> AsyncIterator[Port]:
    async with listening(respond, 1000, "127.0.0.1", 0, what="the server", remedy="", most=most) as port:
        yield port


@asynccontextmanager
async def connected(port: int, *sent: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for each in sent:
            writer.write(each)
        yield reader, writer
    finally:
        writer.close()


async def seconds_until_closed(reader: asyncio.StreamReader) -> float:
    clock = asyncio.get_running_loop().time
    began = clock()
    async with asyncio.timeout(50):
        try:
            while await reader.read(1 << 20):
                pass
        except ConnectionError:
            pass
    return clock() - began


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the deadlines short."""
    for name, seconds in (("HEADER", 0.3), ("_BODY", 0.6), ("_UNREAD", 0.3)):
        monkeypatch.setattr(module, name, seconds)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("sent", "at_least"),
    [(b"", 0.2), (HALF, 0.2), (BODY, 0.5), (WHOLE, 0.0)],
    ids=["nothing", "half a header", "half a body", "whole"],
)
async def test_incomplete_requests_have_a_deadline(
    sent: bytes, at_least: float, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as port, connected(port.number, sent) as (reader, writer):
        if sent == WHOLE:
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readexactly(2)
            await asyncio.sleep(0.5)  # there is no deadline between requests
            writer.write(HALF)
        assert at_least <= await seconds_until_closed(reader) < 9
    assert "the server: connections of clients were closed or not accepted: a " in caplog.text


@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
def test_nothing_is_open_after_the_end_of_a_port(headers: str) -> None:
    authority, trusting = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(trusting)

    async def main() -> None:
        async with listening(
            respond, 1000, "127.0.0.1", 0, what="the server", remedy="", most=4, tls=certified(authority)
        ) as port:
            await clients.request(port.number, trusting, headers)

    with SilentClients() as clients:
        assert left_open(main) == []


async def test_bodies_that_are_not_complete_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BODIES", 2_000)
    body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n"
    async with (
        serving() as port,
        connected(port.number, body + b"x" * 800) as (oldest, _),
        connected(port.number, body + b"x" * 800) as (second, writer),
    ):
        await asyncio.sleep(0.1)
        async with connected(port.number, body + b"x" * 900) as (third, _):
            assert (await third.readline()).startswith(b"HTTP/1.1 200")
        await seconds_until_closed(oldest)
        writer.write(b"x" * 100)
        assert (await second.readline()).startswith(b"HTTP/1.1 200")
        async with connected(port.number, body.replace(b"900", b"1100") + b"x" * 1100) as (large, _):
            assert (await large.readline()).startswith(b"HTTP/1.1 413")


@pytest.mark.usefixtures("short")
async def test_answer_that_is_not_taken_has_a_deadline() -> None:
    async with serving() as port:
        with socket.create_connection(("127.0.0.1", port.number)) as client:
            client.sendall(WHOLE.replace(b"/a", b"/large"))
            async with asyncio.timeout(50):
                while not port.answering and not port.waiting:  # noqa: ASYNC110 - there is no event
                    await asyncio.sleep(0.01)
                while port.answering or port.waiting:  # noqa: ASYNC110 - there is no event
                    await asyncio.sleep(0.01)


@pytest.mark.usefixtures("short")
async def test_handshake_has_a_deadline() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    async with (
        listening(respond, 1000, "127.0.0.1", 0, what="it", remedy="", most=4, tls=context) as port,
        connected(port.number, b"\x16\x03\x01") as (reader, _),
    ):
        assert await seconds_until_closed(reader) < 9


@pytest.mark.usefixtures("short")
async def test_kept_connections_stay_with_tls(caplog: pytest.LogCaptureFixture) -> None:
    authority, context, trusting = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(trusting)
    async with listening(respond, 1000, "127.0.0.1", 0, what="it", remedy="", most=4, tls=context) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number, ssl=trusting)
        for _ in range(3):
            writer.write(WHOLE)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readexactly(2)
            await asyncio.sleep(0.4)
        writer.close()
    assert caplog.text == ""


async def test_connections_without_a_request_are_closed_first() -> None:
    async with serving(most=3) as port, connected(port.number, WHOLE) as (kept, writer):
        await kept.readuntil(b"\r\n\r\n")
        async with connected(port.number, HALF) as (slow, _), connected(port.number, HALF) as (slower, _):
            async with connected(port.number, WHOLE) as (new, _):
                assert (await new.readline()).startswith(b"HTTP/1.1 200")
                await seconds_until_closed(slow)
                assert not kept.at_eof()
                assert not slower.at_eof()
            # Two kept ones and a slow one are left.
            async with connected(port.number, WHOLE) as (another, _):
                assert (await another.readline()).startswith(b"HTTP/1.1 200")
                await kept.read(2)
                writer.write(WHOLE)
                assert (await kept.readline()).startswith(b"HTTP/1.1 200")


async def test_requests_under_way_are_never_closed() -> None:
    waiting = WHOLE.replace(b"/a", b"/wait")
    async with (
        serving(most=1) as port,
        connected(port.number, waiting) as (first, _),
        connected(port.number, waiting) as (second, _),
        asyncio.timeout(50),
    ):
        assert (await first.readline()).startswith(b"HTTP/1.1 200")
        assert (await second.readline()).startswith(b"HTTP/1.1 200")


async def test_port_that_is_left_answers_until_no_request_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAVING", (0.3, 0.3, 5.0))
    clock = asyncio.get_running_loop().time
    async with serving() as port:
        began = clock()
        leaving = asyncio.create_task(port.leave())
        await asyncio.sleep(0.2)
        async with connected(port.number, WHOLE) as (reader, _):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Connection: close" in head
            await seconds_until_closed(reader)
        await leaving
        assert clock() - began >= 0.45


async def test_invalid_requests_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as port:
        for _ in range(20):
            async with connected(port.number, b"GET / HTTP/1.1\r\nHost: a\r\n: \x00\r\n\r\n") as (reader, _):
                await seconds_until_closed(reader)
    assert len(caplog.records) <= 2


async def test_error_of_an_answer_is_logged_and_status_500(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as port:
        for _ in range(3):
            async with connected(port.number, WHOLE.replace(b"/a", b"/fail")) as (reader, _):
                assert (await reader.readline()).startswith(b"HTTP/1.1 500")
    assert [each.exc_info is not None for each in caplog.records] == [True, False]
    assert "the server has failed: broken" in caplog.text


@pytest.fixture
def few_files() -> Iterator[None]:
    """Leave the process some free files only."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as probe:
        resource.setrlimit(resource.RLIMIT_NOFILE, (probe.fileno() + 40, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("few_files")
async def test_missing_files_close_slow_connections(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEADER", 600.0)  # it is not the deadline that closes them
    async with serving(most=1000) as port:
        clients = [socket.socket() for _ in range(25)]
        for each in clients:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port.number))
        await asyncio.sleep(0.3)
        async with connected(port.number, WHOLE) as (reader, _), asyncio.timeout(50):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for each in clients:
            each.close()
    assert "no file was free" in caplog.text
    assert len(caplog.records) <= 2


FLOOD = 5_000
#: Those to each of the other ports, which have a cap of 64.
OTHERS = 500


async def test_flood_refuses_no_review_probe_or_page(api_server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    server = WebhookServer("widgets", port=0, host="127.0.0.1", hosts=("127.0.0.1",))
    ports: Any = {"health_port": free_port(), "health_host": "127.0.0.1", "debug_port": free_port()}
    manager = Manager("it", client=api_server.url, webhooks=server, **ports)

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    async with manager, aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session:
        async with asyncio.timeout(50):
            while not manager.ready():  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)
        hooks, probes = manager.admission.port, manager.health_port
        targets = (f"{OTHERS}@{probes}", f"{OTHERS}@{ports['debug_port']}", f"{FLOOD}@{hooks}:tls")
        arguments = ("-m", "tests.support.flood", *targets)
        flood = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE)
        assert flood.stdout is not None
        assert flood.stdin is not None
        flooding, reviewed = asyncio.ensure_future(flood.stdout.readline()), 0
        ended = False
        while not ended:
            ended = flooding.done()
            # As the API server does, some reviews open a connection of their own, and others use one that is kept.
            headers = {"Connection": "close"} if reviewed % 2 else {}
            url = f"https://127.0.0.1:{hooks}/validate/widgets.example.com?timeout=10s"
            async with session.post(url, json=review(widget()), ssl=trusting, headers=headers) as answer:
                assert (await answer.json())["response"]["allowed"]
            once = {"Connection": "close"}
            async with session.get(f"http://127.0.0.1:{probes}/livez", headers=once) as answer:
                assert answer.status == 200
            async with session.get(
                f"http://127.0.0.1:{ports['debug_port']}/", headers={"Connection": "close"}
            ) as answer:
                assert answer.status == 200
            reviewed += 1
        assert int(flooding.result()) > 0.9 * (FLOOD + 2 * OTHERS)
        flood.stdin.close()
        await flood.wait()
    assert reviewed > 10
    assert len(caplog.records) <= 100
    assert "there were more than" in caplog.text


PROGRAM = """
import atexit, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048))
atexit.register(lambda: print(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
from aioinformer.controller import Manager
Manager("it").main()
"""


async def test_program_raises_the_limit_of_open_files(tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "missing")}
    run = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, env=environment, stdout=PIPE, stderr=PIPE)
    output, _ = await run.communicate()
    assert (run.returncode, output) == (2, b"2048\n")
