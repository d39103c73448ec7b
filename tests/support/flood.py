"""Open many slow connections to ports of this machine, in a process of its own: `flood.py COUNT@PORT[:tls] ...`.

A third each sends nothing, the first bytes of a message, and half of a header. It prints how many have been opened, and
ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
import sys

_HALF = b"POST / HTTP/1.1\r\nHost: a\r\n"
#: Connections that are opened at a time.
_AT_ONCE = 100


async def _open(kind: int, port: int, tls: ssl.SSLContext | None, gate: asyncio.Semaphore, kept: list[object]) -> None:
    async with gate:
        try:
            # The first bytes of a handshake are not those of a client of TLS, so the connection is a plain one.
            wrapped = tls if kind == 2 else None
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=wrapped)
        except OSError:
            return  # the server has closed it already
        kept.append((reader, writer))
        if kind:
            writer.write(_HALF if kind == 2 or tls is None else b"\x16\x03\x01")


async def _flood(targets: list[str]) -> None:
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    gate = asyncio.Semaphore(_AT_ONCE)
    kept: list[object] = []
    async with asyncio.TaskGroup() as tasks:
        for target in targets:
            count, _, rest = target.partition("@")
            port, _, how = rest.partition(":")
            for number in range(int(count)):
                tasks.create_task(_open(number % 3, int(port), tls if how else None, gate, kept))
    print(len(kept), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = sum(int(each.partition("@")[0]) for each in sys.argv[1:]) + 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, wanted), hard), hard))
    asyncio.run(_flood(sys.argv[1:]))
