"""The protobuf messages of Kubernetes' kinds, and how Go writes them as JSON.

`data/protobuf.json`, which `scripts/record_protobuf.py` makes from the Go types, has two tables.

- "kinds": by API version, the kinds and the package of their messages, which have the name of the kind. Kinds under
  "*" exist in every version.
- "messages": by package and name, the fields in the order of the Go struct, as `number name type`, joined by "; ".
  The name is followed by `?` for omitempty and `!` for omitzero; the name `~` is an inlined message, whose fields JSON
  has among those around it. The type is preceded by `*` for a pointer, `[]` for a list, `map ` for a map with string
  keys. A type with an `@` has its own JSON form; a message without a package is of the same package. `[]type` alone,
  instead of fields, is a named list: in protobuf a message with the list as field 1, in JSON the list.

Messages are read one by one, on first use.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Wire types.
VARINT, FIXED64, CHUNK = 0, 1, 2
_WIRE_TYPES = {"double": FIXED64} | dict.fromkeys(("bool", "int32", "int64"), VARINT)
_EVERY_VERSION = "*"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    Attributes:
        number: on the wire.
        name: in JSON.
        kind: "string", "int32" … "@Time" … or the name of a message.
        shape: a single value, a list, or a map with string keys.
        wire_type: of each value.
        pointer: whether a zero that was sent counts as set.
        nilable: whether an absent value is nil: pointers, bytes and named lists.
        omit_empty: whether JSON leaves out empty lists and maps, nil, and zero values other than structs.
        omit_zero: whether JSON leaves out a zero struct.
        inline: whether JSON has the fields of this message among those around it.
    """

    number: int
    name: str
    kind: str
    shape: Literal["one", "list", "map"]
    wire_type: int
    pointer: bool
    nilable: bool
    omit_empty: bool
    omit_zero: bool
    inline: bool


@dataclass(frozen=True, slots=True)
class Message:
    """The layout of a message.

    Attributes:
        fields: in the order of JSON.
        is_list: whether JSON has the list that is its only field instead of an object.
    """

    fields: tuple[Field, ...]
    is_list: bool = False


def message_name(api_version: str, kind: str) -> str:
    """Return the name of a kind's message; "" if it has none."""
    kinds = _kinds()
    package = kinds.get(api_version, {}).get(kind) or kinds[_EVERY_VERSION].get(kind)
    return f"{package}.{kind}" if package else ""


@cache
def message(name: str) -> Message:
    """Return the layout of a message by its name with the package."""
    text: str = _recorded()["messages"][name]
    package = name.rpartition(".")[0]
    if text.startswith("[]"):
        return Message((_field(f"1 items {text}", package),), is_list=True)
    return Message(tuple(_field(part, package) for part in text.split("; ") if part))


def _field(text: str, package: str) -> Field:
    number, name, kind = text.split(" ", 2)
    shape: Literal["one", "list", "map"] = "one"
    pointer = kind.startswith("*")
    if pointer:
        kind = kind[1:]
    elif kind.startswith("[]"):
        shape, kind = "list", kind[2:]
    elif kind.startswith("map "):
        shape, kind = "map", kind[4:]
    wire_type = _WIRE_TYPES.get(kind, CHUNK)
    if kind not in _WIRE_TYPES and kind not in ("string", "bytes") and kind[0] != "@" and "." not in kind:
        kind = f"{package}.{kind}"
    return Field(
        number=int(number),
        name=name.rstrip("?!"),
        kind=kind,
        shape=shape,
        wire_type=wire_type,
        pointer=pointer,
        nilable=pointer or kind == "bytes" or _recorded()["messages"].get(kind, "").startswith("[]"),
        omit_empty="?" in name,
        omit_zero="!" in name,
        inline=name[0] == "~",
    )


@cache
def _kinds() -> Mapping[str, Mapping[str, str]]:
    return {
        version: {kind: package for package, kinds in packages.items() for kind in kinds.split()}
        for version, packages in _recorded()["kinds"].items()
    }


@cache
def _recorded() -> Mapping[str, Any]:
    text = resources.files("aioinformer.testing").joinpath("data/protobuf.json").read_text("utf-8")
    recorded: dict[str, Any] = json.loads(text)
    return recorded
