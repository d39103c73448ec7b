"""Chunks of a watch into events, in time linear in their size however they are cut.

API servers end each event with a line break and always write it as `{"type":"MODIFIED","object":{…}}`. So lines come
first: one search by the C library, one slice, and the object is cut out by its place and decoded once, its metadata
alone. But a watch is a stream of JSON values: behind a proxy or an aggregated API, an event may be spread over several
lines, follow another one on the same line, have white space or another order of members, and the last one may have no
line break yet. The decoder is the judge: a line that it does not accept is read again by strings and brackets
(`json_scanner`), value by value, until a value ends with a line again, and by the rules of JSON.

A broken value must not be waited for. A value that goes on behind a line break is checked to be the beginning of valid
JSON: at its first chunks, and whenever its size has doubled.

Bookmarks and errors never reach the model of the resource: a bookmark may hold nothing but a version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from aioinformer.errors import ApiError, DecodeError, FrameTooLarge, api_error
from aioinformer.reflector.watch_events import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    INITIAL_EVENTS_END,
    MODIFIED,
    Refused,
    WatchEvent,
)
from aioinformer.transport.json_scanner import (
    BOM,
    DEFAULT_MAX_FRAME,
    LARGE,
    Heavy,
    ItemScanner,
    Steps,
    find_members,
    finish,
    is_heavy,
    outline,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from aioinformer.cache.objects.record import Record

T = TypeVar("T")

_BETWEEN = re.compile(rb"(?:[ \t\r\n]|\xef\xbb\xbf)*+")
#: What may follow a value that has no line break yet.
_BLANK = b" \t\r" + BOM
#: At so many chunks a value that is not complete is checked, whatever its size.
_CHECKS = 8
_decode_any = msgspec.json.Decoder(msgspec.Raw).decode


class ValueStream:
    """Takes a stream of JSON objects apart.

    A line that came in many chunks is joined once, when its end is there; nothing is searched twice. Lines are cut one
    by one, as they are taken: so each finds the memory of the one before it free, and still in the processor's cache.

    Args:
        max_frame: the largest object accepted, in bytes.
    """

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        #: The line that has begun.
        self._parts: list[bytes] = []
        self._size = 0
        #: The value that has begun, if it is read by its brackets.
        self._open = bytearray()
        self._scanner: ItemScanner | None = None
        #: How much of it was searched for a line break, and whether there is one.
        self._seen, self._lines = 0, False
        self._checks, self._checked = 0, 0

    def read(
        self, chunk: bytes, decode: Callable[[bytes], T], in_steps: Callable[[bytes], Steps[T]]
    ) -> Iterator[T | None]:
        """Yield the values that this chunk completes, in order, and None where the caller may pause.

        Args:
            chunk: what comes next.
            decode: makes a value of the bytes of one object; raises `DecodeError` for all that is not one whole
                object, and `Heavy` for an object that it must not read at once.
            in_steps: does the same for an object that is too heavy to be decoded at once.

        Raises:
            FrameTooLarge: a value exceeds the cap, if it is still growing: at once.
            DecodeError: what comes next is not a value that the decoder accepts.
        """
        at = 0
        if self._scanner is not None:
            self._open += chunk
            chunk, at = yield from self._values(self._open, 0, decode, in_steps)
        last, long, begun = chunk.rfind(b"\n"), min(LARGE, self._max_frame), self._parts
        while at <= last:
            end = chunk.index(b"\n", at)
            line = chunk[at:end]
            at = end + 1
            if begun:
                line = self._joined(line)
                begun = self._parts
            if not line or line.isspace():
                continue
            error: DecodeError | None
            try:
                if len(line) > long:
                    self._check_size(len(line))
                    if is_heavy(line):
                        raise Heavy
                yield decode(line)
                continue
            except Heavy:
                error = None
            except DecodeError as refused:
                error = refused
            if len(line) > end:
                chunk, end = line + chunk[end:], len(line)  # it began before this chunk
            chunk, at = yield from self._values(chunk, end - len(line), decode, in_steps, error, line)
            last, begun = chunk.rfind(b"\n"), self._parts
        tail = chunk[at:]
        if not tail:
            return
        if tail.rstrip(_BLANK).endswith(b"}"):
            # A value may end here: then it must not wait for its line break. One that the next follows in this chunk
            # waits until that ends, too, or a line does: to search every tail for it would cost more than an event.
            yield from self._values(self._joined(tail), 0, decode, in_steps)
            return
        self._parts.append(tail)
        self._size += len(tail)
        self._check_size(self._size)

    def unread(self) -> bytes:
        """Return what came after the last value, as it came; after `DecodeError`, what was refused and follows it."""
        return b"".join([*self._parts, self._open])

    def finish(self) -> bytes:
        """Return what came after the last value: empty unless the stream was cut in the middle of one."""
        rest = self.unread()
        between = _BETWEEN.match(rest)
        rest = rest[between.end() if between is not None else 0 :].rstrip()
        self._parts, self._size = [], 0
        self._open, self._scanner = bytearray(), None
        return rest

    def _joined(self, part: bytes) -> bytes:
        line = b"".join([*self._parts, part])
        self._parts, self._size = [], 0
        return line

    def _values(
        self,
        data: bytes | bytearray,
        at: int,
        decode: Callable[[bytes], T],
        in_steps: Callable[[bytes], Steps[T]],
        error: DecodeError | None = None,
        line: bytes = b"",
    ) -> Generator[T | None, None, tuple[bytes, int]]:
        """Read values by their brackets, up to the first one that ends with a line.

        Args:
            data: what there is.
            at: where the next value begins, or the one that has begun already.
            decode: as for `read`.
            in_steps: as for `read`.
            error: why the decoder did not accept the line that begins there.
            line: that line.

        Returns:
            What is left, and where the next line begins in it.
        """
        begin = at
        try:
            while True:
                if self._scanner is None:
                    at = self._next(data, at)
                    if at == len(data):
                        return b"", 0
                    if data[at] != 0x7B:  # "{"
                        raise error or DecodeError("what comes behind an event of the watch is not another one")
                    self._scanner = ItemScanner(at)
                while not (end := self._scanner.step(data)):
                    yield None
                self._check_size((len(data) if end < 0 else end) - at)
                if end < 0:
                    self._keep(data, at, error)
                    return b"", 0
                self._scanner, self._open, self._checks, self._checked = None, bytearray(), 0, 0
                value = bytes(data[at:end])
                if error is not None and at == begin and line.rstrip() == value:
                    raise error
                error = None
                try:
                    if is_heavy(value):
                        raise Heavy
                    made = decode(value)
                except Heavy:
                    made = yield from in_steps(value)
                at, rest = end, self._next(data, end)
                yield made
                if rest < len(data) and data.find(b"\n", at, rest) >= 0:
                    return (data, rest) if isinstance(data, bytes) else (bytes(data[rest:]), 0)
        except DecodeError:
            self._open = bytearray(data[at:])
            raise

    def _next(self, data: bytes | bytearray, at: int) -> int:
        """The offset of the next value, behind white space and byte order marks; the end if there is none yet."""
        between = _BETWEEN.match(data, at)
        assert between is not None, "nothing at all is between two values, too"
        rest = bytes(data[between.end() : between.end() + len(BOM)])
        if rest and rest != BOM and BOM.startswith(rest):
            self._parts, self._size = [rest], len(rest)  # a part of a mark, at the end of the chunk
            return len(data)
        return between.end()

    def _keep(self, data: bytes | bytearray, at: int, error: DecodeError | None) -> None:
        """Wait for the rest of a value that has begun, unless it is broken already."""
        assert self._scanner is not None, "it is what looks for the end"
        self._scanner.shift(at)
        if at or data is not self._open:
            self._open, self._seen, self._lines = bytearray(data[at:]), 0, False
        size, self._lines = len(self._open), self._lines or self._open.find(b"\n", self._seen) >= 0
        self._seen = size
        if not self._lines or (self._checks >= _CHECKS and size < 2 * self._checked):
            return
        self._checks, self._checked = self._checks + 1, size
        if not _is_begun(bytes(self._open)):
            raise error or DecodeError("an event of the watch, of several lines, is not JSON")

    def _check_size(self, size: int) -> None:
        if size > self._max_frame:
            raise FrameTooLarge(
                f"an event of the watch exceeds {self._max_frame} bytes; "
                "raise max_frame if objects are really that large"
            )


def _truncated(text: bytes) -> str:
    try:
        _decode_any(text)
    except msgspec.DecodeError as error:
        return str(error)
    return ""


#: So many bytes beside a line break are looked at.
_NEAR = 256
_VALUE_ENDS = (b"}", b"]", b'"')
_VALUES = (b"{", b"[", b'"')
_TRUNCATED = _truncated(b"{")


def _is_begun(text: bytes) -> bool:
    """Whether the whole lines of this may be the beginning of valid JSON."""
    first, last = text.find(b"\n"), text.rfind(b"\n") + 1
    begun = text[:last]  # what is cut within a number or a letter is not a beginning
    if is_heavy(text):
        # To read all of it takes too long. A line that ends with a value is followed by no other value in it.
        before, behind = text[:first][-_NEAR:].rstrip(), text[first : first + _NEAR].lstrip()
        return before[-1:] not in _VALUE_ENDS or behind[:1] not in _VALUES
    try:
        return _truncated(begun) in (_TRUNCATED, "")
    except RecursionError:
        return True


# From the bytes of one value to an event.

_HEAD: Final = b'{"type":"'
_OBJECT: Final = b'","object":'
_SPELLING: Final = {b"ADDED": ADDED, b"MODIFIED": MODIFIED, b"DELETED": DELETED}
_CHANGES: Final = frozenset(_SPELLING.values())
_MEMBERS: Final = ("type", "object")
_BOOKMARK_MEMBERS: Final = {"metadata": {"resourceVersion": None, "annotations": {INITIAL_EVENTS_END: None}}}


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"")


class _BookmarkMeta(msgspec.Struct, gc=False):
    resource_version: str | None = msgspec.field(name="resourceVersion", default="")
    annotations: dict[str, Any] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode


def decode_watch_line(line: bytes, intake: Callable[[bytes], Record]) -> WatchEvent:
    """Reads one line of a watch.

    Args:
        line: without its end.
        intake: `Intake.changed`, or `Intake.listed` for the initial events of a streaming list.

    Raises:
        DecodeError: the line is no watch event. An event whose *object* does not decode is returned, with its error.
        Heavy: the event does not decode at once: use `decode_event_in_steps`.
    """
    if line.startswith(_HEAD):
        quote = line.find(_OBJECT, 9, 32)
        kind = _SPELLING.get(line[9:quote])
        if kind is not None and line.endswith(b"}"):
            try:
                return WatchEvent(kind, intake(line[quote + 11 : -1]))
            except Refused as error:
                return _refused_event(kind, error)
            except DecodeError:
                pass  # either the line is unusual, or its object is: the rules of JSON decide
    return _by_the_rules(line, intake)


def _by_the_rules(line: bytes, intake: Callable[[bytes], Record]) -> WatchEvent:
    try:
        try:
            frame = _decode_line(line)
        except RecursionError as error:  # servers allow objects that are nested deeper than the decoder goes
            if len(line) > LARGE:
                raise Heavy from error
            parts = finish(find_members(line, _MEMBERS))
            frame = _Line(msgspec.json.decode(parts.get("type", b""), type=str), msgspec.Raw(parts.get("object", b"")))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = " (it looks like HTML: is there a proxy in between?)" if line.lstrip()[:1] == b"<" else ""
        raise DecodeError(f"a line of the watch is not a watch event{hint}") from error
    raw = bytes(frame.object)
    return _object_event(frame.type, raw, intake) if frame.type in _CHANGES else _other_event(frame.type, raw)


def decode_event_in_steps(text: bytes, intake: Callable[[bytes], Steps[Record]]) -> Steps[WatchEvent]:
    """As `decode_watch_line`, for an event that is too heavy to be decoded at once.

    Args:
        text: one JSON object.
        intake: `Intake.changed_in_steps` or `Intake.listed_in_steps`.

    Raises:
        DecodeError: it is no watch event.
    """
    parts = yield from find_members(text, _MEMBERS)
    try:
        kind = msgspec.json.decode(parts.get("type", b""), type=str)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError("a line of the watch is not a watch event") from error
    raw = parts.get("object", b"")
    if kind not in _CHANGES:
        if kind == BOOKMARK:
            raw = yield from outline(raw, _BOOKMARK_MEMBERS)
        return _other_event(kind, raw if not is_heavy(raw) else b"")
    try:
        return WatchEvent(kind, (yield from intake(raw)))
    except Refused as error:
        return _refused_event(kind, error)
    except DecodeError as error:
        return WatchEvent(kind, error=error)


def _other_event(kind: str, raw: bytes) -> WatchEvent:
    if kind == BOOKMARK:
        return _bookmark(raw)
    return WatchEvent(ERROR, error=_status(raw)) if kind == ERROR else WatchEvent(kind)


def _object_event(kind: str, raw: bytes, intake: Callable[[bytes], Record]) -> WatchEvent:
    try:
        return WatchEvent(kind, intake(raw))
    except Refused as error:
        return _refused_event(kind, error)
    except DecodeError as error:
        return WatchEvent(kind, error=error)


def _refused_event(kind: str, error: Refused) -> WatchEvent:
    # A deletion needs no more than the key: it must not be lost because a transform raises.
    return WatchEvent(kind, error.record if kind == DELETED else None, error=error)


def _bookmark(raw: bytes) -> WatchEvent:
    try:
        meta = _decode_bookmark(raw).metadata or _BookmarkMeta()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return WatchEvent(BOOKMARK, error=DecodeError("a bookmark has no metadata that can be read"))
    ended = (meta.annotations or {}).get(INITIAL_EVENTS_END) == "true"
    return WatchEvent(BOOKMARK, version=meta.resource_version or "", initial_events_end=ended)


def _status(raw: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = None
    return api_error(0, status if isinstance(status, Mapping) else None)
