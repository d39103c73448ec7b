"""One line of a watch, or one item of a list, into what it says.

A watch line is `{"type":"MODIFIED","object":{…}}`. kube-apiserver always writes it like this, so the object is cut
out by its place, and only the object is decoded: once, its metadata alone, everything else skipped. If the cut does
not decode, the line is read by the rules of JSON, which also handles white space and another order of fields.
Bookmarks and errors never touch the model of the resource: a bookmark may hold nothing but a version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from aioinformer.cache.objects.record import Decode, Record, decode_in_steps, decode_record
from aioinformer.cache.objects.refusals import refusal
from aioinformer.errors import USER_ERRORS, ApiError, DecodeError, api_error
from aioinformer.transport.json_scanner import LARGE, Heavy, Steps, find_members, finish, is_heavy, outline

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

#: What marks the bookmark that ends the initial events of a streaming list.
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

_HEAD: Final = b'{"type":"'
_OBJECT: Final = b'","object":'
_SPELLING: Final = {b"ADDED": ADDED, b"MODIFIED": MODIFIED, b"DELETED": DELETED}
_CHANGES: Final = frozenset(_SPELLING.values())
_MEMBERS: Final = ("type", "object")
_BOOKMARK_MEMBERS: Final = {"metadata": {"resourceVersion": None, "annotations": {INITIAL_EVENTS_END: None}}}


class WatchEvent(msgspec.Struct, gc=False):
    """What one line of a watch says.

    Attributes:
        type: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or whatever a newer server may send.
        record: the object of the first three; None if it does not decode.
        version: the resource version of a bookmark.
        initial_events_end: the bookmark says that the streaming list is complete.
        error: of an ERROR, what the server said; otherwise, why the object does not decode.
    """

    type: str
    record: Record | None = None
    version: str = ""
    initial_events_end: bool = False
    error: ApiError | DecodeError | None = None


class _Refused(DecodeError):
    """The object decodes, but is not admitted."""

    def __init__(self, message: str, record: Record) -> None:
        super().__init__(message, key=record.key, version=record.resource_version)
        self.record = record


class Intake:
    """Makes records of the bytes of objects, the same way for lists and watches.

    A relist brings mostly what is cached already. Such an object is replaced by the cached record at once: no second
    copy of its body stays alive, and identity shows every later stage that nothing has changed. Equal versions alone do
    not prove that: a server that was upgraded may show the same version with another default, one that was restored
    from a backup gives versions out a second time, and some objects have no version at all.

    Args:
        on_arrival: looks at a new record before anyone else does (transform, user's model); may replace it; raises
            anything to refuse it.
        known: the cached record of a key, if there is one.
        decode: makes a record of an object's bytes.
    """

    def __init__(
        self,
        on_arrival: Callable[[Record], Record] | None = None,
        known: Callable[[str], Record | None] = lambda key: None,
        decode: Decode = decode_record,
    ) -> None:
        self._decode = decode
        self._decode_valid = partial(decode, valid=True)
        self._on_arrival = on_arrival
        self._known = known

    def admitted(self, record: Record) -> Record:
        """The record as it is to be cached.

        Raises:
            DecodeError: it was refused.
        """
        if self._on_arrival is None:
            return record
        try:
            return self._on_arrival(record)
        except DecodeError as error:
            reason = str(error)
        except MemoryError:  # which says nothing about the object
            raise
        except USER_ERRORS as error:
            reason = f"the object is refused: {refusal(error)} in transform or decoder"
        raise _Refused(reason, record)  # outside the handler: the error of a model may quote what it refuses

    def listed(self, raw: bytes, *, valid: bool = False) -> Record:
        """Return the record of an object from a list; the cached one if both say the same.

        Args:
            raw: the object's own bytes.
            valid: do not read its managed fields.

        Raises:
            DecodeError: it does not decode, or is refused.
            Heavy: it does not decode at once: use `listed_in_steps`.
        """
        return self._as_cached(self._decode(raw, valid=valid))

    def listed_in_steps(self, raw: bytes) -> Steps[Record]:
        """As `listed`, for an object that is too heavy to be decoded at once."""
        record = yield from decode_in_steps(self._decode, raw)
        yield
        return self._as_cached(record)

    def _as_cached(self, record: Record) -> Record:
        cached = self._known(record.key)
        if cached is None or not cached.same_version(record):
            return self.admitted(record)
        if cached.same_bytes(record):
            return cached
        record = self.admitted(record)
        return cached if cached.same_content(record) else record

    @property
    def changed(self) -> Callable[[bytes], Record]:
        """Makes the record of an object from a watch; raises `DecodeError` if it does not decode, or is refused."""
        return self._decode_valid if self._on_arrival is None else self._changed

    def changed_in_steps(self, raw: bytes) -> Steps[Record]:
        """As `changed`, for an object that is too heavy to be decoded at once."""
        record = yield from decode_in_steps(self._decode, raw)
        yield
        return self.admitted(record)

    def _changed(self, raw: bytes) -> Record:
        return self.admitted(self._decode_valid(raw))


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
            except _Refused as error:
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
    except _Refused as error:
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
    except _Refused as error:
        return _refused_event(kind, error)
    except DecodeError as error:
        return WatchEvent(kind, error=error)


def _refused_event(kind: str, error: _Refused) -> WatchEvent:
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
