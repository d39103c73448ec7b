"""A SOCKS5 server on loopback (RFC 1928, RFC 1929)."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Self


class SocksServer:
    """Connects each client to one server on loopback, for any requested address.

    Args:
        target: the port of that server.
        password: what clients must prove with, "user:password"; "" for nothing.
        reply: the code of the answer to each request.

    Attributes:
        asked: what clients wanted to be connected to: type of the address, address, port.
    """

    def __init__(self, target: int, *, password: str = "", reply: int = 0) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self._target = target
        self._password = password
        self._reply = reply
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Python 3.11 logs the cancellation of a connection's task as an error.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                if await self._greet(reader, writer):
                    await self._relay(reader, writer)
        finally:
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if self._password:
            if 2 not in methods:
                writer.write(b"\x05\xff")
                return False
            writer.write(b"\x05\x02")
            _, length = await reader.readexactly(2)
            user = (await reader.readexactly(length)).decode()
            (length,) = await reader.readexactly(1)
            password = (await reader.readexactly(length)).decode()
            accepted = f"{user}:{password}" == self._password
            writer.write(b"\x01\x00" if accepted else b"\x01\x01")
            if not accepted:
                return False
        else:
            writer.write(b"\x05\x00")
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            (length,) = await reader.readexactly(1)
            host = (await reader.readexactly(length)).decode()
        else:
            family = socket.AF_INET if kind == 1 else socket.AF_INET6
            host = socket.inet_ntop(family, await reader.readexactly(4 if kind == 1 else 16))
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        self.asked.append(({1: "IPv4", 3: "name", 4: "IPv6"}[kind], host, port))
        writer.write(bytes([5, self._reply, 0, 1, 0, 0, 0, 0, 0, 0]))
        return self._reply == 0

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near, far = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, far))
                tasks.create_task(_pump(near, writer))
        finally:
            far.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()
