"""A TLS server of quiet watches that can break all connections at once.

It prints its URL. As an argument, it takes the file for the certificate of its authority. POST /drop breaks all
connections, and GET /watches returns the number of open watches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
from contextlib import suppress

import trustme

_END = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
_LINE = (
    json.dumps({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": _END}}).encode() + b"\n"
)
_WATCH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (
    len(_LINE),
    _LINE,
)


class Watches:
    """The open watches."""

    def __init__(self) -> None:
        self._open = set[asyncio.StreamWriter]()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            request = await reader.readuntil(b"\r\n\r\n")
            if request.startswith(b"POST /drop"):
                for each in self._open:
                    each.transport.abort()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            elif request.startswith(b"GET /watches"):
                count = b"%d" % len(self._open)
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
                writer.write(head + b"%d\r\n\r\n%b" % (len(count), count))
            else:
                self._open.add(writer)
                writer.write(_WATCH)
                await reader.read()
        self._open.discard(writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def main(certificate: str) -> None:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(certificate)
    server = await asyncio.start_server(Watches(), "127.0.0.1", 0, ssl=context, backlog=1000)
    print(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("certificate", help="the file to which the certificate of the authority is written")
    asyncio.run(main(parser.parse_args().certificate))
