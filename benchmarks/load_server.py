"""Serve load that never limits a benchmark: the server only writes bytes that it has prepared in advance.

    python benchmarks/load_server.py --pods 20000 --events 20000 --forms json,metadata

The first line on stdout is the URL. The server has `/api/v1/pods`: lists in pages (`limit`, `continue`), streaming
lists, and watches, in the format that `Accept` requests. A watch delivers nothing until one of these requests arrives:

- `POST /go`: each watch receives all events as fast as its socket accepts them. Each event is a new version of a pod.
  The request waits until there is a watch.
- `POST /expire`: each watch ends with 410 Gone, so the client relists: the same objects, at a later resourceVersion.

Clients can connect one after the other, and all receive the same. `labelSelector=first=1000` selects the first 1,000
pods.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from pods import encoded, encoded_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

#: To a watch: send all events, or end with 410.
Command: TypeAlias = Literal["go", "expire"]

_BATCH = 32
#: The number of relists before the version of the list reaches that of the first event.
_ROOM = 1_000_000
_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version","reason":"Expired","code":410}}\n'
)

#: For clients that use discovery first.
_DISCOVERY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": name, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": verbs}
            for name, kind, namespaced, verbs in (
                ("namespaces", "Namespace", False, ["get", "list"]),
                ("pods", "Pod", True, ["get", "list", "watch"]),
            )
        ],
    },
}


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Form:
    """All responses in one format of JSON, prepared in advance.

    Args:
        pods: the number of pods.
        events: the number of events.
        spread: the number of pods that change.
        encode: returns the JSON of a pod, given its number and version.
        kind: the members in front of an object of a watch.
        list_kind: the members in front of a list.
    """

    content_type = b"application/json"
    expired = _chunk(_EXPIRED)

    def __init__(
        self,
        pods: int,
        events: int,
        spread: int,
        encode: Callable[[int, int], bytes],
        kind: bytes,
        list_kind: bytes,
    ) -> None:
        self._list_kind = list_kind
        self._items = [encode(number, number + 1) for number in range(pods)]
        opening = b'{"type":"%b","object":{' + kind + b",%b}\n"
        added = [_chunk(opening % (b"ADDED", item[1:])) for item in self._items]
        end = b'"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}'
        self._initial = [b"".join(added[at : at + _BATCH]) for at in range(0, pods, _BATCH)]
        self._end = b'{"type":"BOOKMARK","object":{' + kind + b"," + end + b"}\n"
        lines = [
            _chunk(opening % (b"MODIFIED", encode((index * 7919) % spread, pods + _ROOM + index)[1:]))
            for index in range(events)
        ]
        self.events = [b"".join(lines[at : at + _BATCH]) for at in range(0, events, _BATCH)]
        self._pages: dict[tuple[int, int, int, int], bytes] = {}

    def initial(self, version: int, first: int) -> list[bytes]:
        """Return the streaming list of the first pods, rounded up to a whole number of batches."""
        return [*self._initial[: -(-first // _BATCH)], _chunk(self._end % version)]

    def page(self, limit: int, start: int, version: int, first: int) -> bytes:
        """Return a page of the list of the first pods. It is created at the first request."""
        page = self._pages.get((limit, start, version, first))
        if page is None:
            stop = min(start + limit, first) if limit else first
            left = first - stop
            token = b'"continue":"%d","remainingItemCount":%d,' % (stop, left) if left else b""
            items = b",".join(self._items[start:stop])
            body = b'{%b,"metadata":{%b"resourceVersion":"%d"},"items":[%b]}\n'
            page = self._pages[limit, start, version, first] = body % (self._list_kind, token, version, items)
        return page


class ProtobufForm(Form):
    """All responses of a stream in protobuf, encoded by an external tool.

    Args:
        plain: the same in JSON.
        pods: the number of pods.
        tool: the command. It reads events, one per line, and writes frames, each preceded by its length.
    """

    content_type = b"application/vnd.kubernetes.protobuf"

    def __init__(self, plain: Form, pods: int, tool: list[str]) -> None:
        wanted = [_line_of(chunk) for batch in plain.initial(pods, pods) for chunk in _chunks_of(batch)]
        wanted += [_line_of(chunk) for batch in plain.events for chunk in _chunks_of(batch)] + [_EXPIRED]
        done = subprocess.run(tool, input=b"".join(wanted), stdout=subprocess.PIPE, check=True)
        frames = [_chunk(frame) for frame in _frames_of(done.stdout)]
        added, lines = frames[:pods], frames[pods + 1 : -1]
        self._initial = [b"".join(added[at : at + _BATCH]) for at in range(0, pods, _BATCH)] + [frames[pods]]
        self.events = [b"".join(lines[at : at + _BATCH]) for at in range(0, len(lines), _BATCH)]
        self.expired = frames[-1]

    def initial(self, version: int, first: int) -> list[bytes]:
        return self._initial

    def page(self, limit: int, start: int, version: int, first: int) -> bytes:
        raise NotImplementedError("protobuf supports streaming lists only")


def _chunks_of(batch: bytes) -> list[bytes]:
    chunks, at = [], 0
    while at < len(batch):
        head = batch.index(b"\r\n", at)
        stop = head + 2 + int(batch[at:head], 16) + 2
        chunks.append(batch[at:stop])
        at = stop
    return chunks


def _line_of(chunk: bytes) -> bytes:
    return chunk[chunk.index(b"\r\n") + 2 : -2]


def _frames_of(data: bytes) -> list[bytes]:
    frames, at = [], 0
    while at < len(data):
        stop = at + 4 + int(struct.unpack_from(">I", data, at)[0])
        frames.append(data[at:stop])
        at = stop
    return frames


class Load:
    """The prepared formats and the open watches."""

    def __init__(self, pods: int, events: int, spread: int, forms: list[str], protobuf_tool: list[str]) -> None:
        self.forms: dict[str, Form] = {}
        if "json" in forms:
            kind, kinds = b'"kind":"Pod","apiVersion":"v1"', b'"kind":"PodList","apiVersion":"v1"'
            self.forms["json"] = Form(pods, events, spread, encoded, kind, kinds)
        if "metadata" in forms:
            kind = b'"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"'
            kinds = b'"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"'
            self.forms["metadata"] = Form(pods, events, spread, encoded_metadata, kind, kinds)
        if protobuf_tool:
            for name, form in list(self.forms.items()):
                self.forms[f"{name} in protobuf"] = ProtobufForm(form, pods, protobuf_tool)
        self.pods = pods
        #: The resourceVersion of lists.
        self.version = pods
        self.watches: set[asyncio.Queue[Command]] = set()
        self.arrived = asyncio.Event()

    def form(self, accept: str) -> Form:
        """Return the format that an Accept header requests."""
        name = "metadata" if "as=PartialObjectMetadata" in accept else "json"
        if accept.startswith("application/vnd.kubernetes.protobuf"):
            return self.forms.get(f"{name} in protobuf") or self.forms[name]
        return self.forms[name]

    async def send_command(self, command: Command) -> None:
        """Wait until there is a watch, and send all watches a command."""
        while not self.watches:
            self.arrived.clear()
            await self.arrived.wait()
        for watch in self.watches:
            watch.put_nowait(command)


class Connection:
    """Serves one connection."""

    def __init__(self, load: Load) -> None:
        self._load = load

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while request := (await reader.readuntil(b"\r\n\r\n")).decode():
                line, *fields = request.split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
                await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = line.split(" ", 2)
                await self._respond(method, target, headers.get("accept", ""), reader, writer)
                await writer.drain()
        writer.close()

    async def _respond(
        self, method: str, target: str, accept: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        match method, url.path:
            case "POST", "/go":
                await self._load.send_command("go")
                self._send(writer, b"{}")
            case "POST", "/expire":
                self._load.version += 1
                await self._load.send_command("expire")
                self._send(writer, b"{}")
            case "GET", "/api/v1/pods":
                form = self._load.form(accept)
                first = int(query.get("labelSelector", "first=0").removeprefix("first=")) or self._load.pods
                if query.get("watch", "").lower() in ("true", "1"):
                    streamed = query.get("sendInitialEvents", "").lower() == "true"
                    initial = form.initial(self._load.version, first) if streamed else []
                    await self._watch(form, initial, reader, writer)
                else:
                    limit, start = int(query.get("limit", 0)), int(query.get("continue", 0))
                    page = form.page(limit, start, self._load.version, first)
                    self._send(writer, page, form.content_type)
            case "GET", path if path in _DISCOVERY:
                self._send(writer, json.dumps(_DISCOVERY[path]).encode())
            case _:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _send(self, writer: asyncio.StreamWriter, body: bytes, kind: bytes = b"application/json") -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)))
        writer.write(body)

    async def _watch(
        self, form: Form, initial: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        kind = form.content_type + (b";stream=watch" if isinstance(form, ProtobufForm) else b"")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % kind)
        for batch in initial:
            writer.write(batch)
            await writer.drain()
        commands: asyncio.Queue[Command] = asyncio.Queue()
        self._load.watches.add(commands)
        self._load.arrived.set()
        gone = asyncio.create_task(reader.read(1))
        try:
            while True:
                command = asyncio.create_task(commands.get())
                await asyncio.wait({command, gone}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    command.cancel()
                    raise ConnectionResetError
                if command.result() == "expire":
                    writer.write(form.expired + b"0\r\n\r\n")
                    return
                for batch in form.events:
                    writer.write(batch)
                    await writer.drain()
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError, ConnectionError):
                await gone
            self._load.watches.discard(commands)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20_000, help="number of pods")
    parser.add_argument("--events", type=int, default=20_000, help="number of events")
    parser.add_argument("--spread", type=int, default=0, help="number of pods that change; 0 for all")
    parser.add_argument("--forms", default="json", help="formats to prepare: json, metadata")
    parser.add_argument("--protobuf-tool", default="[]", help="command that encodes watch events, as a JSON list")
    parser.add_argument("--seconds", type=float, default=3600.0, help="exit after this time")
    arguments = parser.parse_args()
    tool = json.loads(arguments.protobuf_tool)
    spread = arguments.spread or arguments.pods
    load = Load(arguments.pods, arguments.events, spread, arguments.forms.split(","), tool)
    server = await asyncio.start_server(Connection(load), "127.0.0.1", 0, limit=1 << 16)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.sleep(arguments.seconds)


if __name__ == "__main__":
    asyncio.run(main())
