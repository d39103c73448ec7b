"""Classes with each feature of a schema: a table of types of one field, and whole classes."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NewType, NotRequired, Optional, TypedDict, Union

import msgspec
import pydantic
from msgspec import UNSET, Meta, UnsetType

from aioinformer.crds import (
    INT32,
    INT64,
    KEEP_UNKNOWN,
    LIST_ATOMIC,
    LIST_SET,
    MAP_ATOMIC,
    EmbeddedObject,
    IntOrString,
    list_map,
    rule,
    rules,
)
from aioinformer.models import ObjectMeta, Quantity, core_v1, meta_v1

Megabytes = NewType("Megabytes", int)
NEEDED = msgspec.NODEFAULT


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Port(msgspec.Struct, frozen=True):
    """A port of a service.

    Attributes:
        name: its name, which identifies it.
        number: the port
            on the node.
    """

    name: str
    number: Annotated[int, Meta(ge=1, le=65535)] = 80
    protocol: Literal["TCP", "UDP"] = "TCP"


class Pair(msgspec.Struct, frozen=True, rename="camel"):
    first_key: str
    second_key: int


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    depth: int
    deep: NotRequired[bool]


class Disk(msgspec.Struct, tag="disk", tag_field="type", frozen=True):
    size: Quantity
    label: str = "none"


class Bucket(msgspec.Struct, tag="bucket", tag_field="type", frozen=True, forbid_unknown_fields=True):
    url: str
    label: str = "none"


@rules(rule("self.minimum <= self.maximum", message="minimum must not exceed maximum", field_path=".maximum"))
class Range(msgspec.Struct, frozen=True):
    minimum: int = 0
    maximum: int = 10


@rules(MAP_ATOMIC)
class Atomic(msgspec.Struct, frozen=True):
    a: int = 0


@rules(KEEP_UNKNOWN)
class Open(msgspec.Struct, frozen=True):
    known: int = 0


class Deep(msgspec.Struct, frozen=True):
    ports: Annotated[tuple[Port, ...], list_map("name", "protocol")] = ()
    point: Point = Point(1)
    ranges: dict[str, Range] = {}


#: Name -> type of the only field of the spec, and its default.
FIELDS: dict[str, tuple[Any, Any]] = {
    "text": (str, NEEDED),
    "whole": (int, NEEDED),
    "real": (float, NEEDED),
    "flag": (bool, NEEDED),
    "optional": (int | None, None),
    "nullable": (Optional[str], NEEDED),  # noqa: UP045
    "unset": (int | UnsetType, UNSET),
    "unset-or-null": (int | None | UnsetType, UNSET),
    "null-beside-default": (int | None, 3),
    "default": (str, "grey"),
    "bounds": (Annotated[int, Meta(ge=1, le=9)], NEEDED),
    "open-bounds": (Annotated[float, Meta(gt=0, lt=1)], NEEDED),
    "multiple": (Annotated[int, Meta(multiple_of=5)], NEEDED),
    "length": (Annotated[str, Meta(min_length=2, max_length=4)], NEEDED),
    "pattern": (Annotated[str, Meta(pattern="^[a-z]+(-[a-z]+)*$")], NEEDED),
    "literal": (Literal["red", "green"], NEEDED),
    "literal-number": (Literal[1, 2, 3], NEEDED),
    "literal-or-null": (Literal["red", None], NEEDED),
    "enumeration": (Colour, Colour.RED),
    "number-enumeration": (Level, NEEDED),
    "time": (datetime.datetime, NEEDED),
    "day": (datetime.date, NEEDED),
    "clock": (datetime.time, NEEDED),
    "duration": (datetime.timedelta, NEEDED),
    "bytes": (bytes, NEEDED),
    "uuid": (uuid.UUID, NEEDED),
    "decimal": (decimal.Decimal, NEEDED),
    "quantity": (Quantity, Quantity("1Gi")),
    "int-or-string": (IntOrString, NEEDED),
    "bounded-int-or-string": (Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern="^[0-9]+%$")], "25%"),
    "int-or-float": (int | float, NEEDED),
    "any": (Any, None),
    "raw": (msgspec.Raw, NEEDED),
    "new-type": (Megabytes, NEEDED),
    "list": (list[str], NEEDED),
    "limited-list": (Annotated[list[int], Meta(min_length=1, max_length=3)], NEEDED),
    "tuple": (tuple[int, ...], ()),
    "pair": (tuple[int, int], NEEDED),
    "set": (set[str], NEEDED),
    "marked-set": (Annotated[list[int], LIST_SET], NEEDED),
    "atomic-list": (Annotated[list[Point], LIST_ATOMIC], NEEDED),
    "list-map": (Annotated[list[Port], list_map("name")], NEEDED),
    "list-of-nulls": (list[int | None], NEEDED),
    "nested-list": (list[list[int]], NEEDED),
    "map": (dict[str, int], NEEDED),
    "map-of-lists": (dict[str, list[Pair]], NEEDED),
    "limited-map": (Annotated[dict[str, str], Meta(min_length=1, max_length=2)], NEEDED),
    "open-map": (dict[str, Any], NEEDED),
    "embedded": (EmbeddedObject, NEEDED),
    "struct": (Pair, NEEDED),
    "dataclass": (Point, NEEDED),
    "typed-dict": (Options, NEEDED),
    "tagged": (Disk | Bucket, NEEDED),
    "optional-tagged": (Disk | Bucket | None, None),
    "class-rule": (Range, Range()),
    "field-rule": (Annotated[int, rule("self >= oldSelf", message="must not shrink", optional_old_self=False)], NEEDED),
    "message-expression": (
        Annotated[int, rule("self > 1", message_expression="self == 1 ? 'one is too few' : 'none'")],
        NEEDED,
    ),
    "atomic-object": (Atomic, NEEDED),
    "open-object": (Open, NEEDED),
    "deep": (Deep, NEEDED),
    "pod-template": (core_v1.PodTemplateSpec, NEEDED),
    "whole-kind": (core_v1.EmbeddedConfigMap, NEEDED),
    "media-type": (Annotated[str, Meta(pattern="^[A-Za-z0-9!#$%&'*+.^_|~-]+/[a-z()*+,;=:]+$")], NEEDED),
    "int32": (Annotated[int, INT32], NEEDED),
    "int64": (Annotated[int, INT64, Meta(ge=1)], NEEDED),
    "volume": (core_v1.EmptyDirVolumeSource, NEEDED),
    "probe": (core_v1.Probe | None, None),
    "label-selector": (meta_v1.LabelSelector | None, None),
    "conditions": (Annotated[tuple[meta_v1.Condition, ...], list_map("type")], ()),
}

#: Those with a type of the API.
API_FIELDS = ("pod-template", "whole-kind", "volume", "probe", "label-selector", "conditions")


def class_with(name: str) -> type[msgspec.Struct]:
    """Return the class of a resource whose spec has one field of the table."""
    kind = "".join(part.capitalize() for part in name.split("-"))
    annotation, default = FIELDS[name]
    spec = msgspec.defstruct(f"{kind}Spec", [("value", annotation, default)], frozen=True)
    return msgspec.defstruct(kind, [("metadata", ObjectMeta), ("spec", spec)], frozen=True)


class Strict(pydantic.BaseModel, strict=True):
    pass


class Cat(Strict):
    kind: Literal["cat"]
    lives: int = 9


class Dog(Strict):
    kind: Literal["dog"] = "dog"
    name: str


class PetSpec(Strict):
    """What a pet is."""

    size: Annotated[int, pydantic.Field(ge=1, lt=100, description="in centimetres"), rule("self != 13")]
    tag: Annotated[str, pydantic.Field(min_length=1, pattern="^[a-z]+$")] = "none"
    animal: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    born: datetime.datetime | None = None
    names: Annotated[list[str], LIST_SET] = []
    limits: dict[str, int | str] = {}
    colour: Colour = Colour.GREEN
    other: Cat | None = None
    free: Any = None
    share: float = 0.5
    known_as: str = pydantic.Field("x", alias="knownAs")


class PetStatus(Strict):
    replicas: int = 0
    selector: str = ""


class Pet(Strict):
    """A pet, declared with pydantic."""

    metadata: ObjectMeta
    spec: PetSpec
    status: PetStatus | None = None


class WebsiteStatus(msgspec.Struct, frozen=True):
    replicas: int = 0
    selector: str = ""
    conditions: Annotated[tuple[meta_v1.Condition, ...], list_map("type")] = ()


class WebsiteSpec(msgspec.Struct, frozen=True):
    image: str
    replicas: Annotated[int, Meta(ge=0, le=100, description="How many pods serve it.")] = 1
    host: str | None = None
    """The name under which it is served."""


@rules(rule("self.spec.replicas > 0 || !has(self.spec.host)", message="a host needs a replica"))
class Website(msgspec.Struct, frozen=True):
    """A website, and its pods."""

    spec: WebsiteSpec
    metadata: ObjectMeta
    status: WebsiteStatus | None = None
    notes: ClassVar[int] = 0


class OldWebsite(msgspec.Struct, frozen=True):
    spec: WebsiteSpec
    metadata: ObjectMeta
    status: WebsiteStatus | None = None


@dataclass(frozen=True)
class Tenant:
    """A tenant, declared as a dataclass."""

    metadata: ObjectMeta
    spec: Options
    ranges: Annotated[list[Range], LIST_ATOMIC] = field(default_factory=list)
    either: Union[int, str] = 1  # noqa: UP007


def in_base64(name: str, form: str) -> type[pydantic.BaseModel]:
    """Return a model with bytes in another form."""
    config = pydantic.ConfigDict(ser_json_bytes=form, val_json_bytes=form)  # type: ignore[typeddict-item]
    return pydantic.create_model(name, __config__=config, value=(bytes, ...))


class InSeconds(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_timedelta="float")

    value: datetime.timedelta


#: Name -> type of the only field of the spec of a pydantic model, and its default.
MODEL_FIELDS: dict[str, tuple[Any, Any]] = {
    "optional": (int | None, None),
    "nullable": (int | None, ...),
    "null-beside-default": (int | None, 3),
    "duration": (datetime.timedelta, ...),
    "duration-in-seconds": (InSeconds, ...),
    "clock": (datetime.time, ...),
    "day": (datetime.date, ...),
    "time": (datetime.datetime, ...),
    "aware-time": (pydantic.AwareDatetime, ...),
    "bytes": (bytes, ...),
    "bytes-in-base64": (in_base64("InBase64", "base64"), ...),
    "bytes-in-hex": (in_base64("InHex", "hex"), ...),
    "decoded-bytes": (pydantic.Base64Bytes, ...),
    "decoded-url-bytes": (pydantic.Base64UrlBytes, ...),
    "decimal": (decimal.Decimal, ...),
    "uuid": (uuid.UUID, ...),
    "v4": (ipaddress.IPv4Address, ...),
    "v6": (ipaddress.IPv6Address, ...),
    "v4-interface": (ipaddress.IPv4Interface, ...),
    "v6-interface": (ipaddress.IPv6Interface, ...),
    "any-address": (pydantic.IPvAnyAddress, ...),
    "any-interface": (pydantic.IPvAnyInterface, ...),
    "v4-network": (ipaddress.IPv4Network, ...),
    "v6-network": (ipaddress.IPv6Network, ...),
    "any-network": (pydantic.IPvAnyNetwork, ...),
    "network-or-null": (ipaddress.IPv4Network | None, ...),
    "networks": (Annotated[list[ipaddress.IPv6Network], pydantic.Field(max_length=1000)], ...),
    "limited-text": (Annotated[str, pydantic.Field(min_length=1, max_length=3)], ...),
    "limited-number": (Annotated[float, pydantic.Field(gt=0, le=9)], ...),
    "literal-or-null": (Literal["red", None], ...),
    "enumeration": (Colour, Colour.RED),
    "set": (set[str], ...),
    "map": (dict[str, int], ...),
    "any": (Any, None),
    "embedded": (EmbeddedObject | None, None),
    "several-embedded": (list[EmbeddedObject], []),
    "dataclass": (Point, ...),
    "tagged": (Annotated[Cat | Dog, pydantic.Field(discriminator="kind")], ...),
    "whole-kind": (core_v1.EmbeddedConfigMap | None, None),
    "conditions": (Annotated[list[meta_v1.Condition], list_map("type")], []),
}


def model_with(name: str) -> type[pydantic.BaseModel]:
    """Return the pydantic model of a resource whose spec has one field of the table."""
    kind = "".join(part.capitalize() for part in name.split("-"))
    spec = pydantic.create_model(f"{kind}Spec", value=MODEL_FIELDS[name])
    return pydantic.create_model(kind, metadata=(ObjectMeta, ...), spec=(spec, ...))
