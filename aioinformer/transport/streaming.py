"""Connections of aiohttp whose bodies are read in whole buffers.

aiohttp opens and pools the connections, speaks TLS and to proxies, sends requests, and judges the head of an answer.
Its parser calls back into Python several times for every chunk of a body, which for a watch, an event a chunk, is a
large part of what an event costs. Here the protocol takes the body from it: bytes are read into one buffer, and what
their chunks carry goes to aiohttp's own stream in one piece a read.

Rules that are easy to break:

* aiohttp's parser is given the head up to its blank line and not a byte more. If it finds an answer anywhere else than
  at that line, or an answer whose body is not plainly chunked or of a stated length (encoded, until the end of the
  connection, none), everything goes to it as if nobody stood in between.
* Its parser still believes that the body is to come. That is wanted while it lasts, for all of aiohttp's own
  bookkeeping; from the body's end on it must be asked nothing more.
* Of a body that begins in the same read as its head, no more is read before somebody wants it. Reading stops only if
  something waits in the stream: nothing else makes aiohttp go on.
* A connection is used again only if the body ended cleanly and nothing came behind it.
* All of this is below what aiohttp promises. `lean_connector` tries it out once, with an answer from memory; with an
  aiohttp in which it does not work, connections are aiohttp's own.
"""

from __future__ import annotations

import asyncio
import functools
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler

from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

_log = get_logger("aioinformer.transport")

_HEAD_SLICE: Final = 4096
"""More than the longest line of a chunk that is accepted."""
_MAX_TRAILERS: Final = 8192

_EXTENSION: Final = rb"[ \t]{0,16};[\t\x20-\x7e\x80-\xff]{0,4000}"
# In front of every chunk but the first is the end of the one before it; the first is read as if it had one, too.
_LINE: Final = re.compile(rb"\r\n([0-9A-Fa-f]{1,16})(?:" + _EXTENSION + rb")?\r\n").match
_LINE_BEGUN: Final = re.compile(
    rb"(?:\r(?:\n(?:[0-9A-Fa-f]{1,16}(?:[ \t]{0,16}|" + _EXTENSION + rb")\r?)?)?)?"
).fullmatch
_NAME: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_VALUE: Final = rb":[\t\x20-\x7e\x80-\xff]*+"
_FIELDS: Final = rb"(?:" + _NAME + _VALUE + rb"\r\n)*+"
_TRAILERS: Final = re.compile(_FIELDS + rb"\r\n").match
_TRAILERS_BEGUN: Final = re.compile(_FIELDS + rb"(?:\r|" + _NAME + rb"(?:" + _VALUE + rb"\r?)?)?").fullmatch

_READ = 256 * 1024
"""Bytes that are read at once, at most: one buffer for all connections of a transport."""

_SLICE = 16 * 1024
"""Bytes that are read at once as long as a head is to come, and of the body behind it."""

_BLANK_LINE = b"\r\n\r\n"
_LENGTH = re.compile("[0-9]{1,15}").fullmatch


def lean_connector(
    kind: Callable[..., aiohttp.TCPConnector] = aiohttp.TCPConnector, **arguments: Any
) -> aiohttp.TCPConnector:
    """A connector of aiohttp whose connections read bodies in whole buffers, if that works with this aiohttp.

    Args:
        kind: makes the connector, `aiohttp.TCPConnector` or a class below it.
        arguments: of `kind`.
    """
    connector = kind(**arguments)
    loop = asyncio.get_running_loop()
    factory = getattr(connector, "_factory", None)
    if getattr(factory, "func", None) is ResponseHandler and _works(loop):
        make = functools.partial(LeanHandler, loop=loop, buffer=memoryview(bytearray(_READ)))
        connector._factory = make  # type: ignore[assignment] # of a subclass
    else:
        _log.debug("bodies are read by aiohttp %s itself: its connections are not as expected", aiohttp.__version__)
    return connector


class LeanHandler(ResponseHandler, asyncio.BufferedProtocol):
    """aiohttp's protocol of one connection, with another way for bodies.

    Args:
        loop: of the connection.
        buffer: to read into; it is free again as soon as a read was taken, and so may be shared.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: memoryview) -> None:
        super().__init__(loop)
        self._lean_buffer = buffer
        self._take: Callable[[LeanHandler, memoryview], None] = LeanHandler._pass_on
        self._behind = b""  # the last bytes of the head that the parser was given
        self._answer: tuple[Any, Any] | None = None
        self._body: Body | None = None
        self._stream: aiohttp.StreamReader | None = None

    # What asyncio calls

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._lean_buffer[:_SLICE] if self._take is LeanHandler._head else self._lean_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._take(self, self._lean_buffer[:nbytes])

    def data_received(self, data: bytes) -> None:
        # From loops that have no buffers for it; and from aiohttp, empty, when its parser is to go on.
        if data or self._take is LeanHandler._pass_on:
            self._take(self, memoryview(data))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._fail("the connection ended before the body", exc)
        super().connection_lost(exc)

    # What aiohttp calls

    def set_response_params(self, *arguments: Any, **options: Any) -> None:
        self._take, self._behind, self._answer = LeanHandler._head, b"", None
        super().set_response_params(*arguments, **options)

    def feed_data(self, data: tuple[Any, Any], size: int = 0) -> None:
        # The parser's answer, on its way to whoever sent the request.
        self._answer = data
        super().feed_data(data, size)

    # What becomes of bytes

    def _head(self, data: memoryview) -> None:
        while data and self.exception() is None:
            window = self._behind + data[:_SLICE]
            found = window.find(_BLANK_LINE)
            used = (found + len(_BLANK_LINE) if found >= 0 else len(window)) - len(self._behind)
            super().data_received(bytes(data[:used]))
            data = data[used:]
            self._behind = window[-3:] if found < 0 else b""
            if self._answer is None:
                continue
            (message, stream), self._answer = self._answer, None
            if found >= 0 and 100 <= message.code < 200 and message.code != 101:
                continue  # the answer itself is still to come
            if found >= 0 and self.read_timeout is None:
                self._body = _body_of(message, stream)
            if self._body is None:
                self._take = LeanHandler._pass_on
            else:
                self._take, self._stream = LeanHandler._carried, stream
            if data:
                self._take(self, data)
                if self._body is not None and stream.total_bytes:
                    # Until somebody takes what has come: then aiohttp's stream goes on. What comes before its turn
                    # (the next page of a list) must not hold the loop beside what is read now.
                    self.pause_reading()
            return

    def _carried(self, data: memoryview) -> None:
        body, stream = self._body, self._stream
        assert body is not None
        assert stream is not None
        try:
            carried, used = body.feed(data)
        except MalformedBody as error:
            self._fail(str(error), error)
            self._unasked(data)
            return
        stream.feed_data(carried)
        if body.ended:
            self._take = LeanHandler._unasked
            self._body = self._stream = self._parser = self._payload = None
            if used < len(data):
                self.force_close()
            if self._reading_paused:
                self.resume_reading()  # the next answer must not wait until this one is read
            stream.feed_eof()

    def _pass_on(self, data: memoryview) -> None:
        super().data_received(bytes(data))

    def _unasked(self, data: memoryview) -> None:
        """What comes between two answers is none."""
        self.force_close()
        if self.transport is not None:
            self.transport.close()

    def _fail(self, reason: str, cause: BaseException | None) -> None:
        stream = self._stream
        if stream is None:
            return
        self._take = LeanHandler._unasked
        self._body = self._stream = self._payload = None
        if stream.exception() is None:
            error = aiohttp.ClientPayloadError(reason)
            error.__cause__ = cause
            stream.set_exception(error)


class Body(Protocol):
    """A body that is still on its way.

    Attributes:
        ended: it is complete.
    """

    ended: bool

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        """Returns what the next bytes carry, and how many of them belong to the message: all, until it has ended.

        Raises:
            MalformedBody: no body of this kind goes on like this.
        """
        ...


class SizedBody:
    """A body of so many bytes, as `Content-Length` says."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.ended = not size

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        taken = bytes(data[: self._left])
        self._left -= len(taken)
        self.ended = not self._left
        return taken, len(taken)


class ChunkedBody:
    """A body in chunks, each behind a line with its size; trailers are judged, and dropped."""

    def __init__(self) -> None:
        self.ended = False
        self._left = 0  # of the chunk that is under way
        self._last = False  # the chunk that ends the body was seen
        self._begun = b"\r\n"  # of a line, or of the trailers

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        size = len(data)
        at, left = (0, self._left) if self._left else self._next(data, 0)
        self._left = 0
        pieces: list[memoryview] = []
        while left:
            stop = at + left
            pieces.append(data[at:stop])
            if stop > size:
                self._left = stop - size
                at = size
                break
            line = _LINE(data, stop)
            if line is not None:
                at, left = line.end(), int(line[1], 16)
            if line is None or not left:
                at, left = self._next(data, stop)
        return b"".join(pieces), at

    def _next(self, data: memoryview, at: int) -> tuple[int, int]:
        """Where the next chunk begins and how long it is; without a length it is not there yet, or there is none."""
        if not self._last:
            begun = self._begun + data[at : at + _HEAD_SLICE]
            line = _LINE(begun)
            if line is None:
                if _LINE_BEGUN(begun) is None:
                    raise MalformedBody("a chunk does not begin with its size, behind the end of the chunk before it")
                self._begun = begun
                return len(data), 0
            at += line.end() - len(self._begun)
            self._begun = b""
            if left := int(line[1], 16):
                return at, left
            self._last = True
        begun = self._begun + data[at : at + _MAX_TRAILERS + 1]
        trailers = _TRAILERS(begun)
        if len(begun if trailers is None else trailers[0]) > _MAX_TRAILERS:
            raise MalformedBody(f"the trailers exceed {_MAX_TRAILERS} bytes")
        if trailers is not None:
            self.ended = True
            return at + trailers.end() - len(self._begun), 0
        if _TRAILERS_BEGUN(begun) is None:
            raise MalformedBody("behind the last chunk is neither a trailer nor the end")
        self._begun = begun
        return len(data), 0


class MalformedBody(ValueError):
    """The bytes are no body of that kind; where it ends cannot be known."""


def _body_of(message: Any, stream: Any) -> Body | None:
    """How to read the body of an answer; None if that is better left to aiohttp."""
    headers = message.headers
    if type(stream) is not aiohttp.StreamReader or message.upgrade or "Content-Encoding" in headers:
        return None
    encodings, lengths = headers.getall("Transfer-Encoding", ()), headers.getall("Content-Length", ())
    if message.chunked:
        plain = len(encodings) == 1 and encodings[0].lower() == "chunked" and not lengths
        return ChunkedBody() if plain and message.version == aiohttp.HttpVersion11 else None
    if len(lengths) == 1 and not encodings and _LENGTH(lengths[0]):
        return SizedBody(int(lengths[0]))
    return None


def _works(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether an answer that is fed by hand gives its body, and leaves a connection that can be used again."""
    head, rest = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", b"3\r\ntwo\r\n0\r\n\r\n"
    try:
        handler = LeanHandler(loop, memoryview(bytearray(_SLICE)))
        handler.set_response_params()
        handler.data_received(head)
        stream = handler._stream
        assert stream is not None
        paused, one, still_paused = handler._reading_paused, stream.read_nowait(), handler._reading_paused
        handler.get_buffer(-1)[: len(rest)] = rest
        handler.buffer_updated(len(rest))
        return paused and not still_paused and one + stream.read_nowait() == b"onetwo" and stream.is_eof()
    except Exception:
        return False
