"""Writes that are checked where their bytes leave, and called back if they may not arrive any more.

aiohttp calls `CheckedBody.write` when a connection is there, and keeps the head of the request until the body follows
it. So all that may take long has ended: the queue for a pooled connection, name resolution, connecting, the TLS
handshake, and "100 Continue". A body has no such moment if a part of it waits in a buffer, and leaves later without a
check. Therefore the end of a large body is held back until all before it has left the buffers of the process, and a
server never receives a request as a whole without the check.

What has left the process may wait in the kernel while the network is broken, and would be sent when it works again. So
the connection of a checked request without an answer is a `WriteCarrier`: however it is closed, the kernel discards
what it holds.
"""

from __future__ import annotations

import socket
import struct
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from aiohttp.payload import BytesPayload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp.abc import AbstractStreamWriter

    from aioinformer.transport import SendCheck

#: A body of this many bytes and the head before it fit into the send buffer of an idle connection.
_AT_ONCE: Final = 8192
_LAST: Final = 1024
#: Values of SO_LINGER: whether closing waits or, with 0 s, discards what was not sent.
_DISCARD: Final = struct.pack("ii", 1, 0)
_SEND: Final = struct.pack("ii", 0, 0)


class WriteCarrier:
    """The connection of a checked request, from before its first byte until its answer; see `transport.Carrier`.

    Meanwhile, the kernel sends no more of it once its socket is closed, for any reason: also if the process is killed.
    Closing alone is not enough: a connection of TLS that is closed tries to send what it has for up to 30 s.

    Attributes:
        check: of the request.
        aborted: whether the connection was aborted before the request ended by itself.
    """

    __slots__ = ("_ended", "_socket", "_transports", "aborted", "check")

    def __init__(self, check: SendCheck[Any]) -> None:
        self.check = check
        self.aborted = False
        self._transports: list[Any] = []
        self._socket: Any = None
        self._ended = False

    def begin(self, transport: Any) -> None:
        """Note the connection on which the request is about to be sent: another one, if it is sent again."""
        self._release()
        self._transports = [transport] if transport is not None else []
        while transport is not None:  # the one below TLS is aborted, too, if that of TLS has been closed already
            transport = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
            self._transports += [] if transport is None else [transport]
        if self._transports:
            self._socket = self._transports[0].get_extra_info("socket")
            self._discard_when_closed(_DISCARD)
        if self._ended:  # aiohttp writes in another task
            self.abort()
        else:
            self.check.carrier = self

    def abort(self) -> None:
        self.aborted = self.aborted or not self._ended
        for each in self._transports:
            each.abort()

    def end(self, *, answered: bool) -> None:
        """Note the end of the request. Without an answer, the connection is aborted."""
        self._ended = True
        self.check.carrier = None
        if answered:
            self._release()
        else:
            self.abort()

    def _release(self) -> None:
        """Let the connection be closed as any other."""
        if self._socket is not None:
            self._discard_when_closed(_SEND)
        self._transports = []
        self._socket = None

    def _discard_when_closed(self, option: bytes) -> None:
        # A socket that is closed already raises OSError with asyncio, ValueError with uvloop.
        with suppress(OSError, ValueError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)


class CheckedBody(BytesPayload):
    """The body of a request that a check permits right before its last bytes leave.

    If the check raises, these bytes are not written, and aiohttp closes the connection. Each repetition of the request
    is checked.

    Args:
        body: the whole body; may be empty.
        carrier: gets the connection before the first byte leaves; its check is called before the last ones.
    """

    def __init__(self, body: bytes, carrier: WriteCarrier) -> None:
        super().__init__(body)
        self._carrier = carrier

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)

    async def write(self, writer: AbstractStreamWriter) -> None:
        last = self._value
        transport = getattr(writer, "transport", None)
        self._carrier.begin(transport)
        with _unbuffered(transport):
            if len(last) > _AT_ONCE:
                last = last[-_LAST:]
                # Through TLS, the second piece leaves only after the first one has left the buffer of the socket.
                for piece in (self._value[: -2 * _LAST], self._value[-2 * _LAST : -_LAST]):
                    await writer.write(piece)
                    await writer.drain()
            trace = getattr(writer, "_on_chunk_sent", None)
            if last and trace is not None:
                # Of a borrowed session; it may block the event loop. aiohttp would call it between the check and the
                # write, and has no public way to take it off.
                await trace(last)
                writer._on_chunk_sent = None  # type: ignore[attr-defined]
            self._carrier.check()
            if last:
                await writer.write(last)
            else:
                writer.send_headers()


@contextmanager
def _unbuffered(transport: Any) -> Iterator[None]:
    """Let a transport report every byte that waits in its buffer, and uvloop's write at once."""
    transports: list[Any] = []
    while transport is not None and not transport.is_closing():
        # A transport of TLS reports a buffer of the size of the limit, too: with 0, always.
        transport.set_write_buffer_limits(0 if transport.get_extra_info("ssl_object") is None else 1)
        transports.append(transport)
        # It does not count the bytes that the transport below it has buffered.
        transport = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    try:
        yield
    finally:
        for each in transports:
            if not each.is_closing():
                each.set_write_buffer_limits()
