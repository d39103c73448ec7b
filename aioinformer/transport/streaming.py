"""aiohttp connections that read bodies in whole buffers.

aiohttp opens and pools the connections, handles TLS and proxies, sends requests, and parses the head of a response. Its
parser calls Python several times for each chunk of a body. A watch has an event per chunk, so that this is a large part
of the cost of an event. Here, the protocol decodes the body itself: it reads bytes into one buffer, and passes the
content of all chunks of a read to aiohttp's stream in one piece.

Rules that are easy to break:

* aiohttp's parser gets the head up to its blank line, and not one byte more. In two cases it reads the whole response:
  the head does not end at that line, or the body is neither plainly chunked nor of a stated length (encoded, until the
  end of the connection, none).
* aiohttp's parser still expects the body. aiohttp's own bookkeeping needs that until the body ends; after its end, the
  parser must not be called again.
* If a body begins in the same read as its head, reading pauses until the reader takes these bytes. It must not pause
  while the stream is empty: then nothing makes aiohttp resume it.
* A connection is used again only if the body ended cleanly and no bytes came after it.
* All connections read into one buffer, also the encrypted bytes of TLS. `buffer_updated` must keep no view of it.
* This relies on internals of aiohttp. `lean_connector` tests them once with a response from memory; if that fails, the
  connections are aiohttp's own.
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
"""Longer than the longest chunk line that is accepted."""
_MAX_TRAILERS: Final = 8192

_EXTENSION: Final = rb"[ \t]{0,16};[\t\x20-\x7e\x80-\xff]{0,4000}"
# Each chunk line follows the line end of the chunk before it. The first one is parsed as if it did, too.
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
"""The size of the read buffer, which all connections of a transport share."""

_SLICE = 16 * 1024
"""The most bytes that are read at once until the head is complete, the beginning of the body included."""

_BLANK_LINE = b"\r\n\r\n"
_LENGTH = re.compile("[0-9]{1,15}").fullmatch


def lean_connector(
    kind: Callable[..., aiohttp.TCPConnector] = aiohttp.TCPConnector, **arguments: Any
) -> aiohttp.TCPConnector:
    """Return an aiohttp connector whose connections read bodies in whole buffers, if this aiohttp allows that.

    Args:
        kind: `aiohttp.TCPConnector` or a subclass.
        arguments: of `kind`.
    """
    connector = kind(**arguments)
    loop = asyncio.get_running_loop()
    factory = getattr(connector, "_factory", None)
    if getattr(factory, "func", None) is ResponseHandler and _works(loop):
        make = functools.partial(LeanHandler, loop=loop, buffer=memoryview(bytearray(_READ)))
        connector._factory = make  # type: ignore[assignment] # of a subclass
    else:
        _log.debug("aiohttp %s reads bodies itself, because its connections are not as expected", aiohttp.__version__)
    return connector


class LeanHandler(ResponseHandler, asyncio.BufferedProtocol):
    """aiohttp's protocol of one connection, with its own decoder for bodies.

    Args:
        loop: the event loop of the connection.
        buffer: the buffer to read into. Connections can share it, since each read is processed at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: memoryview) -> None:
        super().__init__(loop)
        self._lean_buffer = buffer
        self._take: Callable[[LeanHandler, memoryview], None] = LeanHandler._pass_on
        self._behind = b""  # the last bytes of the head that the parser has got
        self._response: tuple[Any, Any] | None = None
        self._body: Body | None = None
        self._stream: aiohttp.StreamReader | None = None
        self._content: Content | None = None

    def divert(self, stream: object, limit: int) -> Content | None:
        """Return what will receive the rest of the body instead of aiohttp's stream; None if aiohttp reads this body.

        Args:
            stream: aiohttp's stream of the body.
            limit: reading pauses while more than this number of bytes waits.
        """
        if stream is not self._stream or self._stream is None:
            return None
        if self._content is not None:
            return self._content
        content = self._content = Content(self, limit)
        content.feed(self._stream.read_nowait())
        return content

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        _share_buffer(transport, self._lean_buffer)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._lean_buffer[:_SLICE] if self._take is LeanHandler._take_head else self._lean_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._take(self, self._lean_buffer[:nbytes])

    def data_received(self, data: bytes) -> None:
        # Called by loops without buffered protocols; and by aiohttp, without data, to let its parser continue.
        if data or self._take is LeanHandler._pass_on:
            self._take(self, memoryview(data))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._fail("the connection ended before the body", exc)
        super().connection_lost(exc)

    # Called by aiohttp

    def set_response_params(self, *arguments: Any, **options: Any) -> None:
        self._take, self._behind, self._response = LeanHandler._take_head, b"", None
        super().set_response_params(*arguments, **options)

    def resume_reading(self, *arguments: Any, **options: Any) -> None:
        # aiohttp calls this after each read from a stream, so that its parser can continue.
        if self._reading_paused or self._take is LeanHandler._pass_on:
            super().resume_reading(*arguments, **options)

    def feed_data(self, data: tuple[Any, Any], size: int = 0) -> None:
        # The parser has a response for the sender of the request.
        self._response = data
        super().feed_data(data, size)

    # The states of a connection: each takes the bytes of a read

    def _take_head(self, data: memoryview) -> None:
        while data and self.exception() is None:
            window = self._behind + data[:_SLICE]
            found = window.find(_BLANK_LINE)
            used = (found + len(_BLANK_LINE) if found >= 0 else len(window)) - len(self._behind)
            super().data_received(bytes(data[:used]))
            data = data[used:]
            self._behind = window[-3:] if found < 0 else b""
            if self._response is None:
                continue
            (message, stream), self._response = self._response, None
            if found >= 0 and 100 <= message.code < 200 and message.code != 101:
                continue  # an informational response; the final one follows
            if found >= 0 and self.read_timeout is None:
                self._body = _body_of(message, stream)
            if self._body is None:
                self._take = LeanHandler._pass_on
            else:
                self._take, self._stream = LeanHandler._take_body, stream
            if data:
                self._take(self, data)
                if self._body is not None and stream.total_bytes:
                    # aiohttp resumes reading when the reader takes these bytes. A body that arrives before it is needed
                    # (the next page of a list) must not block the event loop while another one is read.
                    self.pause_reading()
            return

    def _take_body(self, data: memoryview) -> None:
        body, stream = self._body, self._stream
        assert body is not None
        assert stream is not None
        try:
            content, used = body.feed(data)
        except MalformedBody as error:
            self._fail(str(error), error)
            self._refuse(data)
            return
        if self._content is not None:
            self._content.feed(content)
        else:
            stream.feed_data(content)
        if body.ended:
            self._take = LeanHandler._refuse
            diverted, self._content = self._content, None
            self._body = self._stream = self._parser = self._payload = None
            if used < len(data):
                self.force_close()
            if self._reading_paused:
                self.resume_reading()  # the next response must not wait until this one is read
            stream.feed_eof()
            if diverted is not None:
                diverted.end()

    def _pass_on(self, data: memoryview) -> None:
        super().data_received(bytes(data))

    def _refuse(self, data: memoryview) -> None:
        """Close the connection: bytes between two responses belong to neither."""
        self.force_close()
        if self.transport is not None:
            self.transport.close()

    def _fail(self, reason: str, cause: BaseException | None) -> None:
        stream = self._stream
        if stream is None:
            return
        self._take = LeanHandler._refuse
        content, self._content = self._content, None
        self._body = self._stream = self._payload = None
        if stream.exception() is None:
            error = aiohttp.ClientPayloadError(reason)
            error.__cause__ = cause
            stream.set_exception(error)
        if content is not None:
            content.end(stream.exception())


class Content:
    """The decoded bytes of one body, on their way from the connection to one reader.

    It takes the place of aiohttp's stream for bodies of many small pieces: for each read, aiohttp's stream calls a
    dozen functions more.

    Args:
        connection: pauses reading while more than `limit` bytes wait.
        limit: number of bytes.
    """

    __slots__ = ("_connection", "_ended", "_error", "_limit", "_pieces", "_size", "_waiter")

    def __init__(self, connection: LeanHandler, limit: int) -> None:
        self._connection = connection
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, piece: bytes) -> None:
        """Add bytes."""
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size > self._limit and not self._connection._reading_paused:
                self._connection.pause_reading()
            self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """Note that the body has ended, or that the connection has failed."""
        self._ended, self._error = True, error
        self._wake()

    async def read(self) -> bytes:
        """Wait for bytes, and return all that have arrived; b"" at the end of the body.

        Raises:
            RuntimeError: another task is waiting for bytes.
            BaseException: the connection has failed.
        """
        while not (self._pieces or self._ended):
            if self._waiter is not None:
                raise RuntimeError("another task is reading this response")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._error is not None:
            raise self._error
        if len(self._pieces) == 1:
            read = self._pieces.pop()
        else:
            read = b"".join(self._pieces)
            self._pieces.clear()
        self._size = 0
        if self._connection._reading_paused and not self._ended:  # after the end, it may serve another response
            self._connection.resume_reading()
        return read

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def divert(response: aiohttp.ClientResponse, limit: int) -> Content | None:
    """Return what will receive the rest of a body, None if aiohttp reads it; see `LeanHandler.divert`."""
    connection = response.connection
    handler = connection.protocol if connection is not None else None
    return handler.divert(response.content, limit) if isinstance(handler, LeanHandler) else None


class Body(Protocol):
    """Decodes the body of a response as it arrives.

    Attributes:
        ended: whether the body is complete.
    """

    ended: bool

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        """Decode the next bytes; return their content, and how many of them belong to the body.

        All bytes belong to the body until it ends.

        Raises:
            MalformedBody: the bytes do not follow the transfer encoding.
        """
        ...


class SizedBody:
    """Decodes a body whose length `Content-Length` states."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.ended = not size

    def feed(self, data: memoryview) -> tuple[bytes, int]:
        taken = bytes(data[: self._left])
        self._left -= len(taken)
        self.ended = not self._left
        return taken, len(taken)


class ChunkedBody:
    """Decodes a chunked body. Trailers are validated and dropped."""

    def __init__(self) -> None:
        self.ended = False
        self._left = 0  # bytes that the current chunk still lacks
        self._last = False  # the last chunk has arrived
        self._begun = b"\r\n"  # the beginning of a chunk line or of the trailers

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
        """Return position and length of the next chunk. Length 0 means that it has not arrived or that none follows."""
        if not self._last:
            begun = self._begun + data[at : at + _HEAD_SLICE]
            line = _LINE(begun)
            if line is None:
                if _LINE_BEGUN(begun) is None:
                    raise MalformedBody("a chunk does not begin with a line that states its size")
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
            raise MalformedBody("the last chunk is followed by neither a trailer nor the end")
        self._begun = begun
        return len(data), 0


class MalformedBody(ValueError):
    """The bytes do not follow the transfer encoding, so that the end of the body is unknown."""


def _share_buffer(transport: asyncio.BaseTransport, buffer: memoryview) -> None:
    """Let asyncio read the encrypted bytes of a TLS connection into a shared buffer.

    For each TLS connection, asyncio makes a buffer of 256 KiB and fills it with zeros: 75 MiB for 300 quiet watches. It
    copies each read out of the buffer at once, before it decrypts it, so connections can share one. This does nothing
    if the connection has no TLS, or is not the one of asyncio that is expected here.
    """
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    own = getattr(protocol, "_ssl_buffer", None), getattr(protocol, "_ssl_buffer_view", None)
    if not isinstance(own[0], bytearray) or not isinstance(own[1], memoryview):
        return
    protocol._ssl_buffer = protocol._ssl_buffer_view = buffer
    if protocol.get_buffer(-1) is not buffer:
        protocol._ssl_buffer, protocol._ssl_buffer_view = own


def _body_of(message: Any, stream: Any) -> Body | None:
    """Return a decoder for the body of a response, None if aiohttp's parser must read it."""
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
    """Return whether a response from memory is decoded as expected with this version of aiohttp."""
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
