"""The JSON Schema of a class: by `msgspec.inspect`, or by pydantic for its models.

It is the intermediate form from which `structural` makes what an API server accepts. Objects have their class in
`title`. A field that may be absent and is None then has `"default": None`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import inspect as types

from aioinformer.cache.objects.frozen import FrozenDict
from aioinformer.cache.objects.models.building import BUILDING
from aioinformer.cache.objects.models.json_value import JSONValue
from aioinformer.cache.objects.models.model import Model
from aioinformer.crds.descriptions import class_description, field_descriptions
from aioinformer.crds.markers import INT_OR_STRING, LIST_SET, class_markers, merged, with_markers
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

Schema = dict[str, Any]

#: What the API server adds itself.
OWN_FIELDS: Final = ("apiVersion", "kind", "metadata")

_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_ZONE: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_SECONDS: Final = r"[0-9]{1,7}(\.[0-9]{1,6})?S"
_HOURS: Final = rf"T([0-9]{{1,7}}H([0-9]{{1,7}}M)?({_SECONDS})?|[0-9]{{1,7}}M({_SECONDS})?|{_SECONDS})"
_YEAR: Final = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
BASE64: Final = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
UUID: Final = "^([0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32})$"
DATE: Final = rf"^{_YEAR}-"
DATE_TIME: Final = rf"^{_YEAR}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK}{_ZONE}$"

_SIMPLE: Final[dict[type[Any], Schema]] = {
    types.AnyType: {},
    types.RawType: {},
    types.NoneType: {"type": "null"},
    types.BoolType: {"type": "boolean"},
    types.BytesType: {"type": "string", "contentEncoding": "base64"},
    types.ByteArrayType: {"type": "string", "contentEncoding": "base64"},
    types.MemoryViewType: {"type": "string", "contentEncoding": "base64"},
    types.DateTimeType: {"type": "string", "format": "date-time"},
    types.DateType: {"type": "string", "format": "date"},
    types.TimeType: {"type": "string", "pattern": rf"^{_CLOCK}{_ZONE}?$"},
    types.TimeDeltaType: {"type": "string", "pattern": rf"^[+-]?P([0-9]{{1,7}}D({_HOURS})?|{_HOURS})$"},
    types.UUIDType: {"type": "string", "format": "uuid"},
    types.DecimalType: {"type": "string", "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"},
}
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTHS: Final = {"min_length": "min", "max_length": "max"}


class Place(NamedTuple):
    """Where a schema is, for errors.

    Attributes:
        owner: the class.
        field: of the class; "" for the class itself.
        path: from the root, ".spec.ports[].name".
    """

    owner: str
    field: str = ""
    path: str = ""

    def refuse(self, text: str) -> UsageError:
        """Return an error that names class and field."""
        what = f"{self.owner}.{self.field}" if self.field else self.owner
        return UsageError(f"{what}{f' ({self.path})' if self.path not in ('', f'.{self.field}') else ''}: {text}")

    def of(self, owner: str, field: str) -> Place:
        """Return the place of a field of an object that is here."""
        return Place(owner, field, f"{self.path}.{field}")

    def inside(self, part: str = "[]") -> Place:
        """Return the place of the members of a list or map that is here."""
        return self._replace(path=f"{self.path}{part}")


def schema_of(cls: type[Any]) -> Schema:
    """Return the JSON Schema of a class.

    Raises:
        UsageError: there is none for a field; the message names class and field.
    """
    if hasattr(cls, "model_json_schema"):
        from aioinformer.crds.pydantic_types import pydantic_schema

        return pydantic_schema(cls)
    try:
        with BUILDING:
            described = types.type_info(cls)
    except TypeError as error:
        raise Place(cls.__name__).refuse(f"msgspec cannot decode it: {error}") from error
    if not isinstance(described, _OBJECTS):
        raise Place(cls.__name__).refuse("expected a msgspec Struct, a dataclass, a TypedDict or a pydantic model")
    return _Reader().object(described, Place(cls.__name__))


_OBJECTS: Final = (types.StructType, types.DataclassType, types.TypedDictType)


class _Reader:
    """Makes the schema of what msgspec describes."""

    def __init__(self) -> None:
        self._open: list[type[Any]] = []

    def object(self, described: Any, place: Place) -> Schema:
        cls, name = described.cls, described.cls.__name__
        if cls in self._open:
            raise place.refuse(
                f"{name} contains itself, which a schema cannot say; "
                "make the field dict[str, Any], and convert it in your code"
            )
        if getattr(described, "array_like", False):
            raise place.refuse(
                f"{name} is an array in JSON (array_like), with a type for each position; make it an object"
            )
        self._open.append(cls)
        texts = {} if _is_model(cls) else field_descriptions(cls)
        properties: dict[str, Schema] = {}
        required = []
        for field in described.fields:
            if not place.path and field.encode_name in OWN_FIELDS:
                continue
            at = place.of(name, field.encode_name)
            schema = self.read(field.type, at)
            if text := texts.get(field.name):
                schema = {"description": text, **schema}
            if field.required:
                required.append(field.encode_name)
            else:
                schema |= _default(field, at)
            properties[field.encode_name] = schema
        self._open.pop()
        found: Schema = {"type": "object", "title": name, "properties": properties, "required": required}
        if tag_field := getattr(described, "tag_field", None):
            kind = "integer" if isinstance(described.tag, int) else "string"
            properties[tag_field] = {"type": kind, "enum": [described.tag]}
            found["discriminator"] = {"propertyName": tag_field}
        found["closed"] = getattr(described, "forbid_unknown_fields", False)
        if not _is_model(cls) and (text := class_description(cls)):
            found["description"] = text
        return with_markers(found, class_markers(cls))

    def read(self, described: types.Type, place: Place) -> Schema:
        """Return the schema of a type.

        Raises:
            UsageError: there is none.
        """
        if (simple := _SIMPLE.get(type(described))) is not None:
            return self._constrained(dict(simple), described, place)
        match described:
            case types.Metadata():
                return merged(self.read(described.type, place), described.extra_json_schema or {})
            case types.IntType():
                return self._constrained({"type": "integer"}, described, place)
            case types.FloatType():
                return self._constrained({"type": "number"}, described, place)
            case types.StrType():
                return self._constrained({"type": "string"}, described, place)
            case types.LiteralType():
                return _enum(described.values)
            case types.EnumType():
                return _enum([each.value for each in described.cls])
            case types.UnionType():
                return {"anyOf": [self.read(each, place) for each in described.types]}
            case types.StructType() | types.DataclassType() | types.TypedDictType():
                return self.object(described, place)
            case types.SetType() | types.FrozenSetType():
                items = {"type": "array", "items": self.read(described.item_type, place.inside())}
                return self._constrained(items | (LIST_SET.extra_json_schema or {}), described, place, "Items")
            case types.ListType() | types.VarTupleType():
                items = {"type": "array", "items": self.read(described.item_type, place.inside())}
                return self._constrained(items, described, place, "Items")
            case types.TupleType():
                return self._tuple(described.item_types, place)
            case types.DictType():
                return self._map(described, place)
            case types.CustomType():
                return self._custom(described.cls, place)
        name = getattr(getattr(described, "cls", None), "__name__", type(described).__name__)
        raise place.refuse(f"{name} has no schema; use an object, or Any for any JSON")

    def _tuple(self, items: Iterable[types.Type], place: Place) -> Schema:
        schemas = [self.read(each, place.inside()) for each in items]
        if not schemas or any(each != schemas[0] for each in schemas):
            raise place.refuse("a tuple with a type for each position has no schema; use a class, or tuple[X, ...]")
        return {"type": "array", "items": schemas[0], "minItems": len(schemas), "maxItems": len(schemas)}

    def _map(self, described: types.DictType, place: Place) -> Schema:
        key = described.key_type
        if not isinstance(key, (types.StrType, types.AnyType)):
            raise place.refuse("the keys of a map must be str, as in JSON; for fixed keys, use a class")
        if isinstance(key, types.StrType) and key != types.StrType():
            raise place.refuse('a schema cannot constrain keys; add rule("self.all(key, …)") to the field')
        values = self.read(described.value_type, place.inside("{}"))
        return self._constrained({"type": "object", "additionalProperties": values}, described, place, "Properties")

    def _custom(self, cls: Any, place: Place) -> Schema:
        if cls is JSONValue:
            return {}
        if cls is FrozenDict:  # of texts and quantities
            return {"type": "object", "additionalProperties": {INT_OR_STRING: True}}
        if getattr(cls, "__origin__", None) is FrozenDict:
            with BUILDING:
                values = types.type_info(cls.__args__[1])
            return {"type": "object", "additionalProperties": self.read(values, place.inside("{}"))}
        raise place.refuse(
            f"msgspec knows no JSON form of {getattr(cls, '__name__', cls)}; "
            "use a type that it knows, or Any for any JSON"
        )

    def _constrained(self, schema: Schema, described: Any, place: Place, counted: str = "Length") -> Schema:
        for name, keyword in _BOUNDS.items():
            if (value := getattr(described, name, None)) is not None:
                schema[keyword] = value
        if "contentEncoding" in schema and (described.min_length or described.max_length) is not None:
            raise place.refuse("a schema cannot limit the length of bytes, which are base64; add a rule")
        for name, keyword in _LENGTHS.items():
            if (value := getattr(described, name, None)) is not None:
                schema[keyword + counted] = value
        return schema


def _is_model(cls: type[Any]) -> bool:
    return issubclass(cls, Model)


def _enum(values: Iterable[Any]) -> Schema:
    found: Schema = {"enum": list(values)}
    kinds = {"integer" if isinstance(each, int) else "string" for each in values if each is not None}
    return found | ({"type": kinds.pop()} if len(kinds) == 1 else {INT_OR_STRING: True})


def _default(field: types.Field, place: Place) -> Schema:
    """Return the default of a field as far as it is a constant: what a function makes differs with each object."""
    value: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        try:
            value, again = field.default_factory(), field.default_factory()
        except Exception as error:
            raise place.refuse(f"default_factory raised {type(error).__name__}: {error}") from error
        if msgspec.to_builtins(value, enc_hook=repr) != msgspec.to_builtins(again, enc_hook=repr):
            return {}
    if value is msgspec.NODEFAULT or value is msgspec.UNSET:
        return {}
    try:
        return {"default": msgspec.to_builtins(value, str_keys=True)}
    except TypeError as error:
        raise place.refuse(f"the default has no JSON form: {error}") from error


#: What RE2, the library of the API server, does not know.
_NOT_IN_RE2: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:=|!|<=|<!|>|\(|P=|#)|\\[1-9ZuU]|[*+?}]\+)")


def check_pattern(pattern: str, place: Place) -> str:
    """Return a pattern that Python and the API server both know.

    Raises:
        UsageError: the server does not know a part of it.
    """
    if found := _NOT_IN_RE2.search(pattern):
        raise place.refuse(
            f"the API server does not know {found[0]!r} of the pattern {pattern!r}; it has the syntax of RE2"
        )
    return pattern
