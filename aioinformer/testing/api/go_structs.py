"""The structs of built-in kinds: the API server decodes objects into them, and encodes those.

A struct has all its fields, in its own order, whatever the client sent:

- An optional field with a zero value is left out: an empty string, list or map, 0, false. A zero value of a required
  field is written: `"name":""`.
- A pointer is left out only if it is nil: `replicas: 0` is kept.
- A nested struct is always written, with its required fields: `"resources":{}`. So is a time: null if unset.
- Required lists and maps are null if they are unset. An empty one stays empty until it is stored; the storage does not
  keep the difference.

Unknown kinds, and values that do not fit their field, are not changed.

`data/protobuf.json`, which `scripts/record_protobuf.py` makes from the Go types, has two tables, read on first use.

- "kinds": by API version, the kinds and the package of their messages, which have the name of the kind. Kinds under
  "*" exist in every version.
- "messages": by package and name, the fields in the order of the struct, as `number name type`, joined by "; ". The
  name is followed by `?` for omitempty and `!` for omitzero; the name `~` is an inlined message, whose fields JSON has
  among those around it. The type is preceded by `*` for a pointer, `[]` for a list, `map ` for a map with string keys.
  A type with an `@` has its own JSON form; a message without a package is of the same package. `[]type` alone, instead
  of fields, is a named list: in protobuf a message with the list as field 1, in JSON the list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any, Final, Literal, NamedTuple

# Only the server writes these, and already in this form.
_MANAGED_FIELDS = "meta/v1.ManagedFieldsEntry"
_SCHEMA_OR = "apiextensions/v1.JSONSchemaPropsOr"
# The only embedded object with `kind` and `apiVersion`, which its protobuf form does not have.
_CLAIM = "core/v1.PersistentVolumeClaim"
_EVERY_VERSION = "*"
_NUMBERS = frozenset({"bool", "double", "int32", "int64"})
Writer = Callable[[Any], Any]

_LEFT_OUT: Final = object()
_STRUCT: Final = object()
_ZEROS = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "@Quantity": "0", "@IntOrString": 0}
# The API rejects null in these fields. Objects that the server stores without validation may lack them.
_NEVER_NULL = frozenset({"containers", "selector", "versions"})


class _Slot(NamedTuple):
    """One field of a struct.

    Attributes:
        rank: its position among the fields.
        write: encodes a value; None if values are written unchanged.
        skips_empty: whether an empty value counts as unset.
        unset: what is written if the field is unset: `_LEFT_OUT`, `_STRUCT` for an empty struct, or a value.
    """

    rank: int
    write: Writer | None
    skips_empty: bool
    unset: Any


class _Struct(NamedTuple):
    """How a struct is encoded.

    Attributes:
        always: fields that are written even if they are unset, with what is written.
    """

    slots: dict[str, _Slot]
    always: tuple[tuple[str, Any], ...]


def go_json(obj: Mapping[str, Any], *, stored: bool = False) -> Mapping[str, Any]:
    """Return an object as Go writes it. The argument is not changed.

    Args:
        obj: with `kind` and `apiVersion`.
        stored: whether the object comes from the storage instead of from a client.
    """
    kind, api_version = obj["kind"], obj["apiVersion"]
    name = message_name(api_version, kind)
    if not name:
        return obj
    return {"kind": kind, "apiVersion": api_version} | _encode(obj, _struct(name, stored))


def _encode(value: Mapping[str, Any], struct: _Struct) -> dict[str, Any]:
    slots = struct.slots
    result: dict[str, Any] = {}
    last, ordered = -1, True
    for name, found in value.items():
        slot = slots.get(name)
        if slot is None:
            continue
        rank, write, skips_empty, _ = slot
        if found is None or (skips_empty and not found):
            continue
        ordered = ordered and rank > last
        last = rank
        result[name] = found if write is None else write(found)
    for name, unset in struct.always:
        if name not in result:
            write = slots[name].write
            result[name] = write({}) if unset is _STRUCT and write is not None else unset
            ordered = ordered and slots[name].rank > last
            last = slots[name].rank
    return result if ordered else dict(sorted(result.items(), key=lambda item: slots[item[0]].rank))


@cache
def _struct(name: str, stored: bool) -> _Struct:
    fields = _fields(name)
    slots = {field.name: _slot(rank, field, stored) for rank, field in enumerate(fields)}
    return _Struct(slots, tuple((name, slot.unset) for name, slot in slots.items() if slot.unset is not _LEFT_OUT))


def _fields(name: str) -> list[Field]:
    return [each for field in message(name).fields for each in (_fields(field.kind) if field.inline else [field])]


def _slot(rank: int, field: Field, stored: bool) -> _Slot:
    write = _writer(field.kind, stored)
    null = _LEFT_OUT if field.omit_empty or (stored and field.name in _NEVER_NULL) else None
    if field.shape != "one":
        if write is not None:
            write = partial(_encode_items if field.shape == "list" else _encode_values, write)
        return _Slot(rank, write, field.omit_empty or stored, null)
    if field.nilable:
        return _Slot(rank, write, not field.pointer and (field.omit_empty or stored), null)
    if field.kind[0] == "@" or field.kind not in _ZEROS:
        unset = _ZEROS.get(field.kind) if field.kind[0] == "@" else _STRUCT
        return _Slot(rank, write, False, _LEFT_OUT if field.omit_zero else unset)
    return _Slot(rank, None, field.omit_empty, _LEFT_OUT if field.omit_empty else _ZEROS[field.kind])


def _writer(kind: str, stored: bool) -> Writer | None:
    """Return the function that encodes values of a kind; None if they are written unchanged."""
    if "." not in kind or kind == _MANAGED_FIELDS or message(kind).is_list:
        return None
    if kind.startswith(_SCHEMA_OR):
        # Only the schema, of the alternatives, is a mapping.
        kind = kind.partition("Or")[0]
    if kind == _CLAIM:
        return lambda value: _type_fields(value) | _encode(value, _struct(kind, stored))
    return lambda value: _encode(value, _struct(kind, stored)) if isinstance(value, dict) else value


def _type_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: obj[name] for name in ("kind", "apiVersion") if obj.get(name)}


def _encode_items(write: Writer, values: Any) -> Any:
    return [write({} if value is None else value) for value in values] if isinstance(values, list) else values


def _encode_values(write: Writer, values: Any) -> Any:
    return {key: write(value) for key, value in values.items()} if isinstance(values, dict) else values


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    Attributes:
        kind: "string", "int32" … "@Time" … or the name of a message.
        shape: a single value, a list, or a map with string keys.
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
    pointer: bool
    nilable: bool
    omit_empty: bool
    omit_zero: bool
    inline: bool


@dataclass(frozen=True, slots=True)
class Message:
    """The layout of a message.

    Attributes:
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
    if kind not in _NUMBERS and kind not in ("string", "bytes") and kind[0] != "@" and "." not in kind:
        kind = f"{package}.{kind}"
    return Field(
        number=int(number),
        name=name.rstrip("?!"),
        kind=kind,
        shape=shape,
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
