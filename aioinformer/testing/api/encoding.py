"""Encode objects in the field order of the API, once per version.

Built-in kinds have the order of their Go structs: `kind`, `apiVersion`, `metadata` with its fixed order, then the rest;
items of lists have neither `kind` nor `apiVersion`. Custom resources are maps in the API: their keys are sorted at
every depth, and items of lists are complete. Clients depend on both orders: a reader must handle `items` before
`metadata`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.resources.catalog.go_structs import go_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART})+)")
_DURATION_PART = re.compile(r"([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST_DURATION = 2**63
_METADATA_ORDER = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip
_METADATA_RANK = {name: rank for rank, name in enumerate(_METADATA_ORDER)}
_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")
decode = msgspec.json.Decoder().decode
encode_plain = _encoder.encode
encode_sorted = _sorting_encoder.encode


def quote(value: Any) -> str:
    """Return a value as errors show it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_type(value: Any) -> str:
    """Return the JSON type of a decoded value, as errors name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def is_number(text: str, *, bits: int, signed: bool = False) -> bool:
    """Return whether a text is a decimal number of this size."""
    if not re.fullmatch("[+-]?[0-9]+" if signed else "[0-9]+", text):
        return False
    # Python refuses numbers of thousands of digits; they are out of range anyway.
    digits = text.lstrip("+-0")
    return len(digits) < bits and -(2**bits) * signed <= int(digits or 0) * (-1 if text[0] == "-" else 1) < 2**bits


def seconds(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        ValueError: it is malformed, or longer than 292 years.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{quote(text)} is not a duration such as 300ms or 1h30m")
    total = 0
    for number, unit in _DURATION_PART.findall(text):
        whole, _, fraction = number.partition(".")
        total += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
        if total >= _LONGEST_DURATION:
            raise ValueError(f"the duration {quote(text)} is too long")
    return (-total if text[0] == "-" else total) / 10**9


def encode_object(obj: Mapping[str, Any], *, custom: bool) -> bytes:
    """Return an object as the API writes it.

    Args:
        obj: with `kind`, `apiVersion` and `metadata`.
    """
    if custom:
        return encode_sorted(obj)
    return _encoder.encode(go_json(obj, stored=True))


def ordered_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    last = len(_METADATA_RANK)
    return dict(sorted(metadata.items(), key=lambda item: _METADATA_RANK.get(item[0], last)))


def with_version(body: bytes, old: int, new: int) -> bytes:
    """Return the same body under another resourceVersion."""
    stamp = b'"resourceVersion":"%d"' % old
    if body.count(stamp) == 1:
        return body.replace(stamp, b'"resourceVersion":"%d"' % new)
    obj = decode(body)
    obj["metadata"]["resourceVersion"] = str(new)
    return _encoder.encode(obj)


def partial_body(body: bytes, group_version: str = "meta.k8s.io/v1") -> bytes:
    """Return the object as `PartialObjectMetadata`."""
    metadata = ordered_metadata(decode(body)["metadata"])
    return _encoder.encode({"kind": "PartialObjectMetadata", "apiVersion": group_version, "metadata": metadata})


def pretty(body: bytes) -> bytes:
    """Indent by two, as the API does for `pretty=true`."""
    return msgspec.json.format(body, indent=2)
