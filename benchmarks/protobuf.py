"""Compare metadata from protobuf, read in Python, with metadata from JSON, read by msgspec in C.

Both are read from the socket into records, without a cache: only this part depends on the format. In protobuf the
server sends two thirds of the bytes, frames state their length, metadata comes first, and the rest of an object is not
read. This is the best case for protobuf. Encoding the frames needs `go`.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from struct import unpack_from
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
from clients import Stopwatch
from harness import Offer, Question, Requirement, run
from peers import Peers

from aioinformer import HttpTransport
from aioinformer.cache.objects.record import Record
from aioinformer.reflector.value_stream import ValueStream
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures, Measure

_EVENTS = 20_000

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_METADATA = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_NAME, _NAMESPACE, _UID, _VERSION, _GENERATION, _LABEL = 0x0A, 0x1A, 0x2A, 0x32, 0x38, 0x5A
_LONG = 0x80


class Frames:
    """Splits chunks into frames, each preceded by four bytes of length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the frames that a chunk completes."""
        data = self._rest + chunk if self._rest else chunk
        frames, at, end = [], 0, len(data)
        while end - at >= 4:
            stop = at + 4 + int(unpack_from(">I", data, at)[0])
            if stop > end:
                break
            frames.append(data[at + 4 : stop])
            at = stop
        self._rest = data[at:]
        return frames


def _inside(data: bytes, at: int) -> int:
    """Return the start of the value of the field whose tag is at this position."""
    while data[at + 1] > 127:
        at += 1
    return at + 2


def record_of(frame: bytes) -> Record:
    """Return the record of a watch event."""
    at = 2 + frame[1]  # after the type
    at = _inside(frame, at)  # in the RawExtension
    at = _inside(frame, at) + 4  # in its bytes, after the magic number
    at += 2 + frame[at + 1]  # after the TypeMeta
    at = _inside(frame, at)  # in the object
    name = namespace = uid = version = ""
    labels: list[bytes] = []
    at = _inside(frame, at)  # in its metadata
    while (tag := frame[at]) < _LONG:
        size, at = frame[at + 1], at + 2
        if tag == _GENERATION:
            while frame[at - 1] > 127:
                at += 1
            continue
        if size > 127:
            size, at = (size & 127) | frame[at] << 7, at + 1
        if tag == _NAME:
            name = frame[at : at + size].decode()
        elif tag == _NAMESPACE:
            namespace = frame[at : at + size].decode()
        elif tag == _UID:
            uid = frame[at : at + size].decode()
        elif tag == _VERSION:
            version = frame[at : at + size].decode()
        elif tag == _LABEL:
            labels.append(frame[at : at + size])
        elif tag > _LABEL:
            break
        at += size
    # Records keep labels and body encoded: here as protobuf instead of JSON.
    return Record(f"{namespace}/{name}", namespace, name, uid, version, msgspec.Raw(b"".join(labels)), frame)


async def follow(url: str, take: Callable[[bytes], int], accept: str) -> Figures:
    """Measure reading the watch with `take`, which processes a chunk and returns the number of complete events."""
    async with HttpTransport(url) as transport, aiohttp.ClientSession() as session:
        headers = {"Accept": accept} if accept else {}
        request = HttpRequest("/api/v1/pods", (("watch", "true"), ("resourceVersion", "1")), headers=headers)
        response = await transport.request(request)

        async def go() -> None:
            async with session.post(f"{url}/go"):
                pass

        going = asyncio.create_task(go(), name="go")
        await asyncio.sleep(0)
        watch = Stopwatch()
        seen = 0
        async for chunk in response.chunks():
            seen += take(chunk)
            if seen >= _EVENTS:
                break
        cpu = watch.cpu
        await going
        await response.close()
    return {"watch_us_per_event": cpu / _EVENTS * 1e6}


async def protobuf(url: str, *, metadata: bool = False) -> Figures:
    """Measure reading protobuf."""
    frames, checked = Frames(), False

    def take(chunk: bytes) -> int:
        nonlocal checked
        records = [record_of(frame) for frame in frames.feed(chunk)]
        if records and not checked:
            checked = bool(records[0].name and records[0].namespace and records[0].uid and records[0].resource_version)
            assert checked, records[0]
        return len(records)

    return await follow(url, take, f"{_PROTOBUF};{_METADATA}" if metadata else _PROTOBUF)


async def json(url: str, *, metadata: bool = False) -> Figures:
    """Measure reading JSON."""
    values = ValueStream()
    decode = partial(decode_watch_line, decode=RecordDecoder().from_watch)

    def refuse(value: bytes) -> Any:
        raise ValueError("events of this benchmark must be small enough to be read in one step")

    def take(chunk: bytes) -> int:
        return sum(event is not None for event in values.read(chunk, decode, refuse))

    return await follow(url, take, f"application/json;{_METADATA}" if metadata else "")


_SUBJECTS: dict[str, Measure | list[str]] = {
    "JSON": json,
    "protobuf": protobuf,
    "JSON, metadata only": partial(json, metadata=True),
    "protobuf, metadata only": partial(protobuf, metadata=True),
}


def question() -> Question:
    """Return the question with the tool that encodes the frames, if it can be built."""
    peers = Peers()
    peers.go(0)
    subjects = _SUBJECTS if peers.protobuf_tool else {name: _SUBJECTS[name] for name in ("JSON", "JSON, metadata only")}
    event = "watch_us_per_event"
    return Question(
        "protobuf",
        "Is reading metadata from protobuf, in Python, cheaper than from JSON?",
        subjects,
        Offer(forms="json,metadata", protobuf_tool=peers.protobuf_tool),
        requirements=[Requirement("from socket to record: JSON, ratio to protobuf", "JSON", event, 1.0, "protobuf")],
        notes=peers.notes,
    )


if __name__ == "__main__":
    run(Question("protobuf", "", _SUBJECTS) if "--subject" in sys.argv else question())
