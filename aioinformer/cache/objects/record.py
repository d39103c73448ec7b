"""What the cache holds of an object: its own bytes, and the few fields that the machinery itself needs.

The bytes are the truth. Nobody outside can change them, they cost the garbage collector nothing, and they are a
sixth of what the same object weighs as dicts. What users see is made of them when they look (`views`).
"""

from __future__ import annotations

import re
import weakref
from sys import intern
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import msgspec

from aioinformer.errors import DecodeError
from aioinformer.logs import visible
from aioinformer.resources.keys import metadata_field, metadata_of
from aioinformer.transport.json_scanner import (
    LARGE,
    Heavy,
    Steps,
    Wanted,
    find_members,
    finish,
    is_heavy,
    narrowed,
    outline,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NO_LABELS = msgspec.Raw(b"{}")


class HeldBody:
    """A body that was decoded on arrival, and is kept until the first reader takes it over."""

    __slots__ = ("body",)

    def __init__(self, body: Any) -> None:
        self.body = body

    def __call__(self) -> Any:
        return self.body


class Declared(msgspec.Struct, gc=False):
    """The values of declared fields of one object, one attribute each: subclasses say which.

    Attributes:
        places: path -> the name of the attribute.
    """

    places: ClassVar[Mapping[tuple[str, ...], str]] = {}


class Record(msgspec.Struct, gc=False, eq=False):
    """One version of one object, as the cache keeps it. Never changed, but for the memory of its decoded body.

    It must be in no cycle, which the garbage collector would not see. So the body, and what refers to it weakly, know
    nothing of the record: a body may outlive it for long, or be that of many records. Threads may recall and remember
    at the same time: one may overwrite what another has remembered, and a reader then decodes once more.

    Attributes:
        key: `namespace/name`, or `name`.
        namespace: "" for cluster-scoped objects.
        name: as in the metadata.
        uid: as in the metadata, "" if the server sent none.
        resource_version: as in the metadata.
        labels: still encoded: a JSON object or null.
        raw: the object as it is stored: its own JSON, unless a storage tier keeps it in another form.
        fields: what was decoded beside the metadata; None if no fields are declared.
        body: refers to the decoded body while somebody holds it; a reference that is dead is dropped by `recall`.
    """

    key: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: msgspec.Raw
    raw: bytes
    fields: Declared | None = None
    body: weakref.ref[Any] | HeldBody | None = None

    @property
    def json(self) -> bytes:
        """The object's JSON."""
        return self.raw

    def recall(self) -> Any:
        """The decoded body, if it was just decoded or somebody holds it; None otherwise."""
        reference = self.body
        if reference is None:
            return None
        body = reference()
        if body is None:
            self.body = None
        elif isinstance(reference, HeldBody):
            self.remember(body)
        return body

    def remember(self, body: Any) -> None:
        """Lets the next reader find this decoded body, as long as somebody holds it."""
        try:
            # Without a callback it is the one such reference to the body, however many records remember it.
            self.body = weakref.ref(body)
        except TypeError:  # not every class can be referred to weakly: each reader decodes for itself then
            self.body = None

    def hold(self, body: Any) -> None:
        """Keeps a body that was decoded on arrival until the first reader takes it over."""
        self.body = HeldBody(body)

    def same_version(self, other: Record) -> bool:
        """Whether both are the same version of the same incarnation of the object."""
        return self.resource_version == other.resource_version and self.uid == other.uid

    def same_bytes(self, other: Record) -> bool:
        """Return whether both are the same bytes; kind and apiVersion, which lists leave out, do not count."""
        first, second = self.raw, other.raw
        if type(self) is not type(other):
            return False
        return first == second or first[_behind_type(first) :] == second[_behind_type(second) :]

    def same_content(self, other: Record) -> bool:
        """Return whether both say the same; kind and apiVersion, which lists leave out, do not count."""
        if self.same_bytes(other):
            return True
        first, second = self.json, other.json
        if first == second:
            return True
        if is_heavy(first) or is_heavy(second):
            # Decoding both could block the event loop for a second: only the same bytes are known to say the same.
            return first[_behind_type(first) :] == second[_behind_type(second) :]
        try:
            mine, theirs = msgspec.json.decode(first), msgspec.json.decode(second)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False  # in its depth it is no JSON: whether it is the same cannot be said
        for document in (mine, theirs):
            document.pop("kind", None)
            document.pop("apiVersion", None)
        return bool(mine == theirs)

    def __repr__(self) -> str:
        return visible(f"<Record {self.key} version {self.resource_version}>")


#: What servers write first in an object that a watch brings, and leave out in a list.
_TYPE = re.compile(rb'\{(?:"(?:kind|apiVersion)":"[^"\\]*",){0,2}')


def _behind_type(raw: bytes) -> int:
    """The offset of what follows kind and apiVersion."""
    return match.end() if (match := _TYPE.match(raw)) else 0


_E = TypeVar("_E", bound="Envelope")


class UndecodablePlaceholder(Record, gc=False, eq=False):
    """Stands in a list for an object that is there and does not decode: whatever is cached of it stays.

    Under the key "" it stands for one whose name cannot be read: whatever is cached, and not in the list, stays.
    """

    @classmethod
    def of(cls, key: str) -> UndecodablePlaceholder:
        """The stand-in for a key."""
        return cls(key, "", "", "", "", NO_LABELS, b"")


class Meta(msgspec.Struct, gc=False, kw_only=True):
    """The metadata that records are made of."""

    name: str
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = msgspec.field(name="resourceVersion", default="")
    labels: msgspec.Raw = NO_LABELS


class Envelope(msgspec.Struct, gc=False, kw_only=True):
    """An object of which only the metadata is read, and what subclasses declare."""

    metadata: Meta


_decode_envelope = msgspec.json.Decoder(Envelope).decode
#: The members that records are made of.
READ: Wanted = {"metadata": dict.fromkeys(field.encode_name for field in msgspec.structs.fields(Meta))}

_MANAGED_FIELDS = b',"managedFields":['
#: So many bytes are searched for them: to search all of an object that has none would cost more than it can save.
_FRONT = 4096


class Decode(Protocol):
    """Makes the record of an object; `decode_record` is one."""

    def __call__(self, raw: bytes, *, valid: bool = False) -> Record:
        """Raises: DecodeError: it does not decode. Heavy: it does not decode at once; see `decode_in_steps`."""
        ...


def decode_record(raw: bytes, *, valid: bool = False) -> Record:
    """Read the metadata of one object, in one pass that skips all else.

    Args:
        raw: the object's own bytes; they are kept.
        valid: do not read the managed fields, where they stand last in the metadata.

    Raises:
        DecodeError: not JSON, or metadata that no API server sends; with the key if that could be read.
        Heavy: the object is large and nested deeper than the decoder goes.
    """
    meta = leading_metadata(raw, _decode_envelope) if valid else None
    return record_of(_metadata_of_whole(raw) if meta is None else meta, raw)


def decode_in_steps(decode: Decode, raw: bytes) -> Steps[Record]:
    """Make the record of an object that is too heavy to be decoded at once.

    Only the members that `decode` reads are given to it. What else is in the object is not read: it only has to have
    matching brackets.

    Args:
        decode: its attribute `wanted` names the members that it reads; without it, these are those of the metadata.
        raw: the object's own bytes; they are kept.

    Raises:
        DecodeError: as `decode` does.
    """
    wanted: Wanted = getattr(decode, "wanted", READ)
    found = yield from find_members(raw, wanted)
    labels = None
    if found and not found.get("metadata", b"").startswith(b"{"):
        found["metadata"] = b"null"
    elif found:
        own = yield from find_members(found["metadata"], wanted["metadata"])
        # Labels are kept as they are: they may be as large as the object, and nothing reads them on arrival.
        labels = own.pop("labels", None)
        for name in _SAID:
            if len(own.get(name, b"")) > LARGE:
                raise DecodeError(f"metadata.{name} is longer than {LARGE} bytes, which no API server accepts")
        found["metadata"] = yield from narrowed(own, wanted["metadata"] or {})
    try:
        record = decode((yield from narrowed(found, {**wanted, "metadata": None})))
    except Heavy:  # a declared field is nested deeper than the decoder goes: nothing declared is taken
        record = decode_record(b'{"metadata":%b}' % found.get("metadata", b"null"))
    record.raw = raw
    record.labels = NO_LABELS if labels is None else msgspec.Raw(labels)
    return record


def decode_whatever(decode: Decode, raw: bytes) -> Record:
    """Make the record of an object at once, however long that takes: for callers that cannot pause."""
    try:
        return decode(raw)
    except Heavy:
        return finish(decode_in_steps(decode, raw))


def leading_metadata(raw: bytes, decode: Callable[[bytes], Envelope], *, alone: bool = False) -> Meta | None:
    """Return the metadata of an object without reading its managed fields; None if it has to be read as a whole.

    An API server writes the managed fields last in the metadata, of which most of them consists. They are cut out, and
    the rest is read to its end: so the rest is known to be one object. Where the cut is not the whole of the managed
    fields, the rest is no JSON: a string would stay open, or brackets would not match.

    Args:
        raw: the object's own bytes.
        decode: reads the metadata of an object.
        alone: there must be nothing behind the metadata.
    """
    cut = raw.find(_MANAGED_FIELDS, 0, _FRONT)
    if cut < 0:
        return None
    end = raw.find(b"]", cut)  # a single byte is looked for thirty times faster than two
    if raw[end - 1 :] != b"}]}}" if alone else not raw.startswith(b"}]}", end - 1):
        return None
    try:
        meta = decode(raw[:cut] + raw[end + 1 :]).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if meta.labels is not NO_LABELS:
        meta.labels = msgspec.Raw(bytes(meta.labels))  # which must not keep what is shorter alive
    return meta


def without_managed_fields(raw: bytes) -> bytes | None:
    """What is left of an object without its managed fields; None if it cannot be told where they end.

    Args:
        raw: the object's own bytes, known to be JSON. If what is returned is JSON as well, it is the same object.
    """
    cut = raw.find(_MANAGED_FIELDS, 0, _FRONT)
    if cut < 0:
        return None
    end = raw.find(b"]", cut)
    return raw[:cut] + raw[end + 1 :] if raw.startswith(b"}]}", end - 1) else None


def _metadata_of_whole(raw: bytes) -> Meta:
    try:
        return _decode_envelope(raw).metadata
    except RecursionError as error:
        # Nested deeper than the decoder goes, which servers allow: what it is called can be read all the same.
        if len(raw) > LARGE:
            raise Heavy from error
        return read(finish(outline(raw, READ)), _decode_envelope).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise undecodable(raw, error) from error


def read(raw: bytes, decode: Callable[[bytes], _E]) -> _E:
    """The metadata of an object, and what else the decoder reads.

    Raises:
        DecodeError: it does not decode.
    """
    try:
        return decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(raw, error) from error


def record_of(meta: Meta, raw: bytes) -> Record:
    """The record of an object whose metadata was read.

    Raises:
        DecodeError: it has no name.
    """
    name = meta.name
    if not name:
        raise DecodeError("metadata.name is empty")
    if namespace := meta.namespace:
        namespace = intern(namespace)
        key = f"{namespace}/{name}"
    else:
        namespace, key = "", name
    return Record(key, namespace, name, meta.uid or "", meta.resource_version or "", meta.labels, raw)


class _Said(msgspec.Struct, gc=False, rename="camel"):
    name: msgspec.Raw = msgspec.Raw(b"null")
    namespace: msgspec.Raw = msgspec.Raw(b"null")
    uid: msgspec.Raw = msgspec.Raw(b"null")
    resource_version: msgspec.Raw = msgspec.Raw(b"null")


class _SaidBy(msgspec.Struct, gc=False):
    metadata: _Said


_decode_said = msgspec.json.Decoder(_SaidBy).decode
_SAID = [field.encode_name for field in msgspec.structs.fields(_Said)]


def undecodable(raw: bytes, cause: Exception) -> DecodeError:
    """The error for an object that does not decode: says where, and whose it is, but quotes none of its content."""
    key = version = ""
    try:
        said = _decode_said(raw).metadata
        if name := _text_of(said.name):
            namespace = _text_of(said.namespace)
            key = f"{namespace}/{name}" if namespace else name
        version = _text_of(said.resource_version)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return DecodeError(f"the object cannot be read: {_without_content(cause)}", key=key, version=version)


def _text_of(encoded: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(encoded, type=str)
    except msgspec.ValidationError:
        return ""


def _without_content(cause: Exception) -> str:
    # msgspec names what it expected and where, and quotes nothing but that; other errors may quote the input.
    return str(cause) if isinstance(cause, msgspec.DecodeError) else type(cause).__name__


_decode_labels = msgspec.json.Decoder(dict[str, str | None] | None).decode


def labels_of(item: Any) -> Mapping[str, str]:
    """The labels of anything a store may hold; empty if it has none, or none that are strings."""
    record = item if isinstance(item, Record) else getattr(item, "_record", None)
    if isinstance(record, Record):
        if record.labels is NO_LABELS:
            return {}
        try:
            labels = _decode_labels(record.labels) or {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        return {name: value or "" for name, value in labels.items()} if None in labels.values() else labels
    return metadata_field(metadata_of(item), "labels", "labels") or {}
