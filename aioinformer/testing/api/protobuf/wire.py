"""Protobuf's wire format, without knowledge of message types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from aioinformer.testing.api.protobuf.schema import CHUNK, FIXED64, VARINT

_GROUP, _GROUP_END, _FIXED32 = 3, 4, 5
_LARGEST_FIELD = (1 << 29) - 1

Occurrences = Sequence[tuple[int, int | bytes]]
Sent = dict[int, list[tuple[int, int | bytes]]]


class ProtobufError(ValueError):
    """Invalid protobuf data.

    Attributes:
        api_version: from the envelope; "" if it could not be read.
        kind: from the envelope; "" if it could not be read.
    """

    def __init__(self, reason: str, api_version: str = "", kind: str = "") -> None:
        super().__init__(reason)
        self.api_version = api_version
        self.kind = kind


def split(data: bytes, name: str) -> Sent:
    """Return the fields of a message by number, with wire type and value of each occurrence in order.

    Values are unsigned integers, or bytes if they have a length. Groups, which no known message has, get the value 0.

    Args:
        data: the message.
        name: of the message, for errors.

    Raises:
        ProtobufError: the data is not a message.
    """
    sent: Sent = {}
    position = 0
    value: int | bytes
    while position < len(data):
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _GROUP_END:
            raise ProtobufError(f"proto: {name}: wiretype end group for non-group")
        if not 0 < number <= _LARGEST_FIELD:
            raise ProtobufError(f"proto: {name}: illegal tag {number} (wire type {key})")
        if wire_type == _GROUP:
            value, position = 0, _after_group(data, position)
        else:
            value, position = _value(data, position, wire_type)
        sent.setdefault(number, []).append((wire_type, value))
    return sent


def signed(value: int, bits: Literal[32, 64]) -> int:
    """Convert an unsigned integer to a signed one (two's complement)."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def chunks(occurrences: Occurrences, name: str) -> list[bytes]:
    """Return the values of a field with a length.

    Raises:
        ProtobufError: a value has another wire type.
    """
    found = []
    for wire_type, value in occurrences:
        if wire_type != CHUNK or isinstance(value, int):
            raise _wrong_type(wire_type, name)
        found.append(value)
    return found


def join_chunks(occurrences: Occurrences, name: str) -> bytes:
    """Join the values of a field. Concatenated messages are merged.

    Raises:
        ProtobufError: a value has another wire type.
    """
    return b"".join(chunks(occurrences, name))


def numbers(occurrences: Occurrences, name: str, wire_type: int = VARINT, *, packed: bool = False) -> list[int]:
    """Return the unsigned values of a field without a length.

    Args:
        occurrences: of the field.
        name: of the field, for errors.
        wire_type: the required wire type.
        packed: whether varints may also be packed into one chunk.

    Raises:
        ProtobufError: a value has another wire type.
    """
    found: list[int] = []
    for sent_type, value in occurrences:
        if isinstance(value, int) and sent_type == wire_type:
            found.append(value)
        elif isinstance(value, bytes) and packed:
            position = 0
            while position < len(value):
                number, position = _varint(value, position)
                found.append(number)
        else:
            raise _wrong_type(sent_type, name)
    return found


def _wrong_type(wire_type: int, name: str) -> ProtobufError:
    return ProtobufError(f"proto: wrong wireType = {wire_type} for field {name}")


def _value(data: bytes, position: int, wire_type: int) -> tuple[int | bytes, int]:
    if wire_type == VARINT:
        return _varint(data, position)
    if wire_type == CHUNK:
        size, position = _varint(data, position)
        if size >> 63:
            raise ProtobufError("proto: negative length found during unmarshaling")
    elif wire_type == FIXED64:
        size = 8
    elif wire_type == _FIXED32:
        size = 4
    else:
        raise ProtobufError(f"proto: illegal wireType {wire_type}")
    chunk = data[position : position + size]
    if len(chunk) < size:
        raise ProtobufError("unexpected EOF")
    return chunk if wire_type == CHUNK else int.from_bytes(chunk, "little"), position + size


def _after_group(data: bytes, position: int) -> int:
    depth = 1
    while depth:
        key, position = _varint(data, position)
        if key & 7 == _GROUP_END:
            depth -= 1
        elif key & 7 == _GROUP:
            depth += 1
        else:
            _, position = _value(data, position, key & 7)
    return position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise ProtobufError("proto: integer overflow")
