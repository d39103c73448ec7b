"""Kubernetes objects in protobuf, as kubectl sends those of the kinds that it knows, into their JSON form.

A body is four magic bytes and an envelope, which names API version and kind and holds the message of that kind. What
becomes of the message is what Go's structs become in JSON, so that an object is the same in whichever form it came:

- A field that is a pointer is absent, or was set, to a zero perhaps. Any other has no absence: clients send its zero,
  and JSON leaves it out, unless it is a struct (`status: {}`) or a field that JSON always has (`name: ""`).
- An empty list or map and none at all are the same on the wire, and to JSON: absent, or null for a field that it
  always has.
- Fields come in the order of Go's structs, keys of maps are sorted, fields of unknown number are skipped.
- A field that is not a list and comes twice counts as the last one; messages are merged.

Bodies come from anybody. Whatever they hold, either there is an object, or a `ProtobufError`: messages nest not deeper
than objects do that somebody means, and many tiny messages, each of which becomes much JSON, are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.protobuf.schema import message, message_name
from aioinformer.testing.api.protobuf.values import NUMBERS, SPECIAL, TEXTS, text
from aioinformer.testing.api.protobuf.wire import ProtobufError, chunks, joined, numbers, split

if TYPE_CHECKING:
    from aioinformer.testing.api.protobuf.schema import Field
    from aioinformer.testing.api.protobuf.wire import Occurrences

__all__ = ["MEDIA_TYPE", "ProtobufError", "decode_protobuf"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_DEEPEST = 100
# Go's structs that are written as one of their fields: the one, and the one that stands in for it.
_CHOICES = {
    "apiextensions/v1.JSONSchemaPropsOrArray": ("jSONSchemas", "schema"),
    "apiextensions/v1.JSONSchemaPropsOrBool": ("schema", "allows"),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ("property", "schema"),
}


def decode_protobuf(
    body: bytes, *, api_version: str = "", kind: str = "", most_messages: int = 100_000
) -> dict[str, Any]:
    """Reads an object.

    Args:
        body: with the magic bytes and the envelope.
        api_version: what it is if the envelope does not say.
        kind: likewise.
        most_messages: the number of nested messages, absent ones that JSON has included, above which it is refused.

    Returns:
        The object in JSON form, `kind` and `apiVersion` first.

    Raises:
        ProtobufError: the body is not of this form, or of a kind that has none. It says what the API server would.
    """
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(_MAGIC):
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix [{' '.join(map(str, _MAGIC))}]"
        )
    if body == _MAGIC:
        raise ProtobufError("empty body")
    envelope = split(body[len(_MAGIC) :], "Unknown")
    names = split(joined(envelope.get(1, ()), "TypeMeta"), "TypeMeta")
    raw = joined(envelope.get(2, ())[-1:], "Raw")
    api_version = text(joined(names.get(1, ())[-1:], "APIVersion")) or api_version
    kind = text(joined(names.get(2, ())[-1:], "Kind")) or kind
    name = message_name(api_version, kind)
    if not name:
        scheme = "pkg/runtime/scheme.go:111"
        reason = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme}"'
        raise ProtobufError(reason, api_version, kind)
    try:
        fields: dict[str, Any] = _Reader(most_messages).read(raw, name)
    except ProtobufError as error:
        raise ProtobufError(str(error), api_version, kind) from None
    return {"kind": kind, "apiVersion": api_version} | fields


class _Reader:
    def __init__(self, most_messages: int) -> None:
        self._left = most_messages

    def read(self, data: bytes, name: str, depth: int = 1) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ProtobufError("proto: too many messages")
        if depth > _DEEPEST:
            raise ProtobufError("proto: messages are nested too deeply")
        layout, sent = message(name), split(data, name.rpartition(".")[2])
        if layout.is_list:
            return self._list(layout.fields[0], sent.get(1, ()), depth)
        result: dict[str, Any] = {}
        for field in layout.fields:
            occurrences = sent.get(field.number, ())
            if field.inline:
                result |= self.read(joined(occurrences, _go_name(field)), field.kind, depth + 1)
                continue
            value, is_omitted = self._field(field, occurrences, depth)
            if not is_omitted:
                result[field.name] = value
        if name in _CHOICES:
            first, second = _CHOICES[name]
            return result[second] if result[first] is None else result[first]
        return result

    def _field(self, field: Field, occurrences: Occurrences, depth: int) -> tuple[Any, bool]:
        """A value, and whether JSON leaves it out."""
        if field.shape == "list":
            items = self._list(field, occurrences, depth)
            return items or None, field.omit_empty and not items
        if field.shape == "map":
            entries = self._map(field, occurrences, depth)
            return entries or None, field.omit_empty and not entries
        if not occurrences and field.nilable:
            return None, field.omit_empty
        if field.kind in NUMBERS:
            sent = numbers(occurrences, _go_name(field), field.wire_type)
            number = NUMBERS[field.kind](sent[-1] if sent else 0)
            return number, field.omit_empty and not field.pointer and not number
        if field.kind in TEXTS:
            value = TEXTS[field.kind](joined(occurrences[-1:], _go_name(field)))
            return value, field.omit_empty and not field.pointer and not value
        value = self._struct(joined(occurrences, _go_name(field)), field.kind, depth)
        return value, field.omit_zero and value is None

    def _list(self, field: Field, occurrences: Occurrences, depth: int) -> list[Any]:
        if field.kind in NUMBERS:
            sent = numbers(occurrences, _go_name(field), field.wire_type, packed=True)
            return [NUMBERS[field.kind](number) for number in sent]
        if field.kind not in TEXTS and len(occurrences) > self._left:
            raise ProtobufError("proto: too many messages")
        return [self._value(chunk, field.kind, depth) for chunk in chunks(occurrences, _go_name(field))]

    def _map(self, field: Field, occurrences: Occurrences, depth: int) -> dict[str, Any]:
        entries, name = {}, _go_name(field)
        for chunk in chunks(occurrences, name):
            entry = split(chunk, name)
            key = text(joined(entry.get(1, ())[-1:], name))
            entries[key] = self._value(joined(entry.get(2, ())[-1:], name), field.kind, depth)
        return dict(sorted(entries.items()))

    def _value(self, chunk: bytes, kind: str, depth: int) -> Any:
        return TEXTS[kind](chunk) if kind in TEXTS else self._struct(chunk, kind, depth)

    def _struct(self, data: bytes, kind: str, depth: int) -> Any:
        return SPECIAL[kind](data) if kind in SPECIAL else self.read(data, kind, depth + 1)


def _go_name(field: Field) -> str:
    if field.name == "metadata":
        return field.kind.rpartition(".")[2]
    return f"{field.name[:1].upper()}{field.name[1:]}"
