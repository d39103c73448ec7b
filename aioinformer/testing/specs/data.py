"""What config maps and secrets may hold, and what may not be changed about them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.specs.parts import formed, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LARGEST = 1024 * 1024
_LONGEST_KEY = 253
_KEY = "[-._a-zA-Z0-9]+"


def config_map(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    fields = ("data", "binaryData")
    yield from _unchanged(obj, old, fields)
    # The field has no name, and that is how the API writes it.
    yield from _data(obj, fields, "[]")


def secret(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    yield from _unchanged(obj, old, ("data",))
    if old is not None and obj.get("type", "Opaque") != old.get("type", "Opaque"):
        yield Cause.invalid("type", shown(obj.get("type", "")), "field is immutable")
    yield from _data(obj, ("data",), "data")


def _unchanged(obj: Mapping[str, Any], old: Mapping[str, Any] | None, fields: Sequence[str]) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    for name in ("immutable", *fields):
        if (obj.get(name) or None) != (old.get(name) or None):
            yield Cause.forbidden(name, "field is immutable when `immutable` is set")


def _data(obj: Mapping[str, Any], fields: Sequence[str], named: str) -> Iterator[Cause]:
    for field in fields:
        for key in obj.get(field) or ():
            yield from formed(key, f"{field}[{key}]", key_faults)
    if sum(len(each.encode()) for field in fields for each in (obj.get(field) or {}).values()) > _LARGEST:
        yield Cause("FieldValueTooLong", named, f"Too long: may not be more than {_LARGEST} bytes")


def key_faults(key: str) -> list[str]:
    """What is wrong with a key of a config map or a secret."""
    faults = [f"must be no more than {_LONGEST_KEY} characters"] if len(key) > _LONGEST_KEY else []
    if not re.fullmatch(_KEY, key):
        what = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
        faults.append(f"{what} {examples} '{_KEY}')")
    if key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults
