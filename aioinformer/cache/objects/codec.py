"""How the objects of one informer come in, and what its readers see of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from aioinformer.cache.objects.fields import FieldDecoder
from aioinformer.cache.objects.models.building import BUILDING, build_decoder
from aioinformer.cache.objects.record import Decode, Record, decode_record, decode_whatever
from aioinformer.cache.objects.refusals import is_validation, refusal
from aioinformer.cache.objects.storage import (
    DictRecord,
    Storage,
    Tier,
    decode_metadata,
    decoded,
    decoded_secret,
    tier_for,
)
from aioinformer.cache.objects.views import MetadataView, View, decoded_body, load_body, view_class
from aioinformer.errors import USER_ERRORS, DecodeError, UsageError
from aioinformer.functions import Timed, function_name, plain_function, untimed
from aioinformer.logs import get_logger
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as object_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.cache.objects.compression import Compression
    from aioinformer.resources.resource import Resource

T = TypeVar("T")

_log = get_logger("aioinformer.cache")

#: A class that msgspec or pydantic can make of JSON, or a function of an object's bytes.
BodyDecoder: TypeAlias = type[T] | Callable[[bytes], T]
#: Looks at an object before anyone else; returns it, or what is to be cached in its place.
Transform: TypeAlias = Callable[[T], Any]


class ObjectType(Generic[T]):
    """Turns records into what readers see, and what users make of objects into records.

    Args:
        resource: what the objects are.
        decoder: a user's model for them: a msgspec Struct, dataclass, TypedDict or pydantic model class, or a
            function of the object's JSON bytes. None: the attributes of the built-in model, or a mapping.
        transform: sees each object that comes in once, before anybody else; what it returns is cached: the object
            itself, or a mapping or model to be encoded in its place.

        storage: in what form objects are kept, see `aioinformer.cache.objects.storage`.
        fields: paths to decode with the metadata, see `aioinformer.cache.objects.fields`.
        compression: for the tier of that name.
        timed: wraps transform and decoder, so that their calls are timed.
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
    ) -> None:
        self.storage = Storage.of(storage)
        if decoder is not None and self.storage is Storage.DICT:
            raise UsageError('storage="dict" and decoder= contradict each other: choose one')
        self._timed = timed
        self._decode: Callable[[bytes], T] | None = None
        if decoder is not None:
            self._decode = timed(_body_decoder(decoder), f"decoder {function_name(decoder)}", _key_of)
        self._view: Callable[[Record], Any] | None = (
            view_class(resource) if decoder is None and self.storage is not Storage.DICT else None
        )
        self._decoded: Tier = decoded_secret if resource.holds_secrets else decoded
        self._compression = compression
        self._fields: list[str] = []
        self._field_decoder: FieldDecoder | None = None
        self._tier: Tier | None = None
        self.set_transform(transform)
        self.declare(fields)

    def declare(self, fields: Iterable[str]) -> None:
        """Declares more fields, before the first object comes in.

        Raises:
            UsageError: a path does not parse, or the tier needs fields and there are none.
        """
        self._fields += fields
        self._field_decoder = FieldDecoder(self._fields) if self._fields else None
        tier = self._decoded if self.storage is Storage.DICT else tier_for(self.storage, self._field_decoder)
        self._tier = self._compression or tier

    def set_transform(self, transform: Transform[T] | None) -> None:
        """Let a function see each object that comes in, instead of the one before.

        Raises:
            UsageError: it is a coroutine function.
        """
        self.transform = transform = plain_function(transform, "transform")
        if transform is not None:
            self.transform = self._timed(transform, f"transform {function_name(transform)}", object_key)

    @property
    def decode(self) -> Decode:
        """Makes a record of an object's bytes."""
        plain: Decode = decode_metadata if self.storage is Storage.METADATA else decode_record
        return self._field_decoder or plain

    @property
    def decodes_early(self) -> bool:
        """Whether `on_arrival` has something to do."""
        return self._decode is not None or self.transform is not None or self._tier is not None

    @property
    def to_view(self) -> Callable[[Record], T]:
        """Makes what readers see of a record; with no call of ours in between where that is a view."""
        return self._view or self._body

    def _body(self, record: Record) -> T:
        seen: T
        if self._decode is not None:
            seen = load_body(record, self._decode)
        else:
            seen = (record if isinstance(record, DictRecord) else self._decoded(record)).recall()
        return seen

    def on_arrival(self, record: Record) -> Record:
        """The record to cache for a record that came in: a user's model must accept it, a transform may replace it.

        Raises:
            DecodeError: the model refuses it, or the transform returned something that is no such object.
            Exception: whatever the transform raised.
        """
        if self.transform is not None:
            record = self._transformed(record, self.transform)
        source = record
        if self._tier is not None:
            record = self._tier(record)
            if self._compression is None:
                source = record  # what a tier leaves out, no reader sees: neither the first nor the model
        if self._decode is not None and (body := decoded_body(source, self._decode)) is not None:
            record.hold(body)
        return record

    def record_of(self, obj: Any) -> Record:
        """Return the record to cache for an object that somebody puts into the cache by hand, as tests do.

        Args:
            obj: what readers see, a model of kubernetes_asyncio or of the user's own, or a mapping as on the wire.

        Raises:
            DecodeError: it is no object of the API.
        """
        if isinstance(obj, Record):
            return obj
        record = obj._record if isinstance(obj, View) else self.decode(_encoded(obj))
        return self.on_arrival(record)

    def _transformed(self, record: Record, transform: Transform[T]) -> Record:
        obj = self.to_view(record)
        try:
            result = transform(obj)
        except USER_ERRORS as error:
            if is_validation(error):  # its text, and so its traceback, may quote the object
                _log.error("the transform raised for %s: %s", record.key, refusal(error))
            else:
                _log.exception("the transform raised for %s", record.key)
            raise
        if result is obj:
            return record
        if isinstance(result, View):
            made = result._record
        elif result is None:
            raise DecodeError("the transform returned None; it must return an object", key=record.key)
        else:
            made = decode_whatever(self.decode, _encoded(result))
        if made.key != record.key:
            raise DecodeError("the transform returned an object with another name or namespace", key=record.key)
        return made


def _key_of(raw: bytes) -> str:
    return decode_record(raw).key


def _encoded(obj: Any) -> bytes:
    if hasattr(obj, "model_dump_json"):
        return bytes(obj.model_dump_json(by_alias=True, exclude_none=True), "utf-8")
    return msgspec.json.encode(_with_plain_views(obj), enc_hook=_plain)


def _with_plain_views(value: Any) -> Any:
    # Views are structs: left to msgspec, they would be written as what they are made of.
    if isinstance(value, (View, MetadataView)):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _with_plain_views(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_plain_views(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "attribute_map"):  # a model of kubernetes_asyncio itself
        return value.to_dict(serialize=True)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _body_decoder(decoder: BodyDecoder[T]) -> Callable[[bytes], T]:
    if isinstance(decoder, type):
        validate = getattr(decoder, "model_validate_json", None)  # pydantic's name for it
        if validate is not None:
            return cast("Callable[[bytes], T]", validate)
        try:
            with BUILDING:
                if isinstance(msgspec.inspect.type_info(decoder), msgspec.inspect.CustomType):
                    raise TypeError("msgspec and pydantic cannot make one of JSON")
                return build_decoder(decoder)
        except TypeError as error:
            raise UsageError(f"decoder={decoder.__name__}: {error}; give a function of bytes instead") from error
    if not callable(decoder):
        raise UsageError(f"decoder: expected a class or a function of bytes, not {type(decoder).__name__}")
    return plain_function(decoder, "decoder")
