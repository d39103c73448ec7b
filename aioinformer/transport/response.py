"""The answer of a transport over aiohttp.

A response that is closed in mid-body is aborted: an orderly TLS shutdown would wait for a peer that may be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from aioinformer.errors import TransportError
from aioinformer.transport.failures import transport_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


class HttpResponse:
    """The answer of a transport over aiohttp; see `aioinformer.transport.Response`."""

    __slots__ = ("__weakref__", "_closed", "_response", "_server")

    def __init__(self, response: aiohttp.ClientResponse, server: str) -> None:
        self._response = response
        self._server = server
        self._closed = False

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        content = self._response.content
        try:
            if self._response.content_length is not None:
                # It comes in large reads. Joined, two that wait are half a megabyte of new memory, for nothing.
                # It is asked whether it has ended: where no body is, what aiohttp reads never says so a second time.
                while not content.at_eof():
                    read, _ = await content.readchunk()
                    if read:
                        yield read
                        read = b""  # not kept while more is waited for
                return
            # One buffered piece is handed out as it is; several are joined: a step of the loop for each costs more.
            while chunk := await content.readany():
                yield chunk
                chunk = b""
        except (aiohttp.ClientError, OSError) as error:
            if self._closed:
                raise TransportError(f"{self._server}: the answer was closed while it was read") from error
            await self.close()
            failure = transport_error(self._server, error)
            raise failure from failure.__cause__

    async def close(self) -> None:
        self._closed = True
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()
