"""Decoding of requests in protobuf, which kubectl and client-go send for built-in kinds. Responses are always JSON.

A body has four magic bytes and an envelope with the API version, the kind and the message of that kind. The result
has what was on the wire; `go_structs` gives it the form of its struct. Unknown field numbers are skipped. If a field
that is not a list occurs twice, the last one counts; messages are merged.

Bodies are untrusted: decoding returns an object or raises `ProtobufError`. The nesting depth is bounded, and so is the
number of messages, as many tiny messages become much JSON.
"""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from aioinformer.resources.catalog.go_structs import go_json, message, message_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.resources.catalog.go_structs import Field

    _Values = Sequence[int | bytes]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_MOST_LEVELS = 100
_MOST_MESSAGES = 100_000
_LONGEST_VARINT = 10
_EPOCH = datetime(1970, 1, 1)
_ZERO_TIME = -62_135_596_800
# Wire types with a fixed size.
_SIZES = {1: 8, 5: 4}


class ProtobufError(ValueError):
    """Invalid protobuf data, or a kind without a protobuf form."""


def decode_protobuf(body: bytes, *, api_version: str = "", kind: str = "") -> dict[str, Any]:
    """Decode an object.

    Args:
        body: with the magic bytes and the envelope.
        api_version: used if the envelope has none.
        kind: used if the envelope has none.

    Returns:
        The object in JSON form, `kind` and `apiVersion` first.

    Raises:
        ProtobufError: the body is malformed, or its kind has no protobuf form.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("this is not an object of Kubernetes in protobuf: it must begin with 'k8s' and a zero byte")
    envelope = _split(body[len(_MAGIC) :])
    names = _split(_joined(envelope.get(1, ())))
    api_version = _text(_joined(names.get(1, ())[-1:])) or api_version
    kind = _text(_joined(names.get(2, ())[-1:])) or kind
    name = message_name(api_version, kind)
    if not name:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    try:
        fields: dict[str, Any] = _Reader().read(_joined(envelope.get(2, ())[-1:]), name)
    except (OverflowError, RecursionError, UnicodeError) as error:
        raise ProtobufError(f"a value is out of range: {error}") from None
    # Clients send the zero values of fields that JSON leaves out.
    return dict(go_json({"kind": kind, "apiVersion": api_version} | fields))


class _Reader:
    """Reads one object."""

    def __init__(self) -> None:
        self._remaining = _MOST_MESSAGES

    def read(self, data: bytes, name: str, depth: int = 1) -> Any:
        """Return a message in JSON form."""
        self._remaining -= 1
        if self._remaining < 0 or depth > _MOST_LEVELS:
            raise ProtobufError("there are too many messages, or they are nested too deeply")
        layout = message(name)
        sent = _split(data)
        if layout.is_list:
            return self._list(layout.fields[0], sent.get(1, ()), depth)
        result: dict[str, Any] = {}
        for field in layout.fields:
            values = sent.get(field.number, ())
            if field.inline:
                result |= self.read(_joined(values), field.kind, depth + 1)
            elif field.shape == "list" and values:
                result[field.name] = self._list(field, values, depth)
            elif field.shape == "map" and values:
                entries = [_split(_joined([each])) for each in values]
                found = {
                    _text(_joined(each.get(1, ()))): self._one(field.kind, each.get(2, ()), depth) for each in entries
                }
                result[field.name] = dict(sorted(found.items()))
            elif values:
                result[field.name] = self._one(field.kind, values, depth)
        return result

    def _list(self, field: Field, values: _Values, depth: int) -> list[Any]:
        if field.kind in _NUMBERS:
            values = [number for each in values for number in (_varints(each) if isinstance(each, bytes) else [each])]
        return [self._one(field.kind, [each], depth) for each in values]

    def _one(self, kind: str, values: _Values, depth: int) -> Any:
        if kind in _NUMBERS:
            number = values[-1] if values else 0
            if isinstance(number, bytes):
                raise ProtobufError("a number has a length")
            return _NUMBERS[kind](number)
        if kind in _TEXTS:
            return _TEXTS[kind](_joined(values[-1:]))
        data = _joined(values)
        return _SPECIAL[kind](data) if kind in _SPECIAL else self.read(data, kind, depth + 1)


def _split(data: bytes) -> dict[int, list[int | bytes]]:
    """Return the values of a message by field number: unsigned integers, or bytes if they have a length."""
    sent: dict[int, list[int | bytes]] = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number = key >> 3
        wire_type = key & 7
        value: int | bytes
        if wire_type == 0:
            value, position = _varint(data, position)
        elif wire_type == 2 or wire_type in _SIZES:
            size, position = _varint(data, position) if wire_type == 2 else (_SIZES[wire_type], position)
            chunk = data[position : position + size]
            if len(chunk) < size:
                raise ProtobufError("the data end within a value")
            value = chunk if wire_type == 2 else int.from_bytes(chunk, "little")
            position += size
        else:
            raise ProtobufError(f"the wire type {wire_type} is not supported")
        sent.setdefault(number, []).append(value)
    return sent


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[position : position + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + index + 1
    raise ProtobufError("a number is too long, or the data end within it")


def _varints(data: bytes) -> list[int]:
    found = []
    position = 0
    while position < len(data):
        number, position = _varint(data, position)
        found.append(number)
    return found


def _joined(values: _Values) -> bytes:
    """Return the bytes of a field; concatenated messages are merged."""
    if not all(isinstance(each, bytes) for each in values):
        raise ProtobufError("a value has no length")
    return b"".join(each for each in values if isinstance(each, bytes))


def _signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _double(value: int) -> float | int:
    number: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    return int(number) if number.is_integer() else number


def _number(values: _Values) -> int:
    return next((each for each in reversed(values) if isinstance(each, int)), 0)


def _moment(data: bytes) -> tuple[datetime, bool]:
    """Return a time, and whether it is set."""
    fields = _split(data)
    seconds = _signed(_number(fields.get(1, ()))) if data else _ZERO_TIME
    if seconds == _ZERO_TIME:
        return _EPOCH, False
    return _EPOCH + timedelta(seconds=seconds, microseconds=_signed(_number(fields.get(2, ())), 32) // 1000), True


def _time(data: bytes) -> str | None:
    moment, is_set = _moment(data)
    return f"{moment.isoformat(timespec='seconds')}Z" if is_set else None


def _micro_time(data: bytes) -> str | None:
    moment, is_set = _moment(data)
    return f"{moment.isoformat(timespec='microseconds')}Z" if is_set else None


def _int_or_string(data: bytes) -> int | str:
    fields = _split(data)
    is_text = bool(_number(fields.get(1, ())))
    if is_text:
        return _text(_joined(fields.get(3, ())[-1:]))
    return _signed(_number(fields.get(2, ())), 32)


def _raw_json(data: bytes) -> Any:
    raw = _joined(_split(data).get(1, ())[-1:])
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        raise ProtobufError("a value is not JSON") from None


_NUMBERS: Mapping[str, Callable[[int], Any]] = {
    "bool": bool,
    "double": _double,
    "int32": lambda value: _signed(value, 32),
    "int64": _signed,
}
_TEXTS: Mapping[str, Callable[[bytes], str]] = {
    "string": _text,
    "bytes": lambda value: base64.b64encode(value).decode(),
}
_SPECIAL: Mapping[str, Callable[[bytes], Any]] = {
    "@IntOrString": _int_or_string,
    "@JSON": _raw_json,
    "@MicroTime": _micro_time,
    "@Quantity": lambda data: _text(_joined(_split(data).get(1, ())[-1:])) or "0",
    "@Time": _time,
}
