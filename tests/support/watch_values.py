"""A watch stream in memory, taken apart as informers do it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aioinformer.reflector.value_stream import ValueStream
from aioinformer.reflector.watch_decoder import decode_deep_event, decode_watch_line
from aioinformer.reflector.watch_events import RecordDecoder, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def events_of(
    *chunks: bytes, decoder: RecordDecoder | None = None, stream: ValueStream | None = None
) -> list[WatchEvent]:
    """Return the events of a stream of chunks."""
    return list(each_event(chunks, decoder=decoder, stream=stream))


def each_event(
    chunks: Iterable[bytes], *, decoder: RecordDecoder | None = None, stream: ValueStream | None = None
) -> Iterator[WatchEvent]:
    """Yield the events."""
    return (event for event in steps_of(chunks, decoder=decoder, stream=stream) if event is not None)


def steps_of(
    chunks: Iterable[bytes], *, decoder: RecordDecoder | None = None, stream: ValueStream | None = None
) -> Iterable[WatchEvent | None]:
    """Yield the events, and None for each pause."""
    decoder, stream = decoder or RecordDecoder(), stream or ValueStream()
    decode = partial(decode_watch_line, decode=decoder.from_watch)
    deep = partial(decode_deep_event, decode=decoder.deep_from_watch)
    for chunk in chunks:
        yield from stream.read(chunk, decode, deep)
