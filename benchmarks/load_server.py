"""A load server that is never the bottleneck: it writes bytes that were prepared once, and does nothing else.

    python benchmarks/load_server.py --pods 20000 --events 20000

The first line on stdout is its URL. It serves `/api/v1/pods`: lists in pages (`limit`, `continue`), streaming lists,
and watches. A watch brings nothing until `POST /go`; then every watch gets all events as fast as its socket takes
them: each a new version of one of the pods. `/go?rate=1000` paces them, in events a second.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from urllib.parse import parse_qs, urlsplit

from pods import encoded

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_BATCH = 32


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Load:
    """Everything that is ever written, prepared."""

    def __init__(self, pods: int, events: int) -> None:
        self.count = pods
        items = [encoded(number, number + 1) for number in range(pods)]
        self.items = items
        self.version = str(pods)
        opening = b'{"type":"%b","object":{"kind":"Pod","apiVersion":"v1",%b}\n'
        added = [_chunk(opening % (b"ADDED", item[1:])) for item in items]
        end = (
            b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%b",'
            b'"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}\n'
        ) % self.version.encode()
        self.initial = [b"".join(added[at : at + _BATCH]) for at in range(0, pods, _BATCH)] + [_chunk(end)]
        versions = range(pods + 1, pods + events + 1)
        lines = [
            _chunk(opening % (b"MODIFIED", encoded((index * 7919) % pods, version)[1:]))
            for index, version in enumerate(versions)
        ]
        self.lines = lines
        self.events = [b"".join(lines[at : at + _BATCH]) for at in range(0, events, _BATCH)]
        self._pages: dict[tuple[int, int], bytes] = {}

    def page(self, limit: int, start: int) -> bytes:
        page = self._pages.get((limit, start))
        if page is None:
            stop = min(start + limit, self.count) if limit else self.count
            token = (
                b'"continue":"%d","remainingItemCount":%d,' % (stop, self.count - stop) if stop < self.count else b""
            )
            body = b'{"kind":"PodList","apiVersion":"v1","metadata":{%b"resourceVersion":"%b"},"items":[%b]}\n' % (
                token,
                self.version.encode(),
                b",".join(self.items[start:stop]),
            )
            page = _HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
            self._pages[limit, start] = page
        return page


class Connection:
    def __init__(self, load: Load, go: asyncio.Event, rates: list[float]) -> None:
        self.load, self.go, self.rates = load, go, rates

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                method, target, _ = request.split(b" ", 2)
                await self.answer(method, target.decode(), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, method: bytes, target: str, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if method == b"POST" and url.path == "/go":
            self.rates[:] = [float(query.get("rate", 0))]
            self.go.set()
            writer.write(_HEAD + b"Content-Length: 3\r\n\r\n{}\n")
        elif url.path != "/api/v1/pods":
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        elif query.get("watch") == "true":
            await self.watch(query, writer)
        else:
            writer.write(self.load.page(int(query.get("limit", 0)), int(query.get("continue", 0))))

    async def watch(self, query: dict[str, str], writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        if query.get("sendInitialEvents") == "true":
            for batch in self.load.initial:
                writer.write(batch)
                await writer.drain()
        await self.go.wait()
        if rate := self.rates[0]:
            begin = time.perf_counter()
            for number, line in enumerate(self.load.lines):
                ahead = begin + number / rate - time.perf_counter()
                if ahead > 0:
                    await asyncio.sleep(ahead)
                writer.write(line)
        else:
            for batch in self.load.events:
                writer.write(batch)
                await writer.drain()
        await asyncio.sleep(3600)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="end by itself after so long")
    arguments = parser.parse_args()
    load = Load(arguments.pods, arguments.events)
    connection = Connection(load, asyncio.Event(), [0.0])
    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=1 << 16)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.sleep(arguments.seconds)


if __name__ == "__main__":
    asyncio.run(main())
