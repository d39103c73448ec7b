"""Request bodies in Kubernetes' protobuf form, which kubectl sends for the kinds that it knows (`kubectl create`).

Only reading is here: every client that sends this form also accepts JSON.

The form is four magic bytes and an envelope (`runtime.Unknown`) that names the kind and holds the message. Messages are
laid out as their Go types are: a pointer that is nil is not sent, every other field is, zeros included. So whether a
zero was meant is known from the type alone, and the layouts that were recorded from it say which fields are pointers.
What comes out is the JSON that the same client would have sent.
"""

from __future__ import annotations

import base64
import json
import lzma
import struct
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_BYTES = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode_protobuf(body: bytes) -> dict[str, Any]:
    """Reads a request body.

    Returns:
        The object in JSON form, with `apiVersion` and `kind`.

    Raises:
        ValueError: the body is not of this form, ends early, or is of a kind that has no protobuf form.
    """
    if not body.startswith(_MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    names = dict(_fields(envelope.get(1, b"")))
    api_version, kind = (names.get(number, b"").decode() for number in (1, 2))
    # Options are sent in the version of the resource they are for, or in a version of their own.
    message = next((name for name in (f"{api_version}.{kind}", f"meta.k8s.io/v1.{kind}") if name in _layouts()), None)
    if message is None:
        raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version} | _message(envelope.get(2, b""), message)


def _message(data: bytes, name: str) -> dict[str, Any]:
    layout, result = _layouts().get(name, {}), dict[str, Any]()
    for number, raw in _fields(data):
        if number not in layout:
            continue
        field, kind, flags = layout[number]
        if "i" in flags:
            result |= _message(raw, kind)
        elif "r" in flags:
            result.setdefault(field, []).append(_value(raw, kind))
        elif "m" in flags:
            entry = dict(_fields(raw))
            result.setdefault(field, {})[entry.get(1, b"").decode()] = _value(entry.get(2, b""), kind)
        else:
            value = _value(raw, kind)
            is_unset = value is None or (value in ("", 0) and "o" in flags and "p" not in flags)
            if not is_unset:
                result[field] = value
    return result


def _value(raw: Any, kind: str) -> Any:
    convert = _SCALARS.get(kind)
    if convert is not None:
        return convert(raw)
    if kind.startswith("list:"):
        return [_value(item, kind.removeprefix("list:")) for _, item in _fields(raw)]
    return _message(raw, kind)


def _integer(raw: Any) -> int:
    value = int(raw or 0)
    return value - (1 << 64) if value >> 63 else value


def _double(raw: Any) -> float:
    (value,) = struct.unpack("<d", raw.to_bytes(8, "little"))
    return float(value)


def _quantity(raw: bytes) -> str:
    return dict(_fields(raw)).get(1, b"0").decode() or "0"


def _int_or_string(raw: bytes) -> int | str:
    parts = dict(_fields(raw))
    return parts.get(3, b"").decode() if parts.get(1) else _integer(parts.get(2))


def _raw_json(raw: bytes) -> Any:
    text = dict(_fields(raw)).get(1, b"")
    return json.loads(text) if text else None


def _time(raw: bytes, *, micro: bool = False) -> str | None:
    parts = dict(_fields(raw))
    if not parts:
        return None
    moment = _EPOCH + timedelta(seconds=_integer(parts.get(1)), microseconds=_integer(parts.get(2)) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "string": lambda raw: bytes(raw).decode(),
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "bool": bool,
    "int": _integer,
    "double": _double,
    "intstr.IntOrString": _int_or_string,
    "meta.k8s.io/v1.FieldsV1": _raw_json,
    "meta.k8s.io/v1.MicroTime": lambda raw: _time(raw, micro=True),
    "meta.k8s.io/v1.Time": _time,
    "resource.Quantity": _quantity,
    "runtime.RawExtension": _raw_json,
}


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and undecoded values of a message, in the order in which they were sent."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        match key & 7:
            case 0:
                value, position = _varint(data, position)
                yield key >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, position = _varint(data, position)
            case 5:
                size = 4
            case other:
                raise ValueError(f"proto: illegal wireType {other}")
        chunk = data[position : position + size]
        if len(chunk) < size:
            raise ValueError("unexpected EOF")
        position += size
        yield key >> 3, chunk if key & 7 == _BYTES else int.from_bytes(chunk, "little")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("unexpected EOF")


@cache
def _layouts() -> Mapping[str, Mapping[int, tuple[str, str, str]]]:
    packed = resources.files("aioinformer.testing").joinpath("data/protobuf.json.xz").read_bytes()
    recorded = json.loads(lzma.decompress(packed))
    return {
        name: {int(number): (field, kind, flags) for number, (field, kind, flags) in fields.items()}
        for name, fields in recorded.items()
    }
