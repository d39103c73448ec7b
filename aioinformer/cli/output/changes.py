"""Describe the difference between two states of an object in a few words.

Short values are shown. Values of annotations are never shown, and values of Secrets only on request, because other
people may see the terminal. Fields that each write changes (`resourceVersion`, `generation`, `managedFields`) are left
out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CHANGES = 3
_MAX_VALUE_LENGTH = 32
MAX_WIDTH = 100
"""How wide several changes may be together."""

_IGNORED = frozenset(
    {
        "metadata.deletionGracePeriodSeconds",
        "metadata.deletionTimestamp",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
        "status.observedGeneration",
    }
)
_SECRET_FIELDS = frozenset({"data", "stringData"})
_NAME_FIELDS = ("name", "type", "key", "ip")


def describe_changes(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    secret: bool = False,
    show_secrets: bool = False,
    width: int = MAX_WIDTH,
) -> str:
    """Return what changed, most informative first: `status.phase Pending → Running, spec.nodeName = node-1, 2 more`.

    Args:
        old: the state before, as the server sends it.
        new: the state after.
        secret: treat the object as a Secret even if its kind is another.
        width: how wide several changes may be together.
    """
    secret = not show_secrets and (secret or "Secret" in (old.get("kind"), new.get("kind")))
    found = [(path, before, after) for path, before, after in differences("", old, new) if path not in _IGNORED]
    found.sort(key=lambda item: _rank(*item))
    changes = [_describe(path, before, after, secret) for path, before, after in found]
    if _is_being_deleted(new) and not _is_being_deleted(old):
        changes.insert(0, "is being deleted")
    shown = changes[:_MAX_CHANGES]
    while len(shown) > 1 and len(", ".join(shown)) > width:
        shown.pop()
    if len(changes) > len(shown):
        shown.append(f"{len(changes) - len(shown)} more")
    return ", ".join(shown)


def _is_being_deleted(state: Mapping[str, Any]) -> bool:
    return bool((state.get("metadata") or {}).get("deletionTimestamp"))


def _rank(path: str, before: Any, after: Any) -> tuple[bool, ...]:
    """Return a sort key that puts conditions, timestamps, structures and metadata last: they explain the least."""
    structure = any(isinstance(value, (Mapping, list, tuple)) for value in (before, after))
    return "conditions" in path, path.endswith(("Time", "Timestamp", "time")), structure, path.startswith("metadata.")


def differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path of each value that differs, and both values; None for one that is missing."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(f"{path}.{key}" if path else str(key), old.get(key), new.get(key))
    elif _is_list(old) and _is_list(new) and (named := _by_name(old, new)):
        for name, before, after in named:
            yield from differences(f"{path}[{name}]", before, after)
    elif old != new:
        yield path, old, new


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _by_name(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    """Return the items of both lists in pairs by name, or nothing if items have no unique names."""
    for field in _NAME_FIELDS:
        sides: list[dict[str, Any]] = []
        for items in (old, new):
            names = [item.get(field) if isinstance(item, Mapping) else None for item in items]
            if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
                break
            sides.append(dict(zip((str(name) for name in names), items, strict=True)))
        if len(sides) == 2:
            return [(name, sides[0].get(name), sides[1].get(name)) for name in {**sides[0], **sides[1]}]
    return []


def _describe(path: str, before: Any, after: Any, secret: bool) -> str:
    parts = path.split(".")
    private = (secret and parts[0] in _SECRET_FIELDS) or parts[:2] == ["metadata", "annotations"]
    if after is None:
        return f"{path} removed"
    shown = "" if private else _short(after)
    if before is None:
        return f"{path} = {shown}" if shown else f"{path} added"
    earlier = _short(before)
    return f"{path} {earlier} → {shown}" if shown and earlier else f"{path} changed"


def _short(value: Any) -> str:
    """Return a short scalar as text; "" for long values and structures."""
    if isinstance(value, (Mapping, list, tuple)):
        return ""
    if isinstance(value, str) and value and value.isprintable():
        text = value
    else:
        text = json.dumps(value, default=str)
    return text if len(text) <= _MAX_VALUE_LENGTH else ""
