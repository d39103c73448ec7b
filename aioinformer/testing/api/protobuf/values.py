"""Conversion of single protobuf values to JSON.

Kinds with an `@` are messages with their own JSON form. An absent message counts as an empty one, which is the zero
value of the type.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.protobuf.wire import ProtobufError, chunks, join_chunks, numbers, signed, split

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.api.protobuf.wire import Occurrences

_EPOCH = datetime(1970, 1, 1)
_ZERO_TIME = -62_135_596_800
_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_LARGEST_PLAIN_DOUBLE = 1e21


def text(value: bytes) -> str:
    """Decode a string; invalid UTF-8 is replaced."""
    return value.decode("utf-8", "replace")


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _double(value: int) -> float | int:
    (number,) = struct.unpack("<d", value.to_bytes(8, "little"))
    if not math.isfinite(number):
        raise ProtobufError(f"json: unsupported value: {number}")
    return int(number) if number.is_integer() and abs(number) < _LARGEST_PLAIN_DOUBLE else float(number)


def _time(data: bytes) -> str | None:
    seconds, _ = _timestamp(data)
    return None if seconds == _ZERO_TIME else f"{_moment(seconds, 0).isoformat(timespec='seconds')}Z"


def _micro_time(data: bytes) -> str | None:
    seconds, nanoseconds = _timestamp(data)
    microseconds = int(nanoseconds / 1000)
    if seconds == _ZERO_TIME and not microseconds:
        return None
    return f"{_moment(seconds, microseconds).isoformat(timespec='microseconds')}Z"


def _timestamp(data: bytes) -> tuple[int, int]:
    if not data:
        return _ZERO_TIME, 0
    fields = split(data, "Timestamp")
    return _integer(fields.get(1, ()), "Seconds"), signed(_integer(fields.get(2, ()), "Nanos"), 32)


def _moment(seconds: int, microseconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError:
        raise ProtobufError("year outside of range [0,9999]") from None


def _quantity(data: bytes) -> str:
    sent = chunks(split(data, "Quantity").get(1, ()), "String_")
    if not sent:
        return "0"
    quantity = text(sent[-1])
    if not _QUANTITY.fullmatch(quantity):
        raise ProtobufError(_QUANTITY_TEXT)
    return quantity


def _int_or_string(data: bytes) -> int | str:
    fields = split(data, "IntOrString")
    kind = _integer(fields.get(1, ()), "Type")
    number = signed(_integer(fields.get(2, ()), "IntVal"), 32)
    string = text(join_chunks(fields.get(3, ())[-1:], "StrVal"))
    if kind not in (0, 1):
        raise ProtobufError("impossible IntOrString.Type")
    return string if kind else number


def _raw_json(data: bytes) -> Any:
    raw = join_chunks(split(data, "RawExtension").get(1, ())[-1:], "Raw")
    if not raw:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise ProtobufError("failed to parse raw bytes as JSON") from None


def _integer(occurrences: Occurrences, name: str) -> int:
    sent = numbers(occurrences, name)
    return signed(sent[-1], 64) if sent else 0


NUMBERS: Mapping[str, Callable[[int], Any]] = {
    "bool": bool,
    "double": _double,
    "int32": lambda value: signed(value, 32),
    "int64": lambda value: signed(value, 64),
}
TEXTS: Mapping[str, Callable[[bytes], str]] = {"string": text, "bytes": _bytes}
SPECIAL: Mapping[str, Callable[[bytes], Any]] = {
    "@IntOrString": _int_or_string,
    "@JSON": _raw_json,
    "@MicroTime": _micro_time,
    "@Quantity": _quantity,
    "@Time": _time,
}
