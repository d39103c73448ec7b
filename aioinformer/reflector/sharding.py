"""`ShardedListWatch` lists and watches one shard of a collection.

The request names the shard. A server that does not support shards ignores this parameter and sends all objects, so
objects of other shards are also dropped here, before they are cached. This costs network traffic, and the decoding of
the metadata.

An object whose controller changes may leave the shard of its owner. Then the watch shows a deletion, as one of a server
that selects objects does. It has no state, so handlers receive the last one in the cache.

In a watch, a bookmark replaces the events of dropped objects that arrive together, so that the version still advances.
If such events are frequent, one bookmark replaces those of 0.1 s: most of what an event costs comes after this module.
During a streaming list they are removed: its objects have no order, and an ordinary bookmark would end it.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from aioinformer.concurrency import Slicer
from aioinformer.errors import ApiError, DecodeError, FrameTooLarge
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ListOptions
from aioinformer.reflector.value_stream import ValueStream
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, INITIAL_EVENTS_END, MODIFIED
from aioinformer.resources.keys import metadata_field, metadata_of
from aioinformer.resources.resource import Resource
from aioinformer.resources.selectors import FieldSelector, LabelSelector
from aioinformer.resources.shards import ShardSelector
from aioinformer.transport import Response, Transport
from aioinformer.transport.clients import Connection
from aioinformer.transport.json_scanner import TooDeep, outline
from aioinformer.transport.list_parser import ListParser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.transport.json_scanner import Wanted


T = TypeVar("T")

#: The most ranges of a selector in a URL. With more, objects of other shards are dropped here.
_MOST_RANGES: Final = 32
#: How many decisions about objects are remembered, a power of two: each has 8 bytes.
_DECISIONS: Final = 16384
#: How many places there are to remember which objects belonged to the shard of their owner. If objects share a place, a
#: deletion may be shown for one that is not in the cache, where it has no effect.
_PLACES: Final = 1 << 17
#: Seconds between two bookmarks, if nothing else is passed on.
_BETWEEN: Final = 0.1


class ShardedListWatch(ListWatch[T]):
    """A `ListWatch` of the objects of one shard. Arguments that are not described here are as there.

    Args:
        transport: sends requests to the server.
        resource: the resource to list.
        shard: selects the objects.
        of_owner: an object belongs to the shard of the uid of its controller. The server cannot select these objects.

    Attributes:
        shard: as given.
        left_out: the number of objects of other shards that the server has sent. It stays 0 if the server supports
            shards.

    Raises:
        UsageError: as `ListWatch`.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        resource: Resource[T],
        shard: ShardSelector,
        # Selection
        namespace: str = "",
        label_selector: str | LabelSelector | Mapping[str, str] = "",
        field_selector: str | FieldSelector | Mapping[str, str] = "",
        tweak: Callable[[ListOptions], None] | None = None,
        # Form
        *,
        metadata_only: bool = False,
        of_owner: bool = False,
    ) -> None:
        super().__init__(
            transport, resource, namespace, label_selector, field_selector, tweak, metadata_only=metadata_only
        )
        self.shard = shard
        self._of_owner = of_owner
        self.left_out = 0
        #: At a place given by the hash of uid and namespace: 63 bits of this hash, and the decision in the lowest bit.
        #: The hash of the API takes longer than everything else about an event of another shard.
        self._decisions = array("q", bytes(8 * _DECISIONS))
        #: At a place given by the hash of a uid: whether an object belonged to the shard of its owner.
        self._belonged = bytearray(_PLACES if of_owner else 0)

    def only_metadata(self) -> Self:
        """Return a copy that requests metadata only, with its own count of `left_out`."""
        other = super().only_metadata()
        other.left_out = 0
        return other

    async def request(self, options: ListOptions) -> Response:
        """Send a list or a watch, with the selectors added. The response contains only objects of the shard."""
        if not self._of_owner and len(self.shard.ranges) <= _MOST_RANGES:
            options.shard_selector = str(self.shard)
        response = await super().request(options)
        if response.status != 200:
            return response
        return _ShardResponse(self, response, options)

    def excludes(self, item: Any, *, whole: bool = True) -> str:
        """Do the same as `ListWatch.excludes`; objects of other shards are excluded, too."""
        metadata = metadata_of(item)
        uid = metadata_field(metadata, "uid", "uid") or ""
        if self._of_owner:
            if whole:
                references = metadata_field(metadata, "owner_references", "ownerReferences") or ()
            else:
                references = ()
            controllers = (each for each in references if metadata_field(each, "controller", "controller"))
            uid = next((metadata_field(each, "uid", "uid") for each in controllers), "")
            if whole and not uid:
                return "it has no controller, and belongs to no shard"
        if uid and not self.shard.matches(uid, metadata_field(metadata, "namespace", "namespace") or ""):
            return "it belongs to another shard"
        return super().excludes(item, whole=whole)

    def includes(self, metadata: _Meta | None) -> bool:
        """Return whether an object belongs to the shard, and count it if not. Objects without metadata are kept."""
        if metadata is None:
            return True
        uid = metadata.uid
        if self._of_owner:
            uid = next((each.uid for each in metadata.owner_references or () if each.controller), "")
        if (uid or not self._of_owner) and self._matches(uid or "", metadata.namespace or ""):
            if self._of_owner:
                self._belonged[hash(metadata.uid) % _PLACES] = 1
            return True
        self.left_out += 1
        return False

    def may_have_left(self, metadata: _Meta) -> bool:
        """Return whether an object of another shard may have belonged to this one: its owner may have changed."""
        return self._of_owner and bool(self._belonged[hash(metadata.uid) % _PLACES])

    def _matches(self, uid: str, namespace: str) -> bool:
        known = hash((uid, namespace))
        at = known % _DECISIONS
        decision = self._decisions[at]
        if decision | 1 == known | 1:
            return bool(decision & 1)
        matches = self.shard.matches(uid, namespace)
        self._decisions[at] = (known & -2) | matches
        return matches


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""
    controller: bool | None = False


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str | None = ""
    uid: str | None = ""
    namespace: str | None = ""
    resource_version: str | None = ""
    owner_references: list[_Owner] | None = None
    annotations: msgspec.Raw = msgspec.Raw(b"{}")


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta | None = None


class _Line(msgspec.Struct, gc=False):
    type: str
    object: _Object


_decode_object = msgspec.json.Decoder(_Object).decode
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder(msgspec.Raw).decode
#: The members of objects and events that are read.
_OBJECT = {
    "metadata": {
        **dict.fromkeys(("name", "uid", "namespace", "resourceVersion", "ownerReferences")),
        "annotations": {INITIAL_EVENTS_END: None},
    }
}
_INITIAL_END: Final = INITIAL_EVENTS_END.encode()
_EVENT = {"type": None, "object": _OBJECT}
_CHANGES: Final = (ADDED, MODIFIED, DELETED)
_BOOKMARK: Final = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":%b}}}\n'
#: The deletion of an object that still exists. Its uid is no text, so that it has no state.
_LEFT: Final = b'{"type":"DELETED","object":{"metadata":{"name":%b,"namespace":%b,"uid":0,"resourceVersion":%b}}}\n'
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


class _ShardResponse:
    """A response without the objects of other shards. A body that is not a list or watch is passed on as invalid."""

    def __init__(self, owner: ShardedListWatch[T], response: Response, options: ListOptions) -> None:
        self._owner = owner
        self._response = response
        self._watch = options.watch
        self._wanted: Wanted = _EVENT if options.watch else _OBJECT
        self._end = b"\n" if options.watch else b""
        #: The version of the last dropped event of a watch, if neither a bookmark nor a later event has shown it yet.
        self._passed = ""
        #: When a bookmark was passed on for dropped events alone, and the timer of the next one.
        self._shown_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._nudge: Callable[[], None] | None = getattr(response, "nudge", None)
        self._initial = options.send_initial_events
        self._max_frame = options.max_frame
        self._slicer = Slicer()
        self.status = response.status
        self.headers = response.headers
        self.close = response.close

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the filtered body, one chunk for each chunk that arrives."""
        chunks = self._response.chunks()
        try:
            async with aclosing(self._lines(chunks) if self._watch else self._items(chunks)) as kept:
                async for chunk in kept:
                    yield chunk
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()  # otherwise asyncio closes it later, in a task without an owner

    async def _lines(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        values = ValueStream(self._max_frame)
        async for chunk in chunks:
            left = bytearray()
            try:
                usual = partial(self._filter_usual_line, left)
                for line in values.read(chunk, self._filter, self._filter_deep, usual):
                    if line:
                        left += line
                    await self._slicer.pause()
            except FrameTooLarge:
                raise
            except DecodeError:
                yield bytes(left + self._bookmark() + values.unread())
                async for rest in chunks:  # the reader of the response reports the broken value
                    yield rest
                return
            if self._passed and (left or self._is_due()):
                left += self._bookmark()
            if left:
                yield bytes(left)
        if self._passed:
            yield self._bookmark()
        if rest := values.unread():  # a truncated event
            yield rest

    def _filter_usual_line(self, left: bytearray, data: bytes, at: int, end: int) -> int:
        """Add a line to what is left, if it is, and return the offset of the next line; `at` if it is not usual."""
        line = data[at:end]
        try:
            left += self._filter_event(_decode_line(line), line)
        except (*_UNREADABLE, RecursionError):
            return at
        return end + 1

    def _filter(self, raw: bytes) -> bytes:
        """Return what is passed on of an event of a watch, or an item of a list; b"" if it belongs to another shard."""
        try:
            return self._filter_shown(raw, raw)
        except RecursionError as error:
            raise TooDeep("nested too deeply for a decoder") from error
        except _UNREADABLE as error:
            with suppress(*_UNREADABLE, RecursionError):
                _decode_any(raw)
                return raw + self._end  # it is JSON, and the reader of the response reports it
            raise _Unreadable(raw) from error

    def _filter_deep(self, raw: bytes) -> bytes:
        """Do the same as `_filter` for exactly one object that is nested too deeply for decoders."""
        try:
            return self._filter_shown(raw, outline(raw, self._wanted))
        except _UNREADABLE:
            return raw + self._end

    def _filter_shown(self, raw: bytes, shown: bytes) -> bytes:
        """Do the same as `_filter`, by the members that are shown."""
        if self._watch:
            return self._filter_event(_decode_line(shown), raw)
        return raw if self._owner.includes(_decode_object(shown).metadata) else b""

    def _filter_event(self, event: _Line, line: bytes) -> bytes:
        metadata = event.object.metadata
        if event.type in _CHANGES:
            version = "" if metadata is None else metadata.resource_version
            if not self._owner.includes(metadata):
                if event.type != ADDED and metadata is not None and self._owner.may_have_left(metadata):
                    self._passed = ""
                    return _LEFT % tuple(map(msgspec.json.encode, (metadata.name, metadata.namespace, version)))
                if version and not self._initial:
                    self._passed = version
                return b""
            if version:  # the version of this event is a later one
                self._passed = ""
        elif event.type == BOOKMARK and metadata is not None:
            self._initial = self._initial and _INITIAL_END not in bytes(metadata.annotations)
        return (self._bookmark() if self._passed else b"") + line + b"\n"

    def _is_due(self) -> bool:
        """Return whether a bookmark is due although nothing else is passed on; otherwise, a timer is set."""
        loop = asyncio.get_running_loop()
        if self._nudge is None or loop.time() >= self._shown_at + _BETWEEN:
            self._shown_at = loop.time()
            return True
        if self._timer is None:
            self._timer = loop.call_at(self._shown_at + _BETWEEN, self._on_timer, self._nudge)
        return False

    def _on_timer(self, nudge: Callable[[], None]) -> None:
        self._timer = None
        nudge()

    def _bookmark(self) -> bytes:
        """Return the bookmark of the last dropped event; b"" if none is due."""
        version = self._passed
        self._passed = ""
        return _BOOKMARK % msgspec.json.encode(version) if version else b""

    async def _items(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        parser = ListParser(self._filter, self._max_frame, deep=self._filter_deep)
        try:
            yield b'{"items":['
            between = b""
            chunk: bytes | None = b""
            while chunk is not None:
                chunk = await anext(chunks, None)
                if chunk is None:
                    parser.feed_eof()
                else:
                    parser.feed(chunk)
                left = bytearray()
                for item in parser.items():
                    raw = item.raw if isinstance(item, _Unreadable) else item
                    if isinstance(raw, bytes) and raw:
                        left += between + raw
                        between = b","
                    await self._slicer.pause()
                yield bytes(left)
            yield b"]," + msgspec.json.encode(parser.head())[1:]
        except FrameTooLarge:
            raise
        except (ApiError, DecodeError):
            return  # the reader of the response detects that the list is truncated


class _Unreadable(DecodeError):
    """An item cannot be decoded. It is passed on unchanged, and the reader of the response reports it."""

    def __init__(self, raw: bytes) -> None:
        super().__init__("the object cannot be read")
        self.raw = raw
