"""The bodies of requests and answers: objects of any class to JSON, and JSON to what listers return."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aioinformer.cache.objects.encoding import check_finite, encoded
from aioinformer.cache.objects.record import (
    decode_deep,
    decode_record,
    decode_unnamed,
    undecodable,
)
from aioinformer.cache.objects.refusals import NotFinite
from aioinformer.cache.objects.views import View, json_of
from aioinformer.client.lists import Page
from aioinformer.errors import DecodeError, UsageError
from aioinformer.resources.resource import path_segment
from aioinformer.transport.list_parser import ListParser

if TYPE_CHECKING:
    from aioinformer.cache.objects.codec import ObjectType
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


class Status(msgspec.Struct, rename="camel", frozen=True):
    """What the server answers if it has no object to return: a deletion that is complete, for example.

    Attributes:
        status: "Success"; failures are raised as `ApiError`.
        reason: for machines, "" for none.
        message: for people, "" for none.
        code: the HTTP status.
        details: what the answer is about, such as `name`, `kind` and `uid` of a deleted object.
    """

    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


class RawAnswer(msgspec.Struct, frozen=True):
    """The answer to `Client.request`: the HTTP status, from 200 to 299, and the body as received."""

    status: int
    body: bytes

    def json(self) -> Any:
        """Return the decoded body, or raise `DecodeError` if it is not JSON."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise undecodable(self.body, error) from None

    def __repr__(self) -> str:  # the body may be secret
        return f"<RawAnswer {self.status} with {len(self.body)} bytes>"


class _Names(msgspec.Struct, gc=False, rename="camel"):
    name: Any = None
    namespace: Any = None
    generate_name: Any = None


class _Type(msgspec.Struct, gc=False):
    api_version: str | None = msgspec.field(name="apiVersion", default=None)
    kind: str | None = None


class _Stated(_Type, gc=False):
    metadata: _Names | None = None


_decode_type = msgspec.json.Decoder(_Type).decode
_decode_stated = msgspec.json.Decoder(_Stated).decode
_decode_status = msgspec.json.Decoder(Status).decode
_encode = msgspec.json.Encoder().encode


def encode(obj: Any, resource: Resource[Any]) -> bytes:
    """Return the JSON of an object. Its `apiVersion` and `kind` are added where they are missing.

    Args:
        obj: a mapping with the keys of the JSON, a view, a model of kubernetes_asyncio, or an object of a msgspec,
            dataclass or pydantic class of the user.

    Raises:
        UsageError: it has no JSON form, is of another kind, or has a name or namespace that no object can have.
    """
    raw = json_of(obj) if isinstance(obj, View) else encode_plain(obj)
    try:
        stated = _decode_stated(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(f"{resource.gvr}: expected an object, not {type(obj).__name__}") from None
    check_type(stated.api_version, stated.kind, resource)
    _check_names(stated.metadata)
    if stated.kind and stated.api_version:
        return raw
    # Not spliced in: the members may exist and be null, and a second one of the same name would be a duplicate.
    members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    members.pop("apiVersion", None)
    members.pop("kind", None)
    return _encode({"apiVersion": resource.api_version, "kind": resource.kind, **members})


def encode_unchecked(value: Any) -> bytes:
    """Return the JSON of a patch, or of a body of an unknown type. Only the names in it are checked.

    Raises:
        UsageError: it has no JSON form, or sets a name or namespace that no object can have.
    """
    raw = encode_plain(value)
    if raw[:1] == b"{":
        with suppress(msgspec.DecodeError):  # the server says what is wrong with it
            _check_names(_decode_stated(raw).metadata)
    return raw


def _check_names(metadata: _Names | None) -> None:
    if metadata is None:
        return
    for name in ("name", "namespace"):
        if text := getattr(metadata, name):
            path_segment(text, f"metadata.{name}")
    if metadata.generate_name:  # the server appends some characters
        path_segment(f"{metadata.generate_name}x", "metadata.generateName")


def encode_plain(value: Any) -> bytes:
    """Return the JSON of a value.

    Raises:
        UsageError: it has no JSON form, or a number is NaN or infinite.
    """
    try:
        raw = encoded(value)
        check_finite(value, raw)
        return raw
    except NotFinite as error:
        raise UsageError(f"the body cannot be sent: {error}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the body cannot be sent: {error}") from None


def check_type(api_version: object, kind: object, resource: Resource[Any]) -> None:
    """Check the type that an object states; it may state none.

    Raises:
        UsageError: its `apiVersion` or `kind` differs from that of the resource.
    """
    stated = (api_version or resource.api_version, kind or resource.kind)
    if stated != (resource.api_version, resource.kind):
        raise UsageError(
            f"{resource.gvr} has objects of {resource.api_version} {resource.kind}, not of {stated[0]} {stated[1]}; "
            "client.resource_for(obj) returns the client of the object's own resource"
        )


def decode(raw: bytes, objects: ObjectType[T]) -> T:
    """Return an object that the server has sent, as a lister of this type returns it.

    Raises:
        DecodeError: it is not an API object, or the user's decoder refuses it.
    """
    record = decode_unnamed(raw)
    if objects.decodes_early:
        record = objects.on_arrival(record)
    return objects.to_view(record)


def decode_or_status(raw: bytes, objects: ObjectType[T]) -> T | Status:
    """Return an object that the server has sent, or the Status that it has sent instead.

    Raises:
        DecodeError: it is neither.
    """
    status = status_in(raw)
    return decode(raw, objects) if status is None else status


def status_in(raw: bytes) -> Status | None:
    """Return the Status that the server has sent; None if it has sent anything else."""
    try:
        stated = _decode_type(raw)
        return _decode_status(raw) if stated.kind == "Status" and stated.api_version == "v1" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode_list(raw: bytes, objects: ObjectType[T]) -> Page[T]:
    """Return the objects of a list that the server has sent; none if it has sent a Status.

    Raises:
        DecodeError: it is neither, or an object cannot be read.
    """
    if status_in(raw) is not None:
        return Page([], "")
    parser = ListParser(decode_record, len(raw), deep=partial(decode_deep, decode_record))
    parser.feed(raw)
    found = list(parser.items())
    parser.feed_eof()
    records = []
    for item in (*found, *parser.items()):
        if isinstance(item, DecodeError):
            raise item
        if item is not None:
            records.append(objects.on_arrival(item) if objects.decodes_early else item)
    metadata = parser.head().metadata
    version = (metadata.resource_version or "") if metadata is not None else ""
    return Page(list(map(objects.to_view, records)), version)
