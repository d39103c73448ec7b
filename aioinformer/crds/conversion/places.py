"""Fields of plain objects by their paths: "spec.size", "spec.ports[].number" in each member, "spec.pools{}.size"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a path without a value has.
ABSENT: Final[Any] = type("Absent", (), {"__repr__": lambda _: "ABSENT"})()

_PATH: Final = re.compile(r"[A-Za-z_][\w-]*(\[\]|\{\})*(\.[A-Za-z_][\w-]*(\[\]|\{\})*)*", re.ASCII)
_PARTS: Final = re.compile(r"[^.\[\]{}]+|\[\]|\{\}")


def is_path(text: str) -> bool:
    """Return whether a text is the path of a field."""
    return _PATH.fullmatch(text) is not None and not text.endswith(("]", "}"))


def around(path: str) -> str:
    """Return the part of a path that leads to the members in which the field is, "" for the object itself."""
    end = max(path.rfind("[]"), path.rfind("{}"))
    return path[: end + 2] if end >= 0 else ""


def names_within(path: str) -> list[str]:
    """Return the names that lead from such a member to the field."""
    return path[len(around(path)) :].lstrip(".").split(".")


def members(value: Any, path: str) -> Iterator[dict[str, Any]]:
    """Yield each object that a path leads to, the object itself for ""; what has another type is passed over."""
    yield from _members(value, _PARTS.findall(path))


def _members(value: Any, parts: list[str]) -> Iterator[dict[str, Any]]:
    if not parts:
        if isinstance(value, dict):
            yield value
        return
    first, *rest = parts
    if first == "[]":
        inner = value if isinstance(value, list) else []
    elif first == "{}":
        inner = list(value.values()) if isinstance(value, dict) else []
    else:
        inner = [value[first]] if isinstance(value, dict) and first in value else []
    for each in inner:
        yield from _members(each, rest)


def look(member: dict[str, Any], names: list[str]) -> Any:
    """Return the value of a field, `ABSENT` if there is none."""
    value: Any = member
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return ABSENT
        value = value[name]
    return value


def put(member: dict[str, Any], names: list[str], value: Any) -> bool:
    """Set a field that is absent, with the objects around it; return whether there was a place for it."""
    *outer, last = names
    place = member
    for name in outer:
        inner = place.get(name, ABSENT)
        if inner is not ABSENT and not isinstance(inner, dict):
            return False
        place = place.setdefault(name, {})
    if last in place:
        return False
    place[last] = value
    return True


def remove(member: dict[str, Any], names: list[str]) -> None:
    """Remove a field that is there, and the objects around it that are empty then."""
    *outer, last = names
    places = [member]
    for name in outer:
        places.append(places[-1][name])
    del places[-1][last]
    for name, place in zip(reversed(outer), reversed(places[:-1]), strict=True):
        if place[name]:
            break
        del place[name]
