"""Views: the light, immutable objects that readers get. A view decodes its body on first access.

Before that, a view takes 50 bytes. Then it owns the decoded body; the record refers to the body weakly. So all views of
one version share the body while any of them exists, and its memory is freed with the last one.

For built-in kinds, a view has the attributes of kubernetes_asyncio's model (`pod.spec.node_name`), and `ApiClient`
accepts it as a request body. For all others it is a mapping with the keys of the JSON (`widget["spec"]["size"]`) and an
attribute `metadata`. `to_dict()` returns a plain copy of either.

- `view_class` returns the class of the views of a resource: a `ModelView` or a `MappingView`;
- `load_body` and `decoded_body` decode the body of a record.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, cast, overload

import msgspec
from msgspec.structs import force_setattr

from aioinformer.cache.objects.frozen import FrozenDict, freeze_decoded
from aioinformer.cache.objects.metadata import OBJECT_META, MetadataView
from aioinformer.cache.objects.models import decoder_for
from aioinformer.cache.objects.models.building import BUILDING
from aioinformer.cache.objects.models.shapes import attributes_of
from aioinformer.cache.objects.read_failures import count_failed_read
from aioinformer.cache.objects.record import Part, Record, decode_complete, decode_record, decode_unnamed, undecodable
from aioinformer.cache.objects.refusals import refusal, refused_fields
from aioinformer.errors import DecodeError, UsageError
from aioinformer.logs import visible
from aioinformer.resources.catalog import by_kind
from aioinformer.resources.resource import Resource


def load_body(record: Record, decode: Callable[[bytes], Any]) -> Any:
    """Return the decoded body of a record in a cache: the shared one, or else a new one. Count failures.

    Raises:
        DecodeError: the object does not fit the model.
    """
    try:
        return decoded_body(record, decode)
    except DecodeError as error:
        count_failed_read(record, str(error))
        raise


def decoded_body(record: Record, decode: Callable[[bytes], Any]) -> Any:
    """Return the decoded body of a record that is not cached yet: informers do not count failures.

    Raises:
        DecodeError: the object does not fit the model. The message names the field and quotes no content.
    """
    body = record.recall()
    if body is not None:
        return body
    fields: Mapping[str, str]
    try:
        body = decode(record.json)
    except MemoryError:
        raise  # not the object's fault
    except DecodeError as error:
        reason = str(error)
        fields = error.fields
    except Exception as error:
        reason = f"the decoder refuses it: {refusal(error)}"
        fields = refused_fields(error)
    else:
        record.remember(body)
        return body
    # Raised outside the handler: as its context, a model's error would show the values that it quotes.
    raise DecodeError(f"{record.key}: {reason}", key=record.key, version=record.resource_version, fields=fields)


def failed_read(record: Record, reason: str) -> DecodeError:
    """Count a failed read, and return the error to raise."""
    count_failed_read(record, reason)
    return DecodeError(f"{record.key}: {reason}", key=record.key, version=record.resource_version)


class _NoJSON:
    """What msgspec takes a record for: it has no JSON, so no decoder makes a view of foreign JSON."""


class View(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The base class of all views."""

    _resource: ClassVar[Resource[Any]]

    if TYPE_CHECKING:
        _record: Record
    else:
        _record: _NoJSON
    _body: Any = None

    def _decoder(self) -> Callable[[bytes], Any]:
        """Return the function that decodes the body."""
        raise NotImplementedError

    @property
    def _key(self) -> str:
        return self._record.key

    @property
    def metadata(self) -> MetadataView:
        """The metadata, with the attributes of `V1ObjectMeta`."""
        return MetadataView(self, self._record)

    def to_dict(self) -> dict[str, Any]:
        """Return a plain, mutable copy with the keys of the JSON, `apiVersion` and `kind` included. You own it.

        Raises:
            DecodeError: the body is not JSON.
        """
        try:
            document = msgspec.json.decode(self._record.json)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise failed_read(self._record, str(undecodable(self._record.json, error))) from None
        return {"apiVersion": self._resource.api_version, "kind": self._resource.kind, **document}

    @overload
    def evolve(self, changes: Mapping[str, Any], /) -> Self: ...
    @overload
    def evolve(self, path: str, value: Any, /) -> Self: ...

    def evolve(self, *changes: Any) -> Self:
        """Return a changed copy: `evolve({"spec": {"replicas": 3}})`, or `evolve("spec.replicas", 3)`.

        The function `evolve` has the details. Use it if the object has a field of the same name.

        Args:
            changes: a mapping; or a path and a value.

        Raises:
            UsageError: the change does not fit the object.
        """
        from aioinformer.cache.objects.changes import change_of, changed, check_names, share

        change = change_of(*changes)
        if self._resource.model:
            check_names(self._resource.model, change)
        old = self._record.recall() if self._body is None else self._body
        try:
            text = changed(self._record.json, change)
            # The server may generate the name later; but a change cannot remove it.
            if self._record.name:
                record = decode_complete(decode_record, text)
            else:
                record = decode_unnamed(text)
            if not self._record.is_whole:
                record = record.with_raw(record.raw, Part)
            body = share(old, decoded_body(record, self._decoder()), change)
        except DecodeError as error:
            reason = str(error)
        else:
            record.remember(body)
            return type(self)(record, body)
        raise UsageError(f"the change does not fit {self!r}: {reason}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from aioinformer.cache.objects.models.pydantic_schema import schema_of

        return schema_of(cls, cls._of)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        from aioinformer.cache.objects.models.pydantic_schema import json_schema_of

        return json_schema_of(cls, f"{cls._resource.kind} of {cls._resource.api_version}.")

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Self:
        """Return the object of a mapping with the keys of its JSON, decoded.

        Raises:
            DecodeError: it is not an object of this kind.
        """
        from aioinformer.cache.objects.encoding import encoded

        record = decode_complete(decode_record, encoded(document))
        view = cls(record)
        return cls(record, decoded_body(record, view._decoder()))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # immutable; to_dict() makes a mutable copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        if self._record is other._record:
            return True
        if self._record.key != other._record.key or not self._record.same_version(other._record):
            return False
        return self._resource == other._resource and self._record.same_content(other._record)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)  # Struct's own compares identities
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash((self._record.key, self._record.uid, self._record.resource_version))

    def __repr__(self) -> str:
        return visible(f"<{self._resource.kind} {self._record.key} version {self._record.resource_version}>")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._resource, self._record.json, self._record.is_whole)


#: The record of a view, and the resource of a view or of its class, for the code of this package. Their attributes have
#: an underscore, because the fields of objects are attributes of views.
view_record: Callable[[View], Record] = attrgetter("_record")
view_resource: Callable[[View | type[View]], Resource[Any]] = attrgetter("_resource")


def _refuse(self: View, name: str, value: Any = None) -> NoReturn:
    # msgspec's frozen structs refuse writes, too, but their message does not say what to do instead.
    raise AttributeError(f"{self!r} is shared by all readers: {name} cannot be changed; change a copy, from to_dict()")


class ModelView(View, frozen=True, eq=False, gc=False):
    """A view with the attributes of a model of kubernetes_asyncio. Each kind has its own subclass."""

    openapi_types: ClassVar[dict[str, str]]
    attribute_map: ClassVar[dict[str, str]]

    def _decoder(self) -> Callable[[bytes], Any]:
        return decoder_for(self._resource.model)

    def _load(self) -> Any:
        body = self._body
        if body is None:
            body = load_body(self._record, self._decoder())
            force_setattr(self, "_body", body)
        return body

    @property
    def _metadata(self) -> Any:
        return self._load().metadata

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the members of the JSON, so that `dict(pod)` is `pod.to_dict()`, as for pydantic's models."""
        return iter(self.to_dict().items())

    @property
    def api_version(self) -> str:
        """`group/version` of the object."""
        return self._resource.api_version

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return self._resource.kind


class _MappingBody(FrozenDict[str, Any]):
    __slots__ = ("__weakref__",)


class _WithMetadata(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_decode_with_metadata = msgspec.json.Decoder(_WithMetadata).decode


def _decode_mapping(raw: bytes) -> _MappingBody:
    try:
        body: _MappingBody = _MappingBody(freeze_decoded(msgspec.json.decode(raw)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise undecodable(raw, error) from error
    return body


class MappingView(View, frozen=True, eq=False, gc=False):
    """A view that is an immutable mapping with the keys of the JSON; top-level keys are attributes, too."""

    _meta: Any = None

    @property
    def api_version(self) -> str:
        """`group/version` of the object."""
        return str(self.get("apiVersion") or self._resource.api_version)

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.get("kind") or self._resource.kind)

    @property
    def openapi_types(self) -> dict[str, str]:
        """A type for each key, so that `ApiClient` accepts the view as a request body."""
        return dict.fromkeys(self, "object")

    @property
    def attribute_map(self) -> dict[str, str]:
        """The JSON key of each attribute: the same name."""
        return {key: key for key in self}

    def _decoder(self) -> Callable[[bytes], _MappingBody]:
        return _decode_mapping

    def _load(self) -> _MappingBody:
        body = self._body
        if body is None:
            body = load_body(self._record, self._decoder())
            force_setattr(self, "_body", body)
        return body  # type: ignore[no-any-return]

    @property
    def _metadata(self) -> Any:
        if self._meta is not None:
            return self._meta
        try:
            found = decoder_for(OBJECT_META)(bytes(_decode_with_metadata(self._record.json).metadata))
            force_setattr(self, "_meta", found)
            return found
        except (DecodeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = str(error) if isinstance(error, DecodeError) else refusal(error)
        raise failed_read(self._record, reason)

    def __getitem__(self, key: str) -> Any:
        return self._load()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, key: object) -> bool:
        return key in self._load()

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value under a key, or the default."""
        return self._load().get(key, default)

    def keys(self) -> KeysView[str]:
        """Return the keys of the JSON."""
        return self._load().keys()

    def items(self) -> ItemsView[str, Any]:
        """Return keys and values."""
        return self._load().items()

    def values(self) -> ValuesView[Any]:
        """Return the values."""
        return self._load().values()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._load()[name]
        except KeyError:
            raise AttributeError(f"{self!r} has no {name!r}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})


Mapping.register(MappingView)


def _body_attribute(name: str) -> property:
    return property(lambda self: getattr(self._load(), name), doc=f"`{name}` of the object.")


def build_decoders(view: type[View]) -> None:
    """Build what the first read of an object needs, if it was not built yet: for pods, that takes 13 ms."""
    decoder_for(view_resource(view).model or OBJECT_META)


def is_part(obj: Any) -> bool:
    """Return whether an object is known to lack members that the server has; see `Record.is_whole`."""
    return isinstance(obj, View) and not view_record(obj).is_whole


def json_of(view: View) -> bytes:
    """Return the JSON of an object as the server sent it."""
    return view_record(view).json


_view_classes: dict[Resource[Any], type[View]] = {}


@cache
def view_class(resource: Resource[Any]) -> type[View]:
    """Return the class of the views of a resource, named after its kind; always the same class.

    The views have the attributes of the resource's model, if it has one, and are mappings otherwise. A built-in kind
    has one class, even if the verbs of its resource are those of some server.
    """
    if resource.model:
        known = by_kind(resource.group, resource.version, resource.kind)
    else:
        known = None
    if known is not None and known != resource and _names(known) == _names(resource):
        return view_class(known)
    with BUILDING:  # two threads may both miss the cache
        if resource not in _view_classes:
            _view_classes[resource] = _make_view_class(resource)
        return _view_classes[resource]


def _names(resource: Resource[Any]) -> tuple[str, bool, str]:
    return resource.plural, resource.namespaced, resource.model


def _make_view_class(resource: Resource[Any]) -> type[View]:
    namespace: dict[str, Any] = {"_resource": resource}
    base: type[View] = MappingView
    if resource.model:
        base = ModelView
        attributes = attributes_of(resource.model)
        namespace["openapi_types"] = {attribute.name: attribute.type for attribute in attributes}
        namespace["attribute_map"] = {attribute.name: attribute.wire for attribute in attributes}
        for attribute in attributes:
            if attribute.name not in ("api_version", "kind", "metadata"):
                namespace[attribute.name] = _body_attribute(attribute.name)
    made: Any = msgspec.defstruct(
        resource.kind,
        [],
        bases=(base,),
        module=__name__,
        namespace=namespace,
        frozen=True,
        eq=False,
        gc=False,
    )
    made.__setattr__ = _refuse
    made.__delattr__ = _refuse
    return cast("type[View]", made)


def _restore(resource: Resource[Any], raw: bytes, is_whole: bool = True) -> View:
    record = decode_complete(decode_record, raw)
    return view_class(resource)(record if is_whole else record.with_raw(raw, Part))
