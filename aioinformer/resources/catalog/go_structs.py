"""The structs of built-in kinds: the API server decodes objects into them, and encodes those.

A struct has all its fields, in its own order, whatever the client sent:

- An optional field with a zero value is left out: an empty string, list or map, 0, false. A zero value of a required
  field is written: `"name":""`.
- A pointer is left out only if it is nil: `replicas: 0` is kept.
- A nested struct is always written, with its required fields: `"resources":{}`. So is a time: null if unset.
- Required lists and maps are null if they are unset. An empty one stays empty until it is stored; the storage does not
  keep the difference.

Unknown kinds, and values that do not fit their field, are not changed.

`protobuf.json`, which `scripts/record_protobuf.py` makes from the Go types, has two tables, read on first use.

- "kinds": by API version, the kinds and the package of their messages, which have the name of the kind. Kinds under
  "*" exist in every version.
- "messages": by package and name, the fields in the order of the struct, as `number name type`, joined by "; ". The
  name is followed by `?` for omitempty, `!` for omitzero, and `&` for a list or map that server-side apply merges; the
  name `~` is an inlined message, whose fields JSON has among those around it. The type is preceded by `*` for a
  pointer, `[]` for a list, `map ` for a map with string keys. A type with an `@` has its own JSON form; a message
  without a package is of the same package. `[]type` alone, instead of fields, is a named list: in protobuf a message
  with the list as field 1, in JSON the list. `=` precedes the fields that server-side apply replaces together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any, Final, Literal, NamedTuple

from aioinformer.resources.quantities import QuantityError, canonical

# Only the server writes these, and already in this form.
_MANAGED_FIELDS = "meta/v1.ManagedFieldsEntry"
_SCHEMA_OR = "apiextensions/v1.JSONSchemaPropsOr"
# The only embedded object with `kind` and `apiVersion`, which its protobuf form does not have.
_CLAIM = "core/v1.PersistentVolumeClaim"
_EVERY_VERSION = "*"
#: Constant defaults in parts of objects that server-side apply replaces as a whole, by message.
_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "core/v1.EndpointPort": {"protocol": "TCP"},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "discovery/v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "networking/v1.NetworkPolicyPort": {"protocol": "TCP"},
    "rbac/v1.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
}
_NUMBERS = frozenset({"bool", "double", "int32", "int64"})
Writer = Callable[[Any], Any]

_LEFT_OUT: Final = object()
_STRUCT: Final = object()
_ZEROS = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "@Quantity": "0", "@IntOrString": 0}
# The API rejects null in these fields. Objects that the server stores without validation may lack them.
_NEVER_NULL = frozenset({"containers", "selector", "versions"})


class Whole(dict[str, Any]):
    """A map or struct that server-side apply replaces, in what `stored_form` returns. It merges all others."""

    __slots__ = ()


class _Slot(NamedTuple):
    """One field of a struct.

    Attributes:
        rank: its position among the fields.
        write: encodes a value; None if values are written unchanged.
        skips_empty: whether an empty value counts as unset.
        unset: what is written if the field is unset: `_LEFT_OUT`, `_STRUCT` for an empty struct, or a value.
        replaced: whether a map becomes a `Whole`, and an empty list or map, which counts as unset, null.
    """

    rank: int
    write: Writer | None
    skips_empty: bool
    unset: Any
    replaced: bool = False


class _Struct(NamedTuple):
    """How a struct is encoded.

    Attributes:
        always: fields that are written even if they are unset, with what is written.
        keeps_unknown: whether members of other names are written unchanged.
        replaced: whether it becomes a `Whole`.
    """

    slots: dict[str, _Slot]
    always: tuple[tuple[str, Any], ...]
    keeps_unknown: bool
    replaced: bool


def go_json(obj: Mapping[str, Any], *, stored: bool = False) -> Mapping[str, Any]:
    """Return an object as Go writes it. The argument is not changed.

    Args:
        obj: with `kind` and `apiVersion`.
        stored: whether the object comes from the storage instead of from a client.
    """
    kind = obj["kind"]
    api_version = obj["apiVersion"]
    name = message_name(api_version, kind)
    if not name:
        return obj
    return {"kind": kind, "apiVersion": api_version} | _encode(obj, _struct(name, stored))


def stored_form(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object as the server would store it: with canonical quantities, and without empty values.

    An empty list or map is left out if server-side apply would merge it with others, and null if it would replace them.
    Of the defaults of a server, there are constants alone, in parts that are replaced as a whole. Members that the
    structs lack stay, as those of custom resources do.
    """
    name = message_name(obj["apiVersion"], obj["kind"])
    metadata = obj.get("metadata")
    if name:
        return _encode(obj, _struct(name, True, True)) | {name: obj[name] for name in ("kind", "apiVersion")}
    if not isinstance(metadata, dict):
        return obj
    return {**obj, "metadata": _encode(metadata, _struct("meta/v1.ObjectMeta", True, True))}


def _encode(value: Mapping[str, Any], struct: _Struct) -> dict[str, Any]:
    slots = struct.slots
    result: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    last = -1
    ordered = True
    for name, found in value.items():
        slot = slots.get(name)
        if slot is None:
            if struct.keeps_unknown:
                unknown[name] = found
            continue
        rank, write, skips_empty = slot[:3]
        if found is None or (skips_empty and not found):
            if found in ([], {}) and slot.replaced:
                result[name] = None
            continue
        ordered = ordered and rank > last
        last = rank
        made = found if write is None else write(found)
        result[name] = Whole(made) if slot.replaced and isinstance(made, dict) else made
    for name, unset in struct.always:
        if name not in result:
            write = slots[name].write
            result[name] = write({}) if unset is _STRUCT and write is not None else unset
            ordered = ordered and slots[name].rank > last
            last = slots[name].rank
    if not ordered:
        result = dict(sorted(result.items(), key=lambda item: slots[item[0]].rank))
    made = {**result, **unknown}
    return Whole(made) if struct.replaced else made


@cache
def _struct(name: str, stored: bool, filled: bool = False) -> _Struct:
    defaults = _DEFAULTS.get(name, {}) if filled else {}
    slots = {field.name: _slot(rank, field, stored, filled) for rank, field in enumerate(_fields(name))}
    always = {name: slot.unset for name, slot in slots.items() if slot.unset is not _LEFT_OUT}
    return _Struct(slots, tuple({**always, **defaults}.items()), filled, filled and message(name).is_replaced)


def _fields(name: str) -> list[Field]:
    return [each for field in message(name).fields for each in (_fields(field.kind) if field.inline else [field])]


def _slot(rank: int, field: Field, stored: bool, filled: bool) -> _Slot:
    write = _writer(field.kind, stored, filled)
    if field.omit_empty or (stored and field.name in _NEVER_NULL):
        null = _LEFT_OUT
    else:
        null = None
    if field.shape != "one":
        if write is not None:
            write = partial(_encode_items if field.shape == "list" else _encode_values, write)
        return _Slot(rank, write, field.omit_empty or stored, null, filled and not field.merged)
    if field.nilable:
        return _Slot(rank, write, not field.pointer and (field.omit_empty or stored), null)
    if field.kind[0] == "@" or field.kind not in _ZEROS:
        unset = _ZEROS.get(field.kind) if field.kind[0] == "@" else _STRUCT
        return _Slot(rank, write, False, _LEFT_OUT if field.omit_zero else unset)
    return _Slot(rank, None, field.omit_empty, _LEFT_OUT if field.omit_empty else _ZEROS[field.kind])


def _writer(kind: str, stored: bool, filled: bool) -> Writer | None:
    """Return the function that encodes values of a kind; None if they are written unchanged."""
    if filled and kind == "@Quantity":
        return _canonical
    if "." not in kind or kind == _MANAGED_FIELDS or message(kind).is_list:
        return None
    if kind.startswith(_SCHEMA_OR):
        # Only the schema, of the alternatives, is a mapping.
        kind = kind.partition("Or")[0]
    if kind == _CLAIM:
        implied = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} if filled else {}
        return lambda value: implied | _type_fields(value) | _encode(value, _struct(kind, stored, filled))
    return lambda value: _encode(value, _struct(kind, stored, filled)) if isinstance(value, dict) else value


def _canonical(value: Any) -> Any:
    try:
        made = canonical(str(value))
    except QuantityError:  # the server says what is wrong with it
        return value
    # Some kinds round what is below a thousandth, and limits differ.
    return value if made[-1] in "nu" or "e-" in made or len(made) > 15 else made


def _type_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: obj[name] for name in ("kind", "apiVersion") if obj.get(name)}


def _encode_items(write: Writer, values: Any) -> Any:
    if not isinstance(values, list):
        return values
    return [write({} if value is None else value) for value in values]


def _encode_values(write: Writer, values: Any) -> Any:
    if isinstance(values, dict):
        return {key: write(value) for key, value in values.items()}
    return values


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
        merged: whether server-side apply merges the list, by keys or as a set, or the map.
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
    merged: bool


@dataclass(frozen=True, slots=True)
class Message:
    """The layout of a message.

    Attributes:
        is_list: whether JSON has the list that is its only field instead of an object.
        is_replaced: whether server-side apply replaces it, instead of merging its fields.
    """

    fields: tuple[Field, ...]
    is_list: bool = False
    is_replaced: bool = False


def is_builtin(obj: Mapping[str, Any]) -> bool:
    """Return whether the kind of an object is one of these. `obj` has `kind` and `apiVersion`."""
    return bool(message_name(obj["apiVersion"], obj["kind"]))


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
    fields = tuple(_field(part, package) for part in text.removeprefix("=").split("; ") if part)
    return Message(fields, is_replaced=text.startswith("="))


def _field(text: str, package: str) -> Field:
    number, name, kind = text.split(" ", 2)
    shape: Literal["one", "list", "map"] = "one"
    pointer = kind.startswith("*")
    if pointer:
        kind = kind[1:]
    elif kind.startswith("[]"):
        shape = "list"
        kind = kind[2:]
    elif kind.startswith("map "):
        shape = "map"
        kind = kind[4:]
    if kind not in _NUMBERS and kind not in ("string", "bytes") and kind[0] != "@" and "." not in kind:
        kind = f"{package}.{kind}"
    return Field(
        number=int(number),
        name=name.rstrip("?!&"),
        kind=kind,
        shape=shape,
        pointer=pointer,
        nilable=pointer or kind == "bytes" or _recorded()["messages"].get(kind, "").startswith("[]"),
        omit_empty="?" in name,
        omit_zero="!" in name,
        inline=name[0] == "~",
        merged="&" in name,
    )


@cache
def _kinds() -> Mapping[str, Mapping[str, str]]:
    return {
        version: {kind: package for package, kinds in packages.items() for kind in kinds.split()}
        for version, packages in _recorded()["kinds"].items()
    }


@cache
def _recorded() -> Mapping[str, Any]:
    text = resources.files(__package__ or "").joinpath("protobuf.json").read_text("utf-8")
    recorded: dict[str, Any] = json.loads(text)
    return recorded
