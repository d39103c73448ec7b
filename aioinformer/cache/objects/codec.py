"""`ObjectType`: how one informer decodes, transforms and stores objects, and what readers get.

JSON -> `decode` -> record -> `on_arrival` (transform, storage tier, user's model) -> stored record -> `to_view`.
`to_json` goes all the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, ValuesView
from functools import cache, lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from aioinformer.cache.objects.encoding import encoded
from aioinformer.cache.objects.fields import FieldDecoder
from aioinformer.cache.objects.metadata import MetadataView
from aioinformer.cache.objects.models.building import BUILDING, build_decoder
from aioinformer.cache.objects.models.json_value import freeze_hook
from aioinformer.cache.objects.record import Decode, Part, Record, decode_complete, decode_record, undecodable
from aioinformer.cache.objects.refusals import is_validation, refusal
from aioinformer.cache.objects.storage import (
    DictRecord,
    Storage,
    Tier,
    decode_metadata,
    decoded,
    tier_for,
)
from aioinformer.cache.objects.views import (
    View,
    build_decoders,
    decoded_body,
    failed_read,
    load_body,
    view_class,
    view_record,
    view_resource,
)
from aioinformer.cache.objects.whole_kinds import refused_kind
from aioinformer.errors import USER_ERRORS, DecodeError, UsageError
from aioinformer.functions import LogError, Timed, function_name, log_each, plain_function, untimed
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as object_key
from aioinformer.transport.json_scanner import members

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.cache.objects.compression import Compression
    from aioinformer.resources.resource import Resource

T = TypeVar("T")

#: A class that msgspec or pydantic can decode from JSON, or a function of an object's JSON bytes.
BodyDecoder: TypeAlias = type[T] | Callable[[bytes], T]
#: Called with each object that arrives; returns that object, or the object to cache instead.
Transform: TypeAlias = Callable[[T], Any]


class ObjectType(Generic[T]):
    """Converts JSON into records, records into the objects that readers get, and users' objects into records.

    Args:
        decoder: a user's model: a msgspec Struct, dataclass, TypedDict or pydantic model class, or a function of the
            object's JSON bytes. None: that of the resource, or else views with the attributes of the built-in model, or
            mappings.
        transform: called once with each object that arrives, before all handlers. Its result is cached: the object
            itself, or a mapping or model to encode instead. The cached object keeps the uid and the resourceVersion
            that the server has sent, whatever the transform leaves.
        storage: the storage tier, see `aioinformer.cache.objects.storage`.
        fields: paths to decode with the metadata, see `aioinformer.cache.objects.fields`.
        compression: the tier for `storage="compressed"`.
        timed: wraps transform and decoder, to time their calls.
        log_error: logs the errors of the transform.

    Raises:
        UsageError: the storage tier does not exist, or contradicts the decoder.
    """

    def __init__(
        self,
        resource: Resource[T],
        decoder: BodyDecoder[T] | None = None,
        transform: Transform[T] | None = None,
        *,
        storage: str = Storage.BYTES,
        fields: Iterable[str] = (),
        compression: Compression | None = None,
        timed: Timed = untimed,
        log_error: LogError = log_each,
    ) -> None:
        self.storage = Storage.of(storage)
        if decoder is not None and self.storage is Storage.DICT:
            raise UsageError('storage="dict" and decoder= contradict each other: choose one')
        if decoder is None and self.storage is not Storage.DICT:
            decoder = resource.decoder
        self._timed = timed
        self._log_error = log_error
        self._decode: Callable[[bytes], T] | None = None
        if decoder is not None:
            self._decode = timed(_body_decoder(decoder), f"decoder {function_name(decoder)}", _key_of)
        self._view: type[View] | None = (
            view_class(resource) if decoder is None and self.storage is not Storage.DICT else None
        )
        self._compression = compression
        self._fields: list[str] = []
        self._field_decoder: FieldDecoder | None = None
        self._tier: Tier | None = None
        self.set_transform(transform)
        self.declare(fields)

    def declare(self, fields: Iterable[str]) -> None:
        """Declare more fields, before the first object arrives.

        Raises:
            UsageError: a path does not parse, or the tier needs fields and there are none.
        """
        self._fields += fields
        form = Part if self.storage is Storage.METADATA else Record
        self._field_decoder = FieldDecoder(self._fields, form) if self._fields else None
        tier = tier_for(self.storage, self._field_decoder)
        self._tier = self._compression or tier

    def set_transform(self, transform: Transform[T] | None) -> None:
        """Replace the transform, before the first object arrives.

        Raises:
            UsageError: the transform is not a function, or is a coroutine function.
        """
        transform = plain_function(transform, "transform")
        self.transform = transform
        if transform is not None:
            self.transform = self._timed(transform, f"transform {function_name(transform)}", object_key)

    @property
    def decode(self) -> Decode:
        """The function that decodes an object's JSON into a record."""
        plain: Decode = decode_metadata if self.storage is Storage.METADATA else decode_record
        return self._field_decoder or plain

    @property
    def decodes_early(self) -> bool:
        """Whether `on_arrival` does anything: there is a model, a transform or a tier."""
        return self._decode is not None or self.transform is not None or self._tier is not None

    @property
    def to_view(self) -> Callable[[Record], T]:
        """The function that makes the object for readers from a record; the view class itself where there is one."""
        return cast("Callable[[Record], T] | None", self._view) or self._body

    def build_decoders(self) -> None:
        """Build what the first reader of an object would build and wait for. A decoder of the user is built already."""
        if self._view is not None:
            build_decoders(self._view)

    def _body(self, record: Record) -> T:
        body: T
        if self._decode is not None:
            body = load_body(record, self._decode)
        elif isinstance(record, DictRecord):
            body = record.recall()
        else:  # before the tier has stored it, as for a transform
            body = decoded(record).recall()
        return body

    def on_arrival(self, record: Record) -> Record:
        """Return the record to cache for a record that arrived: apply the transform, the tier and the user's model.

        Raises:
            DecodeError: the model refuses the object, or the transform returned anything but the same object.
            Exception: raised by the transform.
        """
        if self.transform is not None:
            record = self._transformed(record, self.transform)
        source = record
        if self._tier is not None:
            record = self._tier(record)
            if self._compression is None:
                source = record  # fields that the tier drops must not reach the first reader or the model
        if self._decode is not None and (body := decoded_body(source, self._decode)) is not None:
            record.hold(body)
        return record

    def record_of(self, obj: Any) -> Record:
        """Return the record to cache for an object that is put into the cache by hand, as tests do.

        Args:
            obj: a view, a model of kubernetes_asyncio or the user's own, or a mapping with the keys of the API's JSON.

        Raises:
            DecodeError: it is not an API object.
        """
        if isinstance(obj, Record):
            return obj
        record = view_record(obj) if isinstance(obj, View) else self.decode(encoded(obj))
        return self.on_arrival(record)

    def _transformed(self, record: Record, transform: Transform[T]) -> Record:
        obj = self.to_view(record)
        try:
            result = transform(obj)
        except USER_ERRORS as error:
            # The text of the error, and so the traceback, may quote the object.
            shown = DecodeError(refusal(error)) if is_validation(error) else error
            self._log_error("the transform", shown, "the transform raised for %s: %s", record.key, refusal(error))
            raise
        if result is obj:
            return record
        if isinstance(result, View):
            made = view_record(result)
        else:
            made = self._record_of_result(result, record.key)
        if made.key != record.key:
            raise DecodeError("the transform returned an object with another name or namespace", key=record.key)
        made = made.with_raw(_with_identity_of(record, made), Part)  # what the transform has left out is not known
        made.uid = record.uid
        made.resource_version = record.resource_version
        return made

    def _record_of_result(self, result: Any, key: str) -> Record:
        """Return the record of what a transform has returned for the object with this key."""
        try:
            return decode_complete(self.decode, encoded(result))
        except DecodeError as error:
            reason = f": {str(error).removeprefix('the object cannot be read: ')}"
        except (TypeError, ValueError, msgspec.MsgspecError):
            reason = ", which has no JSON form"
        shown = "None" if result is None else type(result).__name__
        raise DecodeError(
            f"the transform returned {shown}{reason}; it must return the object, or a part of it", key=key
        )


def _with_identity_of(record: Record, made: Record) -> bytes:
    """Return the JSON of what a transform has made of an object, with the uid and the version of the object.

    The informer compares them, and a write of the object requires them. So they stay, whatever the transform leaves.
    """
    if (made.uid, made.resource_version) == (record.uid, record.resource_version):
        return made.json
    from aioinformer.cache.objects.changes import changed

    kept = {"uid": record.uid or None, "resourceVersion": record.resource_version or None}
    return changed(made.json, {"metadata": kept})


def _key_of(raw: bytes) -> str:
    return decode_record(raw).key


def to_json(obj: Any) -> bytes:
    """Return the JSON of an object as the server sent it, or a JSON array of several ones.

    A cached object is copied and not decoded. Servers leave out `apiVersion` and `kind` in lists; they are added. A
    storage tier gives what it stores: all but managed fields, or the declared fields alone. For Secrets, the JSON
    contains their values.

    Args:
        obj: an object of a cache or a client, or a part of one; a list of objects, as listers return it; a mapping; or
            an instance of a model of kubernetes_asyncio or of your own msgspec, dataclass or pydantic class.

    Raises:
        DecodeError: the JSON of an object is not valid.
        TypeError: the object has no JSON form.
    """
    if isinstance(obj, View):
        return _json_of(obj)
    if isinstance(obj, (list, tuple, set, frozenset, ValuesView, Iterator)):
        return _array_of(obj if isinstance(obj, (list, tuple)) else list(obj))
    return encoded(obj.to_dict() if isinstance(obj, MetadataView) else obj)


def _array_of(items: list[Any] | tuple[Any, ...]) -> bytes:
    if not items:
        return b"[]"
    kinds = set(map(type, items))
    kind = kinds.pop()
    if not kinds and issubclass(kind, View):
        texts = [record.raw for record in map(view_record, items)]
        if not all(map(bytes.startswith, texts, repeat(_starts(view_resource(kind))))):
            texts = list(map(_json_of, items))
    else:
        texts = list(map(to_json, items))
    texts[0] = b"[" + texts[0]
    texts[-1] += b"]"
    return b",".join(texts)


@cache
def _starts(resource: Resource[Any]) -> tuple[bytes, bytes]:
    """Return how the JSON of an object begins if it states its type."""
    kind, version = (msgspec.json.encode({name: text})[1:-1] for name, text in _type_members(resource).items())
    return b"{%b,%b," % (kind, version), b"{%b,%b," % (version, kind)


def _type_members(resource: Resource[Any]) -> dict[str, str]:
    return {"kind": resource.kind, "apiVersion": resource.api_version}  # in the order of the API's own objects


_ABSENT = msgspec.Raw()


class _Type(msgspec.Struct, gc=False):
    apiVersion: msgspec.Raw = _ABSENT
    kind: msgspec.Raw = _ABSENT


_decode_type = msgspec.json.Decoder(_Type).decode


def _json_of(view: View) -> bytes:
    record = view_record(view)
    resource = view_resource(view)
    raw = record.json
    if raw.startswith(_starts(resource)):
        return raw
    try:
        found = _decode_type(raw)
    except RecursionError:  # nested more deeply than the decoder can read
        known = members(raw, ("apiVersion", "kind"))
        found = _Type(*(msgspec.Raw(known[name]) if name in known else _ABSENT for name in ("apiVersion", "kind")))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise failed_read(record, str(undecodable(raw, error))) from None
    missing = {name: text for name, text in _type_members(resource).items() if getattr(found, name) is _ABSENT}
    if not missing:
        return raw
    stored = raw
    raw = b"%b,%b" % (msgspec.json.encode(missing)[:-1], raw.lstrip()[1:])
    if record.raw is stored:
        record.replace_raw(raw)  # the next time, it is only copied
    return raw


def _body_decoder(decoder: BodyDecoder[T]) -> Callable[[bytes], T]:
    if isinstance(decoder, type):
        validate = getattr(decoder, "model_validate_json", None)  # pydantic's name for it
        if validate is not None:
            return cast("Callable[[bytes], T]", validate)
        return cast("Callable[[bytes], T]", _class_decoder(decoder))
    if not callable(decoder):
        raise UsageError(f"decoder: expected a class or a function of bytes, not {type(decoder).__name__}")
    return plain_function(decoder, "decoder")


@lru_cache(maxsize=256)  # each client of a resource needs one, and each request of a controller has a client
def _class_decoder(decoder: type[Any]) -> Callable[[bytes], Any]:
    if refusal := refused_kind(decoder):
        raise UsageError(f"decoder={decoder.__name__}: {refusal}")
    try:
        with BUILDING:
            if isinstance(msgspec.inspect.type_info(decoder), msgspec.inspect.CustomType):
                raise TypeError("msgspec and pydantic cannot make one of JSON")
            return build_decoder(decoder, freeze_hook)  # it may contain `ObjectMeta`
    except TypeError as error:
        raise UsageError(f"decoder={decoder.__name__}: {error}; give a function of bytes instead") from error
