"""Connections that open a few at a time and read into one buffer, and the responses on them.

For each TLS connection, asyncio makes a read buffer of 256 KiB and fills it with zeros: 75 MiB for 300 quiet watches.
It copies each read out of the buffer at once, before it decrypts it, so connections can share one. asyncio shows the
buffer only after the handshake. Therefore few connections open at once: if all watches open together, as after the
restart of a server, the buffers of their handshakes would take the memory that sharing saves, and the allocator would
keep it.

aiohttp's protocol takes bytes. For such a protocol, asyncio allocates 256 KiB for each read of a socket, and for each
record of TLS, and joins the records. `SharedReads` stands between the two and reads into the shared buffer.

A watch has an event per chunk. `StreamBody` leaves out what aiohttp's stream does for each of them. `HttpResponse` is
the response that readers get.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from aiohttp.base_protocol import BaseProtocol

from aioinformer.errors import TransportError
from aioinformer.transport.coalescing import ReadCoalescer, coalescer_of
from aioinformer.transport.ends import OpenConnections
from aioinformer.transport.failures import transport_error
from aioinformer.transport.slots import Slot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aiohttp.client_proto import ResponseHandler

AT_ONCE: Final = 8
"""The number of connections that open at once: for requests with a total timeout, and the same for all others."""

_READ: Final = (256 + 16) * 1024
"""The size of the shared buffer, in bytes. If the server ends a TLS connection without notice (close_notify) while
reading is paused, asyncio later fills the buffer once and drops the rest. It holds up to 256 KiB then, and the rest of
a record that it has read in part, of 16 KiB at most."""


class SharedReads(asyncio.BufferedProtocol):
    """Reads into a buffer, and passes each read on as bytes.

    Args:
        protocol: gets the bytes and all other calls of the transport.
        buffer: connections can share it, because nothing keeps a view of it after a read.
        on_lost: is called when the connection is closed.
    """

    __slots__ = ("_buffer", "_on_lost", "_protocol")

    def __init__(self, protocol: asyncio.Protocol, buffer: memoryview, on_lost: Callable[[], object]) -> None:
        self._protocol = protocol
        self._buffer = buffer
        self._on_lost = on_lost

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._protocol.data_received(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()


class StreamBody(aiohttp.StreamReader):
    """aiohttp's stream of a body, to be read by `readany` alone.

    It notes no ends of chunks, and lets the connection continue once for each read instead of once for each chunk. That
    is 4.5 % of the instructions of an event, lone or in a flood. And it has `nudge`, for the timer of a sharded watch.
    What arrived before the connection broke is read before the error is raised, as in Go: aiohttp drops it.
    """

    __slots__ = ()  # so that a stream of aiohttp can become one

    def begin_http_chunk_receiving(self) -> None:
        pass

    def end_http_chunk_receiving(self) -> None:
        pass

    async def readany(self) -> bytes:
        pieces = self._buffer
        if self._exception is not None and not pieces:
            raise self._exception
        while not pieces and not self._eof:
            await self._wait("readany")
        read = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._size = 0
        # After the end, the connection may serve another response; after an error, it is of no use. aiohttp does not
        # show in public whether reading is paused, and `resume_reading` costs more than this look.
        if self._protocol._reading_paused and not self._eof and self._exception is None:
            self._protocol.resume_reading()
        return read

    def nudge(self) -> None:
        """Let the reader have an empty piece."""
        if not self._eof:
            self._buffer.append(b"")
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    @classmethod
    def take(cls, stream: aiohttp.StreamReader) -> bool:
        """Make a stream of aiohttp one of this class, and return True. A stream that is not as expected stays."""
        known = type(stream) is aiohttp.StreamReader and hasattr(BaseProtocol, "_reading_paused")
        if known and all(hasattr(stream, name) for name in ("_buffer", "_eof", "_exception", "_size", "_wait")):
            stream.__class__ = cls
            return True
        return False


class Connector(aiohttp.TCPConnector):
    """Opens TLS connections a few at a time, and lets them share a read buffer.

    Requests with a total timeout (writes, the renewal of a Lease) do not wait for the connections of watches. The time
    in which a connection must open, `sock_connect` of the request's `aiohttp.ClientTimeout`, includes name resolution
    and TLS, and begins when the wait for other connections has ended.

    When it has closed, all its connections are closed; see `ends`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._connections = OpenConnections()
        self._opening = {limited: asyncio.Semaphore(AT_ONCE) for limited in (False, True)}
        self._read_buffer: memoryview | None = None

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: Any,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's name
    ) -> ResponseHandler:
        # aiohttp's documentation names this method as the one to override.
        if not req.is_ssl():
            return await self._open(req, traces, timeout)
        async with self._opening[timeout.total is not None]:
            if self.closed:
                raise aiohttp.ClientConnectionError("the connector was closed")
            return await self._open(req, traces, timeout)

    async def _open(self, req: aiohttp.ClientRequest, traces: Any, limits: aiohttp.ClientTimeout) -> ResponseHandler:
        async with asyncio.timeout(limits.sock_connect):
            connection = await super()._create_connection(req, traces, limits)
        transport = connection.transport
        if transport is not None:
            if self._read_buffer is None:
                self._read_buffer = memoryview(bytearray(_READ))
            self._connections.add(transport)
            on_lost = partial(self._connections.discard, transport)
            transport.set_protocol(SharedReads(connection, self._read_buffer, on_lost))
            share_buffer(transport, self._read_buffer)
            if self.closed:
                transport.abort()  # aiohttp raises an error, and would close it
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Abort all connections, and wait until they are closed."""
        if not self._loop.is_closed():
            self._connections.abort()
        await super().close(abort_ssl=abort_ssl)
        if not self._loop.is_closed():
            await self._connections.wait()


def share_buffer(transport: asyncio.BaseTransport, buffer: memoryview) -> None:
    """Let asyncio read the encrypted bytes of a connection into a shared buffer, too.

    This does nothing if the transport is not the one of asyncio that is expected here.
    """
    # asyncio has no public way to hand it a buffer, or to free its own.
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    own = getattr(protocol, "_ssl_buffer", None), getattr(protocol, "_ssl_buffer_view", None)
    if not isinstance(own[0], bytearray) or not isinstance(own[1], memoryview):
        return
    protocol._ssl_buffer = buffer
    protocol._ssl_buffer_view = buffer
    if protocol.get_buffer(-1) is not buffer:
        protocol._ssl_buffer, protocol._ssl_buffer_view = own


class HttpResponse:
    """A response over aiohttp; see `aioinformer.transport.Response`."""

    __slots__ = ("__weakref__", "_closed", "_coalesce", "_cut", "_response", "_server", "hint", "slot")

    def __init__(self, response: aiohttp.ClientResponse, server: str, *, coalesce: bool = False) -> None:
        self._response = response
        self._server = server
        self._coalesce = coalesce
        self._closed = False
        #: Whether the connection had been closed before the end of the body at the last look.
        self._cut = False
        #: What the transport knows of the reason of a refusal.
        self.hint = ""
        #: Released when the response has been read or closed.
        self.slot = Slot(None)

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def nudge(self) -> Callable[[], None] | None:
        """Call it to let `chunks` yield b"" at once; None if this body cannot do that."""
        content = self._response.content
        return content.nudge if isinstance(content, StreamBody) else None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises:
            TransportError: the connection broke, or the response was closed meanwhile.
        """
        content = self._response.content
        coalescer = self._coalescer()
        try:
            if self._response.content_length is not None:
                # A body of known length comes in large reads, and joining two of them would copy half a megabyte.
                # `at_eof` decides, because for an empty body aiohttp reports the end by a read only once.
                while not content.at_eof():
                    chunk, _ = await content.readchunk()
                    if chunk:
                        yield chunk
                        chunk = b""  # keep no reference while waiting for more
                self.slot.release()
                return
            # One buffered piece is passed on; several are joined, which is cheaper than an iteration for each.
            while (chunk := await content.readany()) or not content.at_eof():
                if self._closed:
                    raise _cut_off()
                if coalescer is not None and chunk:
                    coalescer.note_read(len(chunk))
                yield chunk
                chunk = b""
            self.slot.release()
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            if isinstance(error, RuntimeError):
                if not self._is_cut():
                    raise  # another task is reading
                error = _cut_off()
            if self._closed:
                # aiohttp raises one exception for all responses: its traceback would keep the frames of each reader.
                error.__traceback__ = None
                raise TransportError(f"{self._server}: the response was closed while it was being read") from error
            await self.close()
            failure = transport_error(self._server, error)
            raise failure from failure.__cause__
        finally:
            if coalescer is not None:
                coalescer.close()

    def _coalescer(self) -> ReadCoalescer | None:
        connection = self._response.connection
        if not self._coalesce or connection is None:
            return None
        return coalescer_of(connection.transport, asyncio.get_running_loop())

    def check_connection(self) -> bool:
        """Fail the body if its connection was closed before its end; return whether it is unfinished."""
        if not self._is_cut():
            self._cut = False
            return True
        content = self._response.content
        if self._response.connection is None or content.is_eof() or content.exception() is not None:
            return False
        if self._cut:
            content.set_exception(_cut_off())
            return False
        self._cut = True  # the event loop may be about to report the end
        return True

    def _is_cut(self) -> bool:
        connection = self._response.connection
        return connection is None or connection.transport is None or connection.transport.is_closing()

    async def close(self) -> None:
        self._closed = True
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()
        self.slot.release()


def _cut_off() -> aiohttp.ClientPayloadError:
    return aiohttp.ClientPayloadError("the connection was closed before the end of the body")
