"""A SOCKS5 server on loopback (RFC 1928, RFC 1929)."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self

from tests.support.loopback import forward, listening


class SocksServer:
    """Connects each client to one server on loopback, for any requested address.

    Args:
        target: the port of that server.
        password: what clients must prove with, "user:password"; "" for nothing.
        reply: the code of the answer to each request.

    Attributes:
        authority: its address.
        asked: what clients wanted to be connected to: type of the address, address, port.
    """

    def __init__(self, target: int, *, password: str = "", reply: int = 0) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self._target = target
        self._password = password
        self._reply = reply
        self._listening = listening(self._serve)

    async def __aenter__(self) -> Self:
        self.authority = (await self._listening.__aenter__()).partition("//")[2]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listening.__aexit__(None, None, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await self._greet(reader, writer):
            near, far = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(forward(reader, far), forward(near, writer))

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
