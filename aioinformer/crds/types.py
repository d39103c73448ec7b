"""The JSON Schema of a class: by `msgspec.inspect`, or by pydantic for its models.

It is the intermediate form from which `structural` makes what an API server accepts. An object has its class in
`title`, an optional field that is None by default has `"default": None`, and what has no schema has the reason in
`REFUSED`. `msgspec.json.schema` says too little for it: nothing of most times, of the keys of maps, and of defaults
that a function makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import inspect as types

from aioinformer.cache.objects.frozen import FrozenDict
from aioinformer.cache.objects.models.building import BUILDING
from aioinformer.cache.objects.models.json_value import JSONValue
from aioinformer.cache.objects.models.model import Model
from aioinformer.cache.objects.whole_kinds import refused_kind
from aioinformer.crds.api_types import api_definitions, schema_name
from aioinformer.crds.descriptions import class_description, field_descriptions
from aioinformer.crds.markers import INT_OR_STRING, class_markers, merged, with_markers
from aioinformer.errors import UsageError
from aioinformer.resources.quantities import Quantity, json_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

Schema = dict[str, Any]

REFUSED: Final = "refused"

_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_ZONE: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_SECONDS: Final = r"[0-9]{1,7}(\.[0-9]{1,6})?S"
_HOURS: Final = rf"T([0-9]{{1,7}}H([0-9]{{1,7}}M)?({_SECONDS})?|[0-9]{{1,7}}M({_SECONDS})?|{_SECONDS})"
#: pydantic counts hours in 32 bits of seconds, and writes 400 days as a year of 365 days, and 35 days.
_FEW_HOURS: Final = _HOURS.replace("{1,7}H", "{1,6}H")
_YEAR: Final = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_TIME: Final = rf"^{_CLOCK}{_ZONE}?$"
_DURATION: Final = rf"^[+-]?P([0-9]{{1,7}}D({_HOURS})?|{_HOURS})$"
_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_V4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}"
_HEX: Final = "[0-9a-fA-F]{1,4}"
#: Eight groups; or some, `::`, and at most as many as are left.
_V6: Final = "|".join(
    (
        rf"({_HEX}:){{7}}({_HEX}|:)",
        *(rf"({_HEX}:){{{before}}}(:{_HEX}){{1,{7 - before}}}" for before in range(1, 7)),
        rf":((:{_HEX}){{1,7}}|:)",
        *(rf"({_HEX}:){{{before}}}:" for before in range(1, 7)),
        rf"::[fF]{{4}}:{_V4}",
    )
)
_BITS_4: Final = "/(3[0-2]|[12]?[0-9])"
_BITS_6: Final = "/(12[0-8]|1[01][0-9]|[1-9]?[0-9])"
#: Of texts in base64 whose last character has no bits to spare.
_SAFE: Final = "[A-Za-z0-9_-]"
#: The server's own check of these formats is more lenient than a class, or refuses what a class accepts.
PATTERNS: Final = {
    "base64": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "base64url": rf"^({_SAFE}{{4}})*({_SAFE}[AQgw]==|{_SAFE}{{2}}[AEIMQUYcgkosw048]=)?$",
    "hex": "^([0-9a-fA-F]{2})*$",
    "time": _TIME,
    "duration": rf"^[+-]?P([0-9]{{1,6}}Y([0-9]{{1,7}}D)?({_FEW_HOURS})?|[0-9]{{1,7}}D({_FEW_HOURS})?|{_FEW_HOURS})$",
    "ipv4": rf"^{_V4}$",
    "ipv4network": rf"^{_V4}({_BITS_4})?$",
    "ipv4interface": rf"^{_V4}({_BITS_4})?$",
    "ipv6network": rf"^({_V6})({_BITS_6})?$",
    "ipv6interface": rf"^({_V6})({_BITS_6})?$",
    "ipvanyaddress": rf"^({_V4}|{_V6})$",
    "ipvanynetwork": rf"^({_V4}({_BITS_4})?|({_V6})({_BITS_6})?)$",
    "ipvanyinterface": rf"^({_V4}({_BITS_4})?|({_V6})({_BITS_6})?)$",
    "date": rf"^{_YEAR}-",
    "date-time": rf"^{_YEAR}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK}{_ZONE}$",
    "uuid": "^([0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32})$",
}
#: Of a decimal, which is a text. Its exponent is one that Python's arithmetic can have: with a larger one, a short text
#: could be a number of gigabytes to `int()`.
DECIMAL: Final[Schema] = {"type": "string", "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?$"}
_BYTES: Final[Schema] = {"type": "string", "contentEncoding": "base64"}
_SIMPLE: Final[dict[type[Any], Schema]] = {
    types.AnyType: {},
    types.RawType: {},
    types.NoneType: {"type": "null"},
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.StrType: {"type": "string"},
    types.BytesType: _BYTES,
    types.ByteArrayType: _BYTES,
    types.MemoryViewType: _BYTES,
    types.DateTimeType: {"type": "string", "format": "date-time"},
    types.DateType: {"type": "string", "format": "date"},
    types.TimeType: {"type": "string", "pattern": _TIME},
    types.TimeDeltaType: {"type": "string", "pattern": _DURATION},
    types.UUIDType: {"type": "string", "format": "uuid"},
    types.DecimalType: DECIMAL,
}
#: Constraints of `Meta`, and their keywords; a length has the ending of its type.
_CONSTRAINTS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "min_length": "min",
    "max_length": "max",
}
_COUNTED: Final = {"string": "Length", "array": "Items", "object": "Properties"}


def schema_of(cls: type[Any]) -> Schema:
    """Return the JSON Schema of a class: a reference into its `$defs`, or an object.

    Raises:
        UsageError: msgspec cannot decode the class, or pydantic has no schema for a field of it.
    """
    if hasattr(cls, "model_json_schema"):
        from aioinformer.crds.pydantic_types import pydantic_schema

        return pydantic_schema(cls)
    if refusal := refused_kind(cls):
        raise UsageError(refusal)
    try:
        with BUILDING:
            described = types.type_info(cls)
    except TypeError as error:
        raise UsageError(f"{cls.__name__}: msgspec cannot decode it: {error}") from error
    if not isinstance(described, (types.StructType, types.DataclassType, types.TypedDictType)):
        raise UsageError(f"{cls.__name__}: expected a msgspec Struct, a dataclass, a TypedDict or a pydantic model")
    reader = _Reader()
    return {**reader.read(described), "$defs": reader.definitions}


class _Reader:
    """Makes the schema of what msgspec describes, and the definitions of the classes in it."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}

    def read(self, described: types.Type) -> Schema:
        """Return the schema of a type."""
        schema = self._plain(described)
        if REFUSED in schema:
            return schema
        for name, keyword in _CONSTRAINTS.items():
            if (value := getattr(described, name, None)) is not None:
                schema[keyword + _COUNTED[schema["type"]] if name.endswith("length") else keyword] = value
        if "contentEncoding" in schema and ("minLength" in schema or "maxLength" in schema):
            return {REFUSED: "a schema cannot limit the length of bytes, which are base64; add a rule"}
        return schema

    def _plain(self, described: types.Type) -> Schema:
        match described:
            case types.Metadata():
                return merged(self.read(described.type), described.extra_json_schema or {})
            case types.LiteralType():
                return {"enum": list(described.values)}
            case types.EnumType():
                return {"enum": [each.value for each in described.cls]}
            case types.UnionType():
                return {"anyOf": [self.read(each) for each in described.types]}
            case types.StructType() | types.DataclassType() | types.TypedDictType():
                return self._reference(described)
            case types.SetType() | types.FrozenSetType():
                return {"type": "array", "items": self.read(described.item_type), "uniqueItems": True}
            case types.CollectionType():
                return {"type": "array", "items": self.read(described.item_type)}
            case types.TupleType():
                return self._tuple(described.item_types)
            case types.DictType():
                return self._map(described)
            case types.CustomType():
                return self._custom(described.cls)
        if (simple := _SIMPLE.get(type(described))) is not None:
            return dict(simple)
        name = getattr(getattr(described, "cls", None), "__name__", type(described).__name__)
        return {REFUSED: f"{name} has no schema; use an object, or Any for any JSON"}

    def _reference(self, described: Any) -> Schema:
        if isinstance(described.cls, type) and issubclass(described.cls, Model):
            return self._of_api(described.cls)
        if described.cls not in self._names:
            name = str(len(self._names))
            self._names[described.cls] = name
            self.definitions[name] = self._object(described)
        return {"$ref": self._names[described.cls]}

    def _of_api(self, cls: type[Model]) -> Schema:
        name = schema_name(cls)
        if not name:
            text = f"the schema of {cls.__name__} is not known, because clusters do not serve its API by default"
            return {REFUSED: f"{text}; write a class with the fields that you need"}
        if name not in self.definitions:
            self.definitions |= api_definitions(name)
        return {"$ref": name}

    def _object(self, described: Any) -> Schema:
        cls = getattr(described.cls, "__origin__", described.cls)
        if getattr(described, "array_like", False):
            return {REFUSED: f"{cls.__name__} is an array in JSON (array_like); make it an object"}
        texts = field_descriptions(cls)
        properties: dict[str, Schema] = {}
        for field in described.fields:
            schema = self.read(field.type)
            if text := texts.get(field.name):
                schema = {"description": text, **schema}
            properties[field.encode_name] = schema if field.required else schema | _default(field)
        required = [field.encode_name for field in described.fields if field.required]
        found: Schema = {"type": "object", "title": cls.__name__, "properties": properties, "required": required}
        if tag_field := getattr(described, "tag_field", None):
            properties[tag_field] = {"enum": [described.tag]}
            found["discriminator"] = {"propertyName": tag_field}
        if getattr(described, "forbid_unknown_fields", False):
            found["additionalProperties"] = False
        if text := class_description(cls):
            found["description"] = text
        return with_markers(found, class_markers(cls))

    def _tuple(self, items: Sequence[types.Type]) -> Schema:
        schemas = [self.read(each) for each in items]
        if not schemas or any(each != schemas[0] for each in schemas):
            return {REFUSED: "a tuple with a type for each position has no schema; use a class, or tuple[X, ...]"}
        return {"type": "array", "items": schemas[0], "minItems": len(schemas), "maxItems": len(schemas)}

    def _map(self, described: types.DictType) -> Schema:
        key = described.key_type
        if not isinstance(key, (types.StrType, types.AnyType)):
            return {REFUSED: "the keys of a map must be str, as in JSON; for fixed keys, use a class"}
        if isinstance(key, types.StrType) and key != types.StrType():
            return {REFUSED: 'a schema cannot constrain keys; add rule("self.all(key, …)") to the field'}
        return {"type": "object", "additionalProperties": self.read(described.value_type)}

    def _custom(self, cls: Any) -> Schema:
        if cls is JSONValue:
            return {}
        if cls is Quantity:
            return json_schema()
        if cls is FrozenDict:  # of texts and quantities
            return {"type": "object", "additionalProperties": {INT_OR_STRING: True}}
        if getattr(cls, "__origin__", None) is FrozenDict:
            with BUILDING:
                values = types.type_info(cls.__args__[1])
            return {"type": "object", "additionalProperties": self.read(values)}
        name = getattr(cls, "__name__", cls)
        return {REFUSED: f"msgspec knows no JSON form of {name}; use a type that it knows, or Any for any JSON"}


def _default(field: types.Field) -> Schema:
    """Return the default of a field as far as it is a constant: what a function makes differs with each object."""
    value: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        try:
            value = field.default_factory()
            again = field.default_factory()
        except Exception as error:
            return {REFUSED: f"default_factory raised {type(error).__name__}: {error}"}
        if msgspec.to_builtins(value, enc_hook=repr) != msgspec.to_builtins(again, enc_hook=repr):
            return {}
    if value is msgspec.NODEFAULT or value is msgspec.UNSET:
        return {}
    try:
        return {"default": msgspec.to_builtins(value, enc_hook=_plain, str_keys=True)}
    except TypeError as error:
        return {REFUSED: f"the default has no JSON form: {error}"}


def _plain(value: Any) -> str:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(f"msgspec knows no JSON form of {type(value).__name__}")
