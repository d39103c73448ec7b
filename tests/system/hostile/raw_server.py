"""A server on loopback whose first responses are exact bytes; later ones are correct."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

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


def says(data: bytes, *, times: int = 1, hangs: bool = False) -> Script:
    """Return a script that writes bytes a number of times, then closes the connection or leaves it open."""

    async def script(writer: asyncio.StreamWriter) -> None:
        for _ in range(times):
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
