"""What differs between two states of an object, in a few words for people.

Values are shown where they are short and say something. Those of annotations are never shown, and those of Secrets only
where they are asked for: a terminal is often somebody else's screen. What every write changes (`resourceVersion`,
`generation`, `managedFields`) is not worth a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = 3
_LONGEST = 32
_WIDTH = 100
_NOISE = frozenset(
    {
        "metadata.deletionGracePeriodSeconds",
        "metadata.deletionTimestamp",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
        "status.observedGeneration",
    }
)
_PRIVATE = frozenset({"data", "stringData"})
_NAMES = ("name", "type", "key", "ip")


def changed(old: Mapping[str, Any], new: Mapping[str, Any], *, secret: bool = False, show_secrets: bool = False) -> str:
    """What changed, most telling first: `status.phase Pending → Running, spec.nodeName = node-1, 2 more`.

    Args:
        old: the state before, as on the wire.
        new: the state after.
        secret: it is a Secret, whatever kind it says it is of.
        show_secrets: show the values of Secrets.
    """
    secret = not show_secrets and (secret or "Secret" in (old.get("kind"), new.get("kind")))
    found = [(path, before, after) for path, before, after in _differences("", old, new) if path not in _NOISE]
    found.sort(key=lambda item: _tedium(*item))
    words = [_words(path, before, after, secret) for path, before, after in found]
    if _is_going(new) and not _is_going(old):
        words.insert(0, "is being deleted")
    shown = words[:_SHOWN]
    while len(shown) > 1 and len(", ".join(shown)) > _WIDTH:
        shown.pop()
    if len(words) > len(shown):
        shown.append(f"{len(words) - len(shown)} more")
    return ", ".join(shown)


def _is_going(state: Mapping[str, Any]) -> bool:
    return bool((state.get("metadata") or {}).get("deletionTimestamp"))


def _tedium(path: str, before: Any, after: Any) -> tuple[bool, ...]:
    """How little a change tells: conditions and timestamps follow from what really happened, and stand in its way."""
    structure = any(isinstance(value, (Mapping, list, tuple)) for value in (before, after))
    return "conditions" in path, path.endswith(("Time", "Timestamp", "time")), structure, path.startswith("metadata.")


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(f"{path}.{key}" if path else str(key), old.get(key), new.get(key))
    elif _is_list(old) and _is_list(new) and (named := _by_name(old, new)):
        for name, before, after in named:
            yield from _differences(f"{path}[{name}]", before, after)
    elif old != new:
        yield path, old, new


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _by_name(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    """The items of both lists side by side, if each has a name of its own; else nothing."""
    for field in _NAMES:
        sides: list[dict[str, Any]] = []
        for items in (old, new):
            names = [item.get(field) if isinstance(item, Mapping) else None for item in items]
            if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
                break
            sides.append(dict(zip((str(name) for name in names), items, strict=True)))
        if len(sides) == 2:
            return [(name, sides[0].get(name), sides[1].get(name)) for name in {**sides[0], **sides[1]}]
    return []


def _words(path: str, before: Any, after: Any, secret: bool) -> str:
    parts = path.split(".")
    private = (secret and parts[0] in _PRIVATE) or parts[:2] == ["metadata", "annotations"]
    if after is None:
        return f"{path} removed"
    shown = "" if private else _short(after)
    if before is None:
        return f"{path} = {shown}" if shown else f"{path} added"
    earlier = _short(before)
    return f"{path} {earlier} → {shown}" if shown and earlier else f"{path} changed"


def _short(value: Any) -> str:
    """A scalar on few characters; "" for anything that would not say much."""
    if isinstance(value, (Mapping, list, tuple)):
        return ""
    text = value if isinstance(value, str) and value and value.isprintable() else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else ""
