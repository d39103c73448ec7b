"""Built-in kinds as Go's JSON encoder writes them: the API server decodes them into structs and encodes those.

A struct has all its fields, in its own order, whatever the client sent:

- An optional field with a zero value is left out: an empty string, list or map, 0, false. A zero value of a required
  field is written: `"name":""`.
- A pointer is left out only if it is nil: `replicas: 0` is kept.
- A nested struct is always written, with its required fields: `"resources":{}`. So is a time: null if unset.
- Required lists and maps are null if they are unset. An empty one stays empty until it is stored; the storage does not
  keep the difference.

Unknown kinds, and values that do not fit their field, are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

from aioinformer.testing.api.protobuf.schema import Field, message, message_name

# Only the server writes these, and already in this form.
_MANAGED_FIELDS = "meta/v1.ManagedFieldsEntry"
_SCHEMA_OR = "apiextensions/v1.JSONSchemaPropsOr"
# The only embedded object with `kind` and `apiVersion`, which its protobuf form does not have.
_CLAIM = "core/v1.PersistentVolumeClaim"
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
        slots: its fields by name.
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
