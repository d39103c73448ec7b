"""Connections that open a few at a time, and read TLS into one buffer.

For each TLS connection, asyncio makes a read buffer of 256 KiB and fills it with zeros: 75 MiB for 300 quiet watches.
It copies each read out of the buffer at once, before it decrypts it, so connections can share one. asyncio shows the
buffer only after the handshake. Therefore few connections open at once: if all watches open together, as after the
restart of a server, the buffers of their handshakes would take the memory that sharing saves, and the allocator would
keep it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler

AT_ONCE: Final = 8
"""The number of connections that open at once: for requests with a total timeout, and the same for all others."""


class Connector(aiohttp.TCPConnector):
    """Opens TLS connections a few at a time, and lets them share a read buffer.

    Requests with a total timeout (writes, the renewal of a Lease) do not wait for the connections of watches. The time
    in which a connection must open, `sock_connect` of the request's `aiohttp.ClientTimeout`, includes name resolution
    and TLS, and begins when the wait for other connections has ended.

    Args:
        options: of `aiohttp.TCPConnector`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
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
            connection = await self._open(req, traces, timeout)
            self._share_buffer(connection.transport)
        return connection

    async def _open(self, req: aiohttp.ClientRequest, traces: Any, limits: aiohttp.ClientTimeout) -> ResponseHandler:
        async with asyncio.timeout(limits.sock_connect):
            return await super()._create_connection(req, traces, limits)

    def _share_buffer(self, transport: asyncio.BaseTransport | None) -> None:
        """Let asyncio read the encrypted bytes of a connection into the shared buffer.

        This does nothing if the transport is not the one of asyncio that is expected here.
        """
        protocol: Any = getattr(transport, "_ssl_protocol", None)
        own = getattr(protocol, "_ssl_buffer", None), getattr(protocol, "_ssl_buffer_view", None)
        if not isinstance(own[0], bytearray) or not isinstance(own[1], memoryview):
            return
        buffer = self._read_buffer or own[1]
        protocol._ssl_buffer = protocol._ssl_buffer_view = buffer
        if protocol.get_buffer(-1) is buffer:
            self._read_buffer = buffer  # that of the first connection
        else:
            protocol._ssl_buffer, protocol._ssl_buffer_view = own
