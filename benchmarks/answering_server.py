"""Answer each request over TLS with a pod, in the way of kube-apiserver: its headers, and a body in one chunk.

    python benchmarks/answering_server.py

The first line on stdout is the URL. The certificate is made at the start, and no client knows its authority: a client
must not verify it. The server parses no more of a request than its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
from contextlib import suppress

import trustme
from pods import pod

_HEAD = (
    b"HTTP/1.1 %b\r\nAudit-Id: 5c4a4f2e-7d0c-4b5e-8a53-3a6f0f0f4a10\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 1c0e6d5e-2cf6-4c0a-a2b5-6d3f5b1c8d11\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 9d1f1d4e-6a67-4a7a-9a0e-5a8f2b6c7d12\r\n"
    b"Date: Sun, 22 Nov 2026 18:00:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
)


def answers() -> tuple[bytes, bytes]:
    """Return the answers to a POST and to all other requests."""
    document = json.dumps({"kind": "Pod", "apiVersion": "v1", **pod(7, 7)}, separators=(",", ":")).encode()
    created, ok = (_HEAD % (status, len(document), document) for status in (b"201 Created", b"200 OK"))
    return created, ok


async def serve() -> None:
    """Serve until the process is terminated."""
    created, ok = answers()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, found, rest = head.lower().partition(b"\r\ncontent-length:")
                if found:
                    await reader.readexactly(int(rest.partition(b"\r\n")[0]))
                writer.write(created if head.startswith(b"POST") else ok)
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    host, port = server.sockets[0].getsockname()
    print(f"https://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    # The harness passes the options of every server.
    argparse.ArgumentParser(description=__doc__).parse_known_args()
    asyncio.run(serve())
