"""Minimal patches between two states of an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.cache.objects.encoding import checked_json
from aioinformer.cache.objects.views import View, is_part
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def merge_patch(old: Any, new: Any) -> dict[str, Any]:
    """Return the JSON merge patch (RFC 7386) that turns one state of an object into another; {} if they are equal.

    It contains only what differs: removed members are null, and lists that differ are complete. If the old state has a
    `metadata.resourceVersion`, so has the patch: the server then refuses it with a conflict once the object has another
    version. The version and the managed fields of the new state are ignored, since the server sets them.

    A member that is null counts as absent in both states, as in the API.

    Args:
        old: a view, a mapping with the keys of the JSON, a model of kubernetes_asyncio, or an instance of a msgspec,
            dataclass or pydantic class.
        new: the same; may be of another class.

    Raises:
        UsageError: one of them is not an object, or has no JSON form.
    """
    before = document_of(old)
    after = document_of(new)
    for name in ("apiVersion", "kind"):  # lists omit them
        if before.get(name) is None or after.get(name) is None:
            before.pop(name, None)
            after.pop(name, None)
    was = before.get("metadata")
    now = after.get("metadata")
    version = was.get("resourceVersion") if isinstance(was, dict) else None
    for metadata in (was, now):
        if isinstance(metadata, dict):
            metadata.pop("resourceVersion", None)
            metadata.pop("managedFields", None)
    patch = _difference(before, after)
    if patch and version:
        part = patch.setdefault("metadata", {})
        if isinstance(part, dict):
            part["resourceVersion"] = version
    return patch


def document_of(obj: Any) -> dict[str, Any]:
    """Return a plain, mutable copy of an object with the keys of the JSON.

    Raises:
        UsageError: it is not an object, or has no JSON form.
    """
    document = obj.to_dict() if isinstance(obj, View) else msgspec.json.decode(checked_json(obj))
    if not isinstance(document, dict):
        raise UsageError(f"expected an object of the API, not {type(obj).__name__}")
    return document


def check_whole(obj: Any, caller: str) -> None:
    """Check that a function may replace a list of an object.

    Raises:
        UsageError: the object is a part, so that its list may be incomplete.
    """
    if is_part(obj):
        raise UsageError(
            f"{caller}: {obj!r} comes from a cache that has only a part of it (storage=, transform=), and the write "
            "would remove the rest; call this in edit(), which reads the live object first, or get() the object"
        )


def changed_members(patch: dict[str, Any]) -> Iterator[str]:
    """Yield the top-level members that a patch changes. The version alone is no change of the metadata."""
    for name, value in patch.items():
        if name != "metadata" or not isinstance(value, dict) or value.keys() - {"resourceVersion"}:
            yield name


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {name: None for name, value in old.items() if value is not None and new.get(name) is None}
    for name, value in new.items():
        known = old.get(name)
        if value is None:
            continue
        if isinstance(value, dict) and isinstance(known, dict):
            inner = _difference(known, value)
            if inner:
                patch[name] = inner
        elif not is_same(known, value):
            patch[name] = _without_nulls(value)
    return patch


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. Numbers are equal only if they are of the same type: 1, 1.0 or true."""
    if type(one) is not type(other):
        return False
    if one != other:
        return False
    if isinstance(one, dict):  # equal so far, but for the types of numbers
        return all(is_same(value, other[name]) for name, value in one.items() if type(value) is not str)
    return not isinstance(one, list) or all(map(is_same, one, other))


def contains(value: Any, part: Any) -> bool:
    """Return whether a JSON value has all members of another one, in depth. A null counts as absent."""
    if isinstance(part, Mapping):
        return isinstance(value, Mapping) and all(
            contains(value.get(name), item) for name, item in part.items() if item is not None
        )
    if isinstance(part, (list, tuple)):
        return isinstance(value, (list, tuple)) and len(value) == len(part) and all(map(contains, value, part))
    return is_same(value, part)


def _without_nulls(value: Any) -> Any:
    # In a patch they would be deletions. Lists are not merged, so that their nulls are values.
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
