"""Objects of built-in kinds as Go writes them: the API server reads them into structs, and writes JSON from those.

A struct has all of its fields, in its own order, whatever the client sent:

- An optional field that is zero is left out: an empty text, list or map, a 0, a false. What is zero and not optional
  is written: `"name":""`.
- A pointer is left out only if it is nil: a client that says `replicas: 0` has said something.
- A struct within a struct is always there, with what it always has: `"resources":{}`. So is a time: null, if unset.
- Lists and maps that are not optional are null where there are none. One that was sent empty stays so until it is
  stored; the store does not know the difference.

A kind that nothing is known of, and a value that does not fit its field, are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

from aioinformer.testing.api.protobuf.schema import Field, message, message_name

# Nobody but the server writes these, and in this form.
_OWN = "meta/v1.ManagedFieldsEntry"
_EITHER = "apiextensions/v1.JSONSchemaPropsOr"
# The one object within another, which says of what kind it is. In protobuf it does not.
_CLAIM = "core/v1.PersistentVolumeClaim"
Writer = Callable[[Any], Any]

_LEFT_OUT: Final = object()
_STRUCT: Final = object()
_ZEROS = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0, "@Quantity": "0", "@IntOrString": 0}
# Null in these is never stored: the API refuses it. Who leaves them out all the same finds nothing there.
_REFUSED_UNSET = frozenset({"containers", "selector", "versions"})


class _Slot(NamedTuple):
    """One field of a struct.

    Attributes:
        rank: its place among the fields.
        write: writes a value that is there; None for what is written as it is.
        skips_empty: whether an empty value is none at all.
        unset: what is written for none: `_LEFT_OUT`, `_STRUCT` for an empty struct, or the value.
    """

    rank: int
    write: Writer | None
    skips_empty: bool
    unset: Any


class _Struct(NamedTuple):
    """How a struct is written.

    Attributes:
        slots: its fields, by name.
        always: those that are written even if they are not set, with what is written.
    """

    slots: dict[str, _Slot]
    always: tuple[tuple[str, Any], ...]


def go_json(obj: Mapping[str, Any], *, stored: bool = False) -> Mapping[str, Any]:
    """An object as Go writes it; the argument is not changed.

    Args:
        obj: with `kind` and `apiVersion`.
        stored: whether it comes out of the store rather than from a client.
    """
    kind, api_version = obj["kind"], obj["apiVersion"]
    name = message_name(api_version, kind)
    if not name:
        return obj
    return {"kind": kind, "apiVersion": api_version} | _written(obj, _struct(name, stored))


def _written(value: Mapping[str, Any], struct: _Struct) -> dict[str, Any]:
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
    null = _LEFT_OUT if field.omit_empty or (stored and field.name in _REFUSED_UNSET) else None
    if field.shape != "one":
        if write is not None:
            write = partial(_each if field.shape == "list" else _each_value, write)
        return _Slot(rank, write, field.omit_empty or stored, null)
    if field.nilable:
        return _Slot(rank, write, not field.pointer and (field.omit_empty or stored), null)
    if field.kind[0] == "@" or field.kind not in _ZEROS:
        unset = _ZEROS.get(field.kind) if field.kind[0] == "@" else _STRUCT
        return _Slot(rank, write, False, _LEFT_OUT if field.omit_zero else unset)
    return _Slot(rank, None, field.omit_empty, _LEFT_OUT if field.omit_empty else _ZEROS[field.kind])


def _writer(kind: str, stored: bool) -> Writer | None:
    """Writes what is of this kind; None for what is written as it is."""
    if "." not in kind or kind == _OWN or message(kind).is_list:
        return None
    if kind.startswith(_EITHER):
        # Written as whichever of its fields is set: a schema is the only one that is a mapping.
        kind = kind.partition("Or")[0]
    if kind == _CLAIM:
        return lambda value: _named(value) | _written(value, _struct(kind, stored))
    return lambda value: _written(value, _struct(kind, stored)) if isinstance(value, dict) else value


def _named(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {name: obj[name] for name in ("kind", "apiVersion") if obj.get(name)}


def _each(write: Writer, values: Any) -> Any:
    return [write({} if value is None else value) for value in values] if isinstance(values, list) else values


def _each_value(write: Writer, values: Any) -> Any:
    return {key: write(value) for key, value in values.items()} if isinstance(values, dict) else values
