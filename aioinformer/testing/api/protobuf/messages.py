"""Decoding of Kubernetes objects from protobuf into their JSON form.

A body has four magic bytes and an envelope with the API version, the kind and the message of that kind. The result is
what Go's structs become in JSON, so that an object is the same in either format:

- A pointer field is absent or set, perhaps to zero. Other fields cannot be absent: clients send the zero value, and
  JSON leaves it out, unless the field is a struct (`status: {}`) or required (`name: ""`).
- Empty and absent lists and maps are the same on the wire. In JSON, they are absent, or null if required.
- Fields come in the order of Go's structs, map keys are sorted, unknown field numbers are skipped.
- If a field that is not a list occurs twice, the last one counts; messages are merged.

Bodies are untrusted: decoding returns an object or raises `ProtobufError`. The nesting depth is bounded, and so is the
number of messages, as many tiny messages become much JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.protobuf.schema import message, message_name
from aioinformer.testing.api.protobuf.values import NUMBERS, SPECIAL, TEXTS, text
from aioinformer.testing.api.protobuf.wire import ProtobufError, chunks, join_chunks, numbers, split

if TYPE_CHECKING:
    from aioinformer.testing.api.protobuf.schema import Field
    from aioinformer.testing.api.protobuf.wire import Occurrences

__all__ = ["MEDIA_TYPE", "ProtobufError", "decode_protobuf"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_MOST_LEVELS = 100
# Go types with their own JSON form: two fields, of which the second is written if the first is unset.
_ALTERNATIVES = {
    "apiextensions/v1.JSONSchemaPropsOrArray": ("jSONSchemas", "schema"),
    "apiextensions/v1.JSONSchemaPropsOrBool": ("schema", "allows"),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ("property", "schema"),
}


def decode_protobuf(
    body: bytes, *, api_version: str = "", kind: str = "", most_messages: int = 100_000
) -> dict[str, Any]:
    """Decode an object.

    Args:
        body: with the magic bytes and the envelope.
        api_version: used if the envelope has none.
        kind: used if the envelope has none.
        most_messages: the largest number of nested messages, including absent ones that JSON has.

    Returns:
        The object in JSON form, `kind` and `apiVersion` first.

    Raises:
        ProtobufError: the body is malformed, or its kind has no protobuf form. The message is the API server's.
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
    names = split(join_chunks(envelope.get(1, ()), "TypeMeta"), "TypeMeta")
    raw = join_chunks(envelope.get(2, ())[-1:], "Raw")
    api_version = text(join_chunks(names.get(1, ())[-1:], "APIVersion")) or api_version
    kind = text(join_chunks(names.get(2, ())[-1:], "Kind")) or kind
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
        self._remaining = most_messages

    def read(self, data: bytes, name: str, depth: int = 1) -> Any:
        self._remaining -= 1
        if self._remaining < 0:
            raise ProtobufError("proto: too many messages")
        if depth > _MOST_LEVELS:
            raise ProtobufError("proto: messages are nested too deeply")
        layout, sent = message(name), split(data, name.rpartition(".")[2])
        if layout.is_list:
            return self._list(layout.fields[0], sent.get(1, ()), depth)
        result: dict[str, Any] = {}
        for field in layout.fields:
            occurrences = sent.get(field.number, ())
            if field.inline:
                result |= self.read(join_chunks(occurrences, _go_name(field)), field.kind, depth + 1)
                continue
            value, is_omitted = self._field(field, occurrences, depth)
            if not is_omitted:
                result[field.name] = value
        if name in _ALTERNATIVES:
            first, second = _ALTERNATIVES[name]
            return result[second] if result[first] is None else result[first]
        return result

    def _field(self, field: Field, occurrences: Occurrences, depth: int) -> tuple[Any, bool]:
        """Return a value, and whether JSON leaves it out."""
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
            value = TEXTS[field.kind](join_chunks(occurrences[-1:], _go_name(field)))
            return value, field.omit_empty and not field.pointer and not value
        value = self._struct(join_chunks(occurrences, _go_name(field)), field.kind, depth)
        return value, field.omit_zero and value is None

    def _list(self, field: Field, occurrences: Occurrences, depth: int) -> list[Any]:
        if field.kind in NUMBERS:
            sent = numbers(occurrences, _go_name(field), field.wire_type, packed=True)
            return [NUMBERS[field.kind](number) for number in sent]
        if field.kind not in TEXTS and len(occurrences) > self._remaining:
            raise ProtobufError("proto: too many messages")
        return [self._value(chunk, field.kind, depth) for chunk in chunks(occurrences, _go_name(field))]

    def _map(self, field: Field, occurrences: Occurrences, depth: int) -> dict[str, Any]:
        entries, name = {}, _go_name(field)
        for chunk in chunks(occurrences, name):
            entry = split(chunk, name)
            key = text(join_chunks(entry.get(1, ())[-1:], name))
            entries[key] = self._value(join_chunks(entry.get(2, ())[-1:], name), field.kind, depth)
        return dict(sorted(entries.items()))

    def _value(self, chunk: bytes, kind: str, depth: int) -> Any:
        return TEXTS[kind](chunk) if kind in TEXTS else self._struct(chunk, kind, depth)

    def _struct(self, data: bytes, kind: str, depth: int) -> Any:
        return SPECIAL[kind](data) if kind in SPECIAL else self.read(data, kind, depth + 1)


def _go_name(field: Field) -> str:
    if field.name == "metadata":
        return field.kind.rpartition(".")[2]
    return f"{field.name[:1].upper()}{field.name[1:]}"
