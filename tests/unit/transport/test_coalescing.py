"""The coalescer of reads: when it delays them, for how long, and what ends a delay."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import HttpTransport
from aioinformer.transport import HttpRequest
from aioinformer.transport.coalescing import ReadCoalescer
from tests.support.loopback import body, listening, socket_of

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 6000


class Clock:
    """A loop with a clock that the test moves, and a socket that records its option."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waits_for = 1
        self.refusal: Exception | None = None
        self.arrived = 0
        self.reads: list[int] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.coalescer = ReadCoalescer(self, self)  # type: ignore[arg-type] # the few methods that it calls

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        entry = (self.now + seconds, call)
        self.timers.append(entry)

        class Handle:
            def cancel(_) -> None:
                self.timers.remove(entry)

        return Handle()

    def setsockopt(self, level: int, option: int, value: int) -> None:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        if self.refusal is not None:
            raise self.refusal
        self.waits_for = value

    def arrive(self, after: float, size: int = PIECE) -> None:
        """Let bytes arrive after this number of seconds, and read whenever the socket is readable."""
        until = self.now + after
        while self.timers and self.timers[0][0] <= until:
            self.now, call = self.timers.pop()
            call()
            self._read_if_readable()
        self.now = until
        self.arrived += size
        self._read_if_readable()

    def _read_if_readable(self) -> None:
        if self.arrived >= self.waits_for:
            size, self.arrived = self.arrived, 0
            self.reads.append(size)
            self.coalescer.note_read(size)

    @property
    def naps(self) -> bool:
        return self.waits_for > 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize("rate", [1, 100, 500, 600])
def test_reads_at_a_low_rate_are_not_delayed(clock: Clock, rate: int) -> None:
    for _ in range(100):
        clock.arrive(1 / rate)
        assert not clock.naps
    assert not clock.timers


def test_frequent_reads_are_combined(clock: Clock) -> None:
    for _ in range(44):
        clock.arrive(0.00025)
    assert clock.reads == [PIECE] * 4 + [5 * PIECE] * 8


@pytest.mark.parametrize(("rate", "pieces"), [(700, 2), (1000, 3), (2000, 3), (3000, 4)])
def test_nap_combines_few_pieces_at_a_moderate_rate(clock: Clock, rate: int, pieces: int) -> None:
    for _ in range(4 + 10 * pieces):
        clock.arrive(1 / rate)
    assert clock.reads[-9:] == [pieces * PIECE] * 9


def test_nap_is_limited_to_three_milliseconds(clock: Clock) -> None:
    for _ in range(4):
        clock.arrive(0.00025)
    assert clock.naps
    assert [due - clock.now for due, _ in clock.timers] == [pytest.approx(0.0032)]
    clock.arrive(0.001)
    clock.arrive(1.0)
    assert clock.reads[4] == PIECE  # at the end of the nap


def test_useless_naps_are_given_up_for_a_while(clock: Clock) -> None:
    naps = 0
    for _ in range(300):  # the server sends a single piece whenever a nap begins
        naps += clock.naps
        clock.arrive(0.0035 if clock.naps else 0.00025)
    assert 3 <= naps <= 30  # without giving up, 75


def test_close_ends_the_nap(clock: Clock) -> None:
    for _ in range(20):
        clock.arrive(0.00025)
    clock.coalescer.close()
    assert not clock.naps
    assert not clock.timers


@pytest.mark.parametrize("refusal", [OSError("asyncio"), ValueError("uvloop: negative file descriptor")])
def test_socket_that_refuses_the_option_is_read_at_once(clock: Clock, refusal: Exception) -> None:
    clock.refusal = refusal
    for _ in range(20):
        clock.arrive(0.00025)
    assert not clock.timers
    clock.refusal = None
    for _ in range(4):
        clock.arrive(0.00025)
    clock.refusal = refusal  # the socket closes
    clock.coalescer.close()
    assert not clock.timers


async def test_connection_serves_the_next_response_at_once_after_a_stream() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for pieces in (500, 1):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(pieces):
                writer.write(b"4\r\nabc\n\r\n")
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")

    async with listening(serve) as url, HttpTransport(url) as transport:
        response = await transport.request(HttpRequest("/", stream=True))
        kept: socket.socket = socket_of(response)
        assert len(await body(response)) == 2000
        assert kept.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
        assert await body(await transport.request(HttpRequest("/"))) == b"abc\n"


@pytest.mark.parametrize("collect", [True, False])
async def test_transport_reads_each_event_at_once_if_it_shall_not_collect(collect: bool) -> None:
    lowest: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(500):
            writer.write(b"4\r\nabc\n\r\n")
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")

    async with listening(serve) as url, HttpTransport(url, collect_reads=collect) as transport:
        response = await transport.request(HttpRequest("/", stream=True))
        sock: socket.socket = socket_of(response)
        async for _ in response.chunks():
            lowest.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT))
    assert (max(lowest) > 1) is collect
