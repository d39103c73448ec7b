"""The content of objects: whether two states differ, and where. The bytes of members are compared before their values.

A cached object is stored as the JSON that the server has sent. A comparison splits it into its members, and decodes
none of them while the bytes of the members are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from aioinformer.cache.objects.codec import encoded
from aioinformer.cache.objects.record import without_managed_fields
from aioinformer.cache.objects.views import View
from aioinformer.transport.json_scanner import is_heavy, members

#: The members of a JSON object or list, still encoded.
Members: TypeAlias = "dict[str, msgspec.Raw]"

#: Members of an object that say nothing about what is wanted of it. The type is absent in lists.
_UNWANTED: Final = ("status", "kind", "apiVersion")
#: Members of the metadata that change with each write.
_VERSIONS: Final = ("resourceVersion", "managedFields", "generation")

_INVALID = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_sorted = msgspec.json.Encoder(order="deterministic").encode


def json_of(obj: Any) -> bytes:
    """Return the JSON of an object of any form: of a model, the members that its class has.

    Raises:
        TypeError: the object has no JSON form.
    """
    return obj._record.json if isinstance(obj, View) else encoded(obj)


def split(raw: bytes) -> Members:
    """Return the members of the JSON of an object; without the managed fields if these can be skipped cheaply.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    shorter = without_managed_fields(raw)
    if shorter is not None:
        try:
            return _split(shorter)
        except _INVALID:
            pass  # the cut was not exactly the managed fields
    try:
        return _split(raw)
    except RecursionError:  # nested more deeply than the decoder can read
        return {name: msgspec.Raw(value) for name, value in members(raw).items()}


def same_content(old: Any, new: Any) -> bool:
    """Return whether two states of an object differ in nothing but the status and what each write changes.

    These members are ignored: `status`, and `resourceVersion`, `managedFields` and `generation` of the metadata.

    Raises:
        Exception: a state is not a JSON object.
    """
    found = _pair(old, new)
    if found is None:
        return bool(old == new)
    before, after = found
    for name in _UNWANTED:
        before.pop(name, None)
        after.pop(name, None)
    metadata = before.pop("metadata", None), after.pop("metadata", None)
    return _same_metadata(*metadata) and (before == after or _same_members(before, after))


def same_object(old: Any, new: Any) -> bool:
    """Return whether two states of an object differ in nothing but `resourceVersion` and `managedFields`.

    Other bytes of the same values count as a difference.

    Raises:
        Exception: a state is not a JSON object.
    """
    found = _pair(old, new)
    if found is None:
        return bool(old == new)
    before, after = found
    metadata = before.pop("metadata", None), after.pop("metadata", None)
    return before == after and _same_metadata(*metadata)


def _pair(old: Any, new: Any) -> tuple[Members, Members] | None:
    """Return the members of two states; None if their class has no JSON form."""
    try:
        return split(json_of(old)), split(json_of(new))
    except TypeError:
        return None


def _same_metadata(first: msgspec.Raw | None, second: msgspec.Raw | None) -> bool:
    if first is None or second is None:
        return first is second
    mine, theirs = _split(first), _split(second)
    for name in _VERSIONS:
        mine.pop(name, None)
        theirs.pop(name, None)
    return mine == theirs or _same_members(mine, theirs)


def _same_members(before: Members, after: Members) -> bool:
    return before.keys() == after.keys() and all(same_value(before[name], after[name]) for name in before)


def same_value(first: msgspec.Raw | None, second: msgspec.Raw | None) -> bool:
    """Return whether two encoded values are equal: first their bytes, then what they decode to."""
    if first is None or second is None:
        return first is second
    if first == second:
        return True
    if is_heavy(bytes(first)) or is_heavy(bytes(second)):  # decoding both could block the event loop
        return False
    try:
        mine, theirs = _decode(first), _decode(second)
        # Equal values are compared as JSON, too: in Python, 1 equals 1.0 and True.
        return bool(mine == theirs and _sorted(mine) == _sorted(theirs))
    except _INVALID:
        return False


def value_at(top: Members, steps: tuple[str, ...]) -> msgspec.Raw | None:
    """Return the encoded value at a path; None if there is none, or if it is null."""
    value = top.get(steps[0])
    for step in steps[1:]:
        first = bytes(memoryview(value)[:1]) if value is not None else b""
        if first == b"{":
            value = _split(value).get(step)  # type: ignore[arg-type] # not None
        elif first == b"[" and step.isdecimal():
            elements = _elements(value)  # type: ignore[arg-type]
            value = elements[int(step)] if int(step) < len(elements) else None
        else:
            return None
    return None if value is None or value == _NULL else value


_NULL: Final = msgspec.Raw(b"null")


def decoded(value: msgspec.Raw) -> Any:
    """Return what an encoded value decodes to."""
    return _decode(value)


def differing_fields(old: Any, new: Any, limit: int = 16) -> dict[str, tuple[Any, Any]]:
    """Return the paths of fields that differ between two states, with both values; None for a field that is absent.

    Both states are decoded. What each write changes is left out.

    Args:
        old: one state.
        new: the other state.
        limit: return at most this many paths.

    Raises:
        Exception: a state is not JSON.
    """
    first, second = json_of(old), json_of(new)
    if is_heavy(first) or is_heavy(second):
        return {}
    before, after = _decode(first), _decode(second)
    for document in (before, after):
        for name in _VERSIONS:
            document.get("metadata", {}).pop(name, None)
        for name in ("kind", "apiVersion"):
            document.pop(name, None)
    found: dict[str, tuple[Any, Any]] = {}
    _compare("", before, after, found, limit)
    return found


def _compare(path: str, old: Any, new: Any, found: dict[str, tuple[Any, Any]], limit: int) -> None:
    if len(found) >= limit or (type(old) is type(new) and old == new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}):
            _compare(_below(path, name), old.get(name), new.get(name), found, limit)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (mine, theirs) in enumerate(zip(old, new, strict=True)):
            _compare(f"{path}.{at}", mine, theirs, found, limit)
    else:
        found[path] = (old, new)


def _below(path: str, name: str) -> str:
    if not name.replace("-", "").replace("_", "").isalnum():
        return f"{path}[{name!r}]"
    return f"{path}.{name}" if path else name
