"""Requests to an `ApiServer` in the same process, without sockets: the server's code runs, HTTP does not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioinformer.errors import UsageError
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.server.api_server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer.resources.resource import Resource
    from aioinformer.testing.state.storage import Change
    from aioinformer.transport import HttpRequest

    OnHead = Callable[[int, Mapping[str, str]], None]
    OnChunk = Callable[[bytes], None]

_EPOCH = 1_800_000_000.0


class InProcessServer(ApiServer):
    """An `ApiServer` that does not listen. Its clock is that of the running event loop.

    Args:
        on_change: called with the name of the collection and each change.
        on_cleanup: called with the function that wakes the garbage collector, when it has work.
    """

    def __init__(
        self, seed: int, on_change: Callable[[str, Change], None], on_cleanup: Callable[[Callable[[], None]], None]
    ) -> None:
        clock = asyncio.get_running_loop().time
        super().__init__(seed=seed, clock=lambda: _EPOCH + clock())
        store = self._cluster.store
        wake = store.on_cleanup_needed
        store.changed = on_change
        store.on_cleanup_needed = lambda: on_cleanup(wake)
        self._housekeeper.start()

    def resource_of(self, obj: Mapping[str, Any]) -> Resource[Any]:
        """Return the resource of an object, by its apiVersion and kind.

        Raises:
            UsageError: no resource has them.
        """
        served = self._registry.find_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        if served is None:
            raise UsageError(f"no resource has apiVersion {obj.get('apiVersion')!r} and kind {obj.get('kind')!r}")
        return served.resource

    def contents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield all objects, with the names of their collections."""
        for name, collection in self._cluster.store.storage.items():
            for record in collection.records():
                yield name, decode(record.body)

    async def exchange(self, request: HttpRequest, on_head: OnHead, on_chunk: OnChunk) -> None:
        """Process a request: pass on status and headers, then each piece of the body."""
        response = await self._router.handle(_http_request(request, _Writer(on_head, on_chunk)))
        if not response.prepared:
            on_head(response.status, response.headers)
            on_chunk(bytes(getattr(response, "body", None) or b""))


class _Writer(AbstractStreamWriter):
    """Takes what the server writes to the connection: the head, and pieces of the body without HTTP's framing."""

    def __init__(self, on_head: OnHead, on_chunk: OnChunk) -> None:
        self.output_size = 0
        self._on_head = on_head
        self._on_chunk = on_chunk

    async def write(self, chunk: Any) -> None:
        self.output_size += len(chunk)
        self._on_chunk(bytes(chunk))

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        self._on_head(int(status_line.split(" ", 2)[1]), headers)

    async def write_eof(self, chunk: bytes = b"") -> None:
        await self.write(chunk)

    async def drain(self) -> None: ...
    def send_headers(self) -> None: ...
    def enable_chunking(self) -> None: ...
    def enable_compression(self, *arguments: Any, **options: Any) -> None: ...


class _NoConnection(BaseProtocol):
    """In place of the connection of a request. Attributes that aiohttp reads of a connection are None."""

    def __getattr__(self, name: str) -> None:
        return None


def _http_request(request: HttpRequest, writer: _Writer) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    task: Any = asyncio.current_task()
    headers = CIMultiDict({"Host": "harness", **request.headers})
    if request.body is not None:
        headers["Content-Length"] = str(len(request.body))
    path = f"{request.path}?{urlencode(request.query, quote_via=quote)}"
    raw = tuple((name.encode(), value.encode()) for name, value in headers.items())
    parts = (request.method, path, HttpVersion11, CIMultiDictProxy(headers), raw, False, None, False, False)
    connection: Any = _NoConnection(loop)
    body = StreamReader(connection, 2**16, loop=loop)
    body.feed_data(request.body or b"")
    body.feed_eof()
    return web.BaseRequest(RawRequestMessage(*parts, URL(path, encoded=True)), body, connection, writer, task, loop)
