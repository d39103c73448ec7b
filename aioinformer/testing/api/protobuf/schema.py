"""How Kubernetes' kinds are laid out in protobuf, and how Go writes the same as JSON.

`data/protobuf.json`, which `scripts/record_protobuf.py` makes from the Go types, has two tables.

- "kinds": by API version, the kinds and the package that has their messages, which are named as the kind. Those under
  "*" are known in every version.
- "messages": by package and name, the fields in the order of the Go struct, as `number name type`, joined by "; ".
  After the name stand `?` for omitempty and `!` for omitzero; the name `~` is that of a message whose fields JSON has
  among those around it. Before the type stand `*` for a pointer, `[]` for a list, `map ` for a map with string keys. A
  type with an `@` has a JSON of its own; a message without a package is of the same package. `[]type` alone, instead of
  fields, is a list that has a name: in protobuf a message with the list as field 1, in JSON the list.

Nothing is read before it is needed, and messages one by one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from aioinformer.testing.api.protobuf.wire import CHUNK, FIXED64, VARINT

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIRE_TYPES = {"double": FIXED64} | dict.fromkeys(("bool", "int32", "int64"), VARINT)
_EVERY_VERSION = "*"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    Attributes:
        number: on the wire.
        name: in JSON.
        kind: "string", "int32" … "@Time" … or the name of a message.
        shape: whether there is one, a list, or a map with string keys.
        wire_type: of each value.
        pointer: whether a zero that is sent was set.
        nilable: whether it has a nil, which is what an absent one is: pointers, bytes, and lists that have a name.
        omit_empty: whether JSON leaves out an empty list or map, a nil, and a zero that is not a struct.
        omit_zero: whether JSON leaves out a zero that is a struct.
        inline: whether JSON has the fields of this one among those around it.
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
        is_list: whether JSON has, instead of an object, the list that is its only field.
    """

    fields: tuple[Field, ...]
    is_list: bool = False


def message_name(api_version: str, kind: str) -> str:
    """The message of a kind; "" if it has none."""
    kinds = _kinds()
    package = kinds.get(api_version, {}).get(kind) or kinds[_EVERY_VERSION].get(kind)
    return f"{package}.{kind}" if package else ""


@cache
def message(name: str) -> Message:
    """The layout of a message, by its name with its package."""
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
