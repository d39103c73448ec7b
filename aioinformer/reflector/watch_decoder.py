"""Decode the values of a watch, which `ValueStream` finds, into events.

API servers always write an event as `{"type":"MODIFIED","object":{…}}`. The object is therefore cut out by position,
and only its metadata are decoded. Behind a proxy or an aggregated API, an event may have white space or another order
of members: what does not begin in the usual way is decoded as JSON in any form.

Bookmarks and errors are not decoded by the model of the resource: a bookmark may contain only a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.errors import ApiError, DecodeError, api_error
from aioinformer.logs import without_values
from aioinformer.reflector.watch_events import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    INITIAL_EVENTS_END,
    MODIFIED,
    Expected,
    Refused,
    WatchEvent,
)
from aioinformer.transport.json_scanner import TooDeep, members, outline

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record


# The members of an event.
_NO_OPENING: Final[tuple[str, int, tuple[bytes, ...]]] = "", 0, ()
_CHANGES: Final = frozenset((ADDED, MODIFIED, DELETED))
_MEMBERS: Final = ("type", "object")
_TYPE_META: Final = {"kind": None, "apiVersion": None}
#: Lines that end farther behind the first one are left to the next step.
_RUN: Final = 64 * 1024


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"")


class _BookmarkMeta(msgspec.Struct, gc=False):
    resource_version: str | None = msgspec.field(name="resourceVersion", default="")
    annotations: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return without_values(self)


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta | None = None


# Made during import: event loops in two threads may decode their first events at the same time.
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode
_ANYTHING: Final = Expected()


def decode_watch_line(line: bytes, decode: Callable[[bytes], Record], expected: Expected = _ANYTHING) -> WatchEvent:
    """Decode one line of a watch. Every byte of it is checked to be JSON.

    Args:
        line: without its line break.
        decode: `RecordDecoder.from_watch`, or `from_list` for the initial events of a streaming list.
        expected: what the object must be. For any other object, the event is returned with `ForeignObject`.

    Raises:
        DecodeError: the line is not a watch event. If only the *object* cannot be decoded, the event is returned with
            the error.
        TooDeep: the event is nested too deeply; `decode_deep_event` reads it once its end is certain.
    """
    if not line.isascii():
        _check_encoding(line)
    events: list[WatchEvent] = []
    decode_lines(decode, expected, events, line, 0, len(line))
    return events[0] if events else _decode_unusual_line(line, decode, expected)


def decode_lines(
    decode: Callable[[bytes], Record],
    expected: Expected,
    events: list[WatchEvent],
    data: bytes,
    at: int,
    end: int,
    limit: int = 1,
) -> int:
    """Decode some lines of a watch as `decode_watch_line` does, up to the first that is unusual or has such an object.

    Args:
        decode: as there.
        expected: as there.
        events: gets the events.
        data: contains the lines.
        at: the offset of the first line.
        end: the offset of its end.
        limit: the largest number of lines.

    Returns:
        The offset of the first line that was not decoded. Lines that end too far behind the first one are left, too.
    """
    namespace = expected.namespace
    openings = expected.openings
    find = data.find
    last = at + _RUN
    for _ in range(limit):
        kind, size, heads = openings.get(data[at + 9 : at + 10], _NO_OPENING)
        if not data.startswith(heads, at) or data[end - 1] != 0x7D:  # "}"
            break
        raw = data[at + size : end - 1]
        try:
            if not raw.isascii():
                _check_encoding(raw)  # decoders do not check the encoding of strings that they skip
            record = decode(raw)
        except Refused as error:
            events.append(_refused_event(kind, error))
        except DecodeError:
            break
        else:
            if namespace and record.namespace != namespace:
                break
            events.append(WatchEvent(kind, record))
        at = end + 1
        end = find(b"\n", at, last)
        if end < 0:
            break
    return at


def _check_encoding(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        raise DecodeError("an event of the watch is not UTF-8") from None


def _decode_unusual_line(line: bytes, decode: Callable[[bytes], Record], expected: Expected) -> WatchEvent:
    try:
        frame = _decode_line(line)
    except RecursionError as error:
        raise TooDeep("an event of the watch is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if line.lstrip()[:1] == b"<":
            hint = " (it looks like HTML: is there a proxy in between?)"
        else:
            hint = ""
        raise DecodeError(f"a line of the watch is not a watch event{hint}") from error
    raw = bytes(frame.object)
    if frame.type not in _CHANGES:
        return _other_event(frame.type, raw)
    try:
        expected.check_kind(raw)
        return WatchEvent(frame.type, expected.check_namespace(decode(raw)))
    except TooDeep:
        raise
    except DecodeError as error:
        return _event_without_object(frame.type, error)


def decode_deep_event(text: bytes, decode: Callable[[bytes], Record], expected: Expected = _ANYTHING) -> WatchEvent:
    """Do the same as `decode_watch_line` for an event that is nested too deeply for decoders.

    Args:
        text: exactly one JSON object, as its brackets show.
        decode: `RecordDecoder.deep_from_watch` or `deep_from_list`.
        expected: what the object must be.

    Raises:
        DecodeError: the object is not a watch event.
    """
    _check_encoding(text)
    kind, size, heads = expected.openings.get(text[9:10], _NO_OPENING)
    usual = text.startswith(heads)
    if usual:
        raw = text[size:-1]
    else:
        parts = members(text, _MEMBERS)
        raw = parts.get("object", b"")
        try:
            kind = msgspec.json.decode(parts.get("type", b""), type=str)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DecodeError("a line of the watch is not a watch event") from error
        if kind not in _CHANGES:
            return _other_event(kind, raw)
    try:
        if not usual:  # the usual opening shows the kind
            expected.check_kind(outline(raw, _TYPE_META))
        return WatchEvent(kind, expected.check_namespace(decode(raw)))
    except DecodeError as error:
        return _event_without_object(kind, error)


def _other_event(kind: str, raw: bytes) -> WatchEvent:
    if kind == BOOKMARK:
        return _bookmark(raw)
    return WatchEvent(ERROR, error=_status(raw)) if kind == ERROR else WatchEvent(kind)


def _event_without_object(kind: str, error: DecodeError) -> WatchEvent:
    if isinstance(error, Refused):
        return _refused_event(kind, error)
    return WatchEvent(kind, error=error)


def _refused_event(kind: str, error: Refused) -> WatchEvent:
    # A deletion needs only the key: it must not be lost because a transform raises.
    return WatchEvent(kind, error.record if kind == DELETED else None, error=error)


def _bookmark(raw: bytes) -> WatchEvent:
    try:
        meta = _decode_bookmark(raw).metadata or _BookmarkMeta()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return WatchEvent(BOOKMARK, error=DecodeError("the metadata of a bookmark cannot be read"))
    ended = (meta.annotations or {}).get(INITIAL_EVENTS_END) == "true"
    return WatchEvent(BOOKMARK, version=meta.resource_version or "", initial_events_end=ended)


def _status(raw: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = None
    return api_error(0, status if isinstance(status, Mapping) else None)
