"""Records: the form in which the cache stores objects, and how to decode one from JSON.

A record stores the JSON bytes of one version of an object, and the metadata that the informer itself needs. Bytes are
immutable, the garbage collector does not track them, and they take a sixth of the memory of the same object as dicts.
Readers get views (`views`), which decode the bytes on first access.

- `Record`; `Part`, a record that is not whole; and `UndecodablePlaceholder`, the stand-in in lists;
- `decode_record` reads the metadata of an object; `decode_deep` that of an object too deep for the decoder;
- `labels_of` reads the labels of any stored item.
"""

from __future__ import annotations

import re
import weakref
from functools import cache
from sys import intern
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, cast

import msgspec

from aioinformer.cache.objects.refusals import TOO_DEEP
from aioinformer.errors import DecodeError
from aioinformer.logs import visible
from aioinformer.resources.keys import metadata_field, metadata_of
from aioinformer.transport.json_scanner import TooDeep, Wanted, outline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_E = TypeVar("_E", bound="Envelope")

NO_LABELS = msgspec.Raw(b"{}")
_decode_labels = msgspec.json.Decoder(dict[str, str | None] | None).decode

#: Servers write these first in the objects of watch events, and omit them in lists.
_TYPE = re.compile(rb'\{(?:"(?:kind|apiVersion)":"[^"\\]*",){0,2}')
_METADATA = b'"metadata":{'
_NAMED = len(_METADATA) - 1
_MANAGED_FIELDS = b',"managedFields":['
#: Larger objects are compared by their bytes: decoding two of them could block the event loop for long.
COMPARED: Final = 128 * 1024
#: Search only this many bytes for managed fields: searching all of an object that has none costs more than it saves.
_FRONT = 4096


class HeldBody:
    """A strong reference to a body that was decoded on arrival; the first reader replaces it by a weak one."""

    __slots__ = ("body",)

    def __init__(self, body: Any) -> None:
        self.body = body

    def __call__(self) -> Any:
        return self.body


class Declared(msgspec.Struct, gc=False):
    """The values of the declared fields of one object. Subclasses have one attribute for each field.

    Attributes:
        places: path -> name of the attribute.
    """

    places: ClassVar[Mapping[tuple[str, ...], str]] = {}


class Record(msgspec.Struct, gc=False, eq=False):
    """One version of one object, as the cache stores it. Its value is immutable.

    A record must not be part of a reference cycle, since the garbage collector does not track it. So neither the body
    nor its weak reference refers to the record: a body may outlive the record, or belong to several. Threads may call
    `recall` and `remember` at the same time: if one overwrites the reference of another, a reader decodes once more.

    Attributes:
        key: `namespace/name`, or `name`.
        namespace: "" for cluster-scoped objects.
        uid: as in the metadata, "" if the server sent none.
        labels: still encoded: a JSON object or null.
        raw: the stored bytes: the object's JSON, unless a storage tier stores another form.
        fields: the declared fields, decoded with the metadata; None if no fields are declared.
        body: a reference to the decoded body, usually weak; `recall` drops dead references.
        is_whole: whether nothing is missing but managed fields and kubectl's last-applied annotation. A list of any
            other record may be incomplete, and must not be written.
    """

    is_whole: ClassVar[bool] = True

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
        """Return the decoded body if it is in memory, else None."""
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
        """Remember a decoded body weakly: other readers find it while any reader keeps it."""
        try:
            # All weak references without a callback share one object, so several records cost no more.
            self.body = weakref.ref(body)
        except TypeError:  # the class does not support weak references: every reader decodes
            self.body = None

    def hold(self, body: Any) -> None:
        """Keep a body that was decoded on arrival until the first reader recalls it."""
        self.body = HeldBody(body)

    def replace_raw(self, raw: bytes) -> None:
        """Store other bytes of the same JSON value."""
        if self.labels is not NO_LABELS:
            self.labels = msgspec.Raw(bytes(self.labels))  # as a slice, they would keep the old bytes alive
        self.raw = raw

    def same_version(self, other: Record) -> bool:
        """Return whether both are the same version of the same incarnation of the object."""
        return self.resource_version == other.resource_version and self.uid == other.uid

    def same_bytes(self, other: Record) -> bool:
        """Return whether the bytes are equal, apart from a leading kind and apiVersion, which lists omit."""
        first = self.raw
        second = other.raw
        if type(self) is not type(other):
            return False
        return first == second or first[_behind_type(first) :] == second[_behind_type(second) :]

    def same_content(self, other: Record) -> bool:
        """Return whether the JSON values are equal, apart from kind and apiVersion, which lists omit.

        Objects of more than 128 KiB are equal only if their bytes are.
        """
        if self.same_bytes(other):
            return True
        first = self.json
        second = other.json
        if first == second:
            return True
        if max(len(first), len(second)) > COMPARED:
            return first[_behind_type(first) :] == second[_behind_type(second) :]
        try:
            mine = msgspec.json.decode(first)
            theirs = msgspec.json.decode(second)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False  # invalid JSON below the metadata: the two cannot be compared
        for document in (mine, theirs):
            document.pop("kind", None)
            document.pop("apiVersion", None)
        return bool(mine == theirs)

    def __repr__(self) -> str:
        return visible(f"<Record {self.key} version {self.resource_version}>")

    def with_raw(self, raw: bytes, kind: type[Record] | None = None, **more: Any) -> Record:
        """Return a record of the same object version with other stored bytes. It is not whole if this one is not.

        Labels are copied: as a slice, they would keep the old bytes alive.

        Args:
            kind: a subclass of `Record`; `Record` by default.
            more: further attributes of `kind`.
        """
        labels = self.labels if self.labels is NO_LABELS else msgspec.Raw(bytes(self.labels))
        form = kind or Record
        return (form if self.is_whole else part_of(form))(
            self.key, self.namespace, self.name, self.uid, self.resource_version, labels, raw, self.fields, **more
        )


@cache
def part_of(form: type[Record]) -> type[Record]:
    """Return the class of records of a form that lack members: a storage tier or a transform has left them out."""
    if not form.is_whole:
        return form
    made: Any = msgspec.defstruct(
        f"{form.__name__}Part", (), bases=(form,), namespace={"is_whole": False}, gc=False, eq=False
    )
    return cast("type[Record]", made)


Part: Final = part_of(Record)


def _behind_type(raw: bytes) -> int:
    """Return the offset after a leading kind and apiVersion."""
    return match.end() if (match := _TYPE.match(raw)) else 0


class UndecodablePlaceholder(Record, gc=False, eq=False):
    """Stands in a list for an object that exists and does not decode: its cached version, if any, stays.

    With the key "", it stands for an object whose name cannot be read: then all cached objects that the list does not
    contain stay, since the object may be any of them.
    """

    @classmethod
    def of(cls, key: str) -> UndecodablePlaceholder:
        """Return the placeholder for a key."""
        return cls(key, "", "", "", "", NO_LABELS, b"")


class Meta(msgspec.Struct, gc=False, kw_only=True):
    """The metadata that records are made of."""

    name: str
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = msgspec.field(name="resourceVersion", default="")
    labels: msgspec.Raw = NO_LABELS


class Envelope(msgspec.Struct, gc=False, kw_only=True):
    """An object of which only the metadata is decoded, and the fields that subclasses declare."""

    metadata: Meta


class _NamelessMeta(msgspec.Struct, gc=False):
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)


class _Nameless(msgspec.Struct, gc=False):
    metadata: _NamelessMeta | None = None


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_nameless = msgspec.json.Decoder(_Nameless).decode
#: The members of an object from which a record is made.
READ: Wanted = {"metadata": dict.fromkeys(Meta.__struct_encode_fields__)}


class Decode(Protocol):
    """Makes the record of an object; `decode_record` is one."""

    def __call__(self, raw: bytes) -> Record:
        """Raises: DecodeError: the object does not decode. TooDeep: it needs `decode_deep`."""


def decode_record(raw: bytes) -> Record:
    """Decode the metadata of one object, in one pass that checks that everything else is JSON, and skips it.

    No byte is left out: joined fragments of two objects must not look like one object. In the strings that are skipped,
    the encoding is not checked.

    Args:
        raw: the object's JSON; the record stores it.

    Raises:
        DecodeError: not JSON, or invalid metadata; has the key if that could be read.
        TooDeep: the object is nested too deeply for the decoder, so it may be invalid or incomplete.
    """
    try:
        meta = _decode_envelope(raw).metadata
    except RecursionError as error:
        raise TooDeep(f"the object is {TOO_DEEP}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise undecodable(raw, error) from error
    return record_of(meta, raw)


def decode_deep(decode: Decode, raw: bytes) -> Record:
    """Make the record of an object that is nested too deeply for the decoder, which servers accept.

    `decode` is given only the members that it reads. Of all other members, not even the syntax is checked: they cannot
    be decoded anyway.

    Args:
        decode: its attribute `wanted` names the members that it reads; by default those of the metadata.
        raw: exactly one object, as its brackets show.

    Raises:
        DecodeError: invalid metadata; has the key if that could be read.
    """
    try:
        record = decode(outline(raw, getattr(decode, "wanted", READ)))
    except TooDeep:  # a declared field is nested too deeply, too: leave out all declared fields
        record = decode_record(outline(raw, READ))
    record.raw = raw
    return record


def decode_complete(decode: Decode, raw: bytes) -> Record:
    """Make the record of an object of any depth, whose bytes are known to be complete.

    Raises:
        DecodeError: the object does not decode.
    """
    try:
        return decode(raw)
    except TooDeep:
        return decode_deep(decode, raw)


def decode_unnamed(raw: bytes) -> Record:
    """Make the record of an object that may have no name yet: a review, or one whose name the server will generate.

    Raises:
        DecodeError: it is no object, named or not.
    """
    try:
        return decode_complete(decode_record, raw)
    except DecodeError:
        try:
            metadata = _decode_nameless(raw).metadata or _NamelessMeta()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            failure = undecodable(raw, error)
        else:
            version = metadata.resource_version or ""
            return Record("", metadata.namespace or "", "", metadata.uid or "", version, NO_LABELS, raw)
    raise failure


def halves_of(raw: bytes) -> tuple[bytes, bytes] | None:
    """Return the JSON of the metadata of an object without its managed fields, and that of its other members.

    None if the object does not have the form in which kube-apiserver writes built-in objects: the type, the metadata
    with the managed fields at its end, and then the others.

    Args:
        raw: the object's JSON, known to be valid. If both results are valid JSON, too, they are the same object.
    """
    begin = raw.find(b"{", 1)  # an object before the metadata could have metadata, too
    cut = raw.find(_MANAGED_FIELDS, begin, _FRONT)
    end = raw.find(b"]", cut)
    if cut < 0 or not raw.startswith(b"}]},", end - 1) or not raw.startswith(_METADATA, begin - _NAMED):
        return None
    return raw[begin:cut] + b"}", raw[: begin - _NAMED] + raw[end + 3 :]


def read(raw: bytes, decode: Callable[[bytes], _E]) -> _E:
    """Decode an object.

    Raises:
        DecodeError: it does not decode; names the object, and quotes none of its content.
    """
    try:
        return decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(raw, error) from error


def record_of(meta: Meta, raw: bytes, form: type[Record] = Record) -> Record:
    """Return the record of an object with this metadata, in the class `form`.

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
        namespace = ""
        key = name
    return form(key, namespace, name, meta.uid or "", meta.resource_version or "", meta.labels, raw)


class _Identity(msgspec.Struct, gc=False, rename="camel"):
    name: msgspec.Raw = msgspec.Raw(b"null")
    namespace: msgspec.Raw = msgspec.Raw(b"null")
    uid: msgspec.Raw = msgspec.Raw(b"null")
    resource_version: msgspec.Raw = msgspec.Raw(b"null")


class _WithIdentity(msgspec.Struct, gc=False):
    metadata: _Identity


_decode_identity = msgspec.json.Decoder(_WithIdentity).decode
_IDENTITY = _Identity.__struct_encode_fields__


def undecodable(raw: bytes, cause: Exception) -> DecodeError:
    """Return the error for an object that does not decode: key, version and path, but none of its content."""
    key = ""
    version = ""
    try:
        found = _decode_identity(raw).metadata
        if name := _text_of(found.name):
            namespace = _text_of(found.namespace)
            key = f"{namespace}/{name}" if namespace else name
        version = _text_of(found.resource_version)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return DecodeError(f"the object cannot be read: {_without_content(cause)}", key=key, version=version)


def _text_of(encoded: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(encoded, type=str)
    except msgspec.ValidationError:
        return ""


def _without_content(cause: Exception) -> str:
    if isinstance(cause, RecursionError):
        return TOO_DEEP
    # msgspec's errors name the expected type and the path alone; other errors may quote the input.
    return str(cause) if isinstance(cause, msgspec.DecodeError) else type(cause).__name__


def labels_of(item: Any) -> Mapping[str, str]:
    """Return the labels of a stored item of any form; empty if it has none, or if they are invalid."""
    record = item if isinstance(item, Record) else getattr(item, "_record", None)
    if isinstance(record, Record):
        if record.labels is NO_LABELS:
            return {}
        try:
            labels = _decode_labels(record.labels) or {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}
        if None in labels.values():
            return {name: value or "" for name, value in labels.items()}
        return labels
    return metadata_field(metadata_of(item), "labels", "labels") or {}
