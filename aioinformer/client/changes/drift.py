"""Elements of lists whose key somebody has changed: which of them are the applied ones, and how to take them back.

An apply knows the elements of a list by their keys, as the ports of a Service by port and protocol. If somebody changes
port 5432 to 9999, the server has removed one element and added another: nothing records that the two are one. The next
apply adds 5432 again beside 9999, and the server refuses two elements of one name.

An element is taken back if all of this holds in the live object:

- The server refuses the apply for nothing but members that two elements have in common.
- The manager applies the object, and no live element has the key of the refused one in its configuration.
- One live element has the same member. It differs in its key alone from the one in the configuration, which has no
  element of its key.
- All of its fields are recorded for managers that have updated the object, as `kubectl edit` does. What another manager
  applies, or writes through a subresource, is left alone, and so is what is recorded for no manager.

Then these records become applied ones of the manager, in exactly this version of the object. The apply that follows
removes the element and adds the one with the right key, in one write.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from aioinformer.client.changes.ownership import decoded_key, entries_of, union, with_entries
from aioinformer.client.changes.patches import contains, is_same

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aioinformer.errors import Invalid

#: "spec.template.spec.containers[0].ports[1].name".
_MEMBER: Final = re.compile(r"((?:[\w-]+(?:\[\d+\])?\.)*[\w-]+)\[\d+\]\.([\w-]+)")
_STEP: Final = re.compile(r"[\w-]+|\[\d+\]")
_ELEMENT: Final = "[]"


class Duplicate(NamedTuple):
    """A member that two elements of a list must not have in common.

    Attributes:
        steps: to the list, "[]" for an element of a list on the way.
        member: its name.
    """

    steps: tuple[str, ...]
    member: str

    def __str__(self) -> str:
        return ".".join(self.steps).replace(f".{_ELEMENT}", _ELEMENT)


class Repair(NamedTuple):
    """What to do about an apply that the server has refused.

    Attributes:
        patch: the merge patch that makes elements applied ones; None if nothing is taken back.
        reason: why an element that is in the way is not taken back; "" if there is none.
    """

    patch: dict[str, Any] | None
    reason: str


class _List(NamedTuple):
    """A list of both objects.

    Attributes:
        path: where it is recorded: "f:spec", "f:ports", with keys of elements.
        wanted: the elements of the configuration.
        live: the elements of the live object.
    """

    path: tuple[str, ...]
    wanted: list[Any]
    live: list[Any]


def duplicates(error: Invalid) -> list[Duplicate]:
    """Return the members for which the server has refused an object; [] if it has other reasons, too."""
    found = []
    for field, causes in error.fields.items():
        match = _MEMBER.fullmatch(field)
        if match is None or any(cause.reason != "FieldValueDuplicate" for cause in causes):
            return []
        steps = (_ELEMENT if step.startswith("[") else step for step in _STEP.findall(match[1]))
        found.append(Duplicate(tuple(steps), match[2]))
    return list(dict.fromkeys(found))


def repair(wanted: dict[str, Any], live: dict[str, Any], manager: str, found: Sequence[Duplicate]) -> Repair:
    """Return how to take back the elements that are in the way of an apply.

    Args:
        wanted: the configuration.
        live: the live object.
        manager: the field manager that applies the configuration.
        found: what `duplicates` has returned.
    """
    metadata = live.get("metadata") or {}
    records = _Records(metadata.get("managedFields") or (), next(entries_of(metadata, manager, "Apply"), None))
    if records.own is None:
        return Repair(None, "")
    for duplicate in found:
        for each in _lists(wanted, live, duplicate.steps, records):
            keys = records.keys(each.path)
            for mine, element in _in_the_way(each, keys, duplicate.member):
                key = {name: element.get(name) for name in keys}
                others = {name: value for name, value in mine.items() if name not in keys}
                reason = "has other fields, too" if not contains(element, others) else records.move(each.path, key)
                if reason:
                    shown = msgspec.json.encode(key).decode()
                    return Repair(
                        None,
                        f"{duplicate} has the element {shown} with the same {duplicate.member}, which {reason}; "
                        "remove it, or rename one of the two",
                    )
    entries = records.entries()
    return Repair(with_entries(metadata, entries) if entries else None, "")


class _Records:
    """The fields that the managers of an object own, and those of them that are moved.

    Attributes:
        own: the entry of the applies; None if there is none.
    """

    def __init__(self, entries: Sequence[dict[str, Any]], own: dict[str, Any] | None) -> None:
        self.own = own
        self._entries = [{**each} for each in entries if each is not own]
        self._moved: list[dict[str, Any]] = []

    def keys(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the fields that identify the elements of a list; () if it is not merged by key."""
        names = (name for fields in self._at(path) for name in fields if name.startswith("k:"))
        key = decoded_key(next(names, ""))
        return tuple(key) if isinstance(key, dict) else ()

    def name(self, path: tuple[str, ...], element: Any) -> str:
        """Return the name under which an element of a list is recorded; "" if it is not."""
        for fields in self._at(path):
            for name in fields:
                if name.startswith("k:") and contains(element, decoded_key(name)):
                    return name
        return ""

    def move(self, path: tuple[str, ...], key: dict[str, Any]) -> str:
        """Move the fields of an element to the applied ones; or return why they stay as they are."""
        assert self.own is not None
        name = self.name(path, key)
        owners = [each for each in self._entries if _below(each.get("fieldsV1"), (*path, name)) is not None]
        if not name or not owners:
            return "is recorded for no field manager"
        for each in owners:
            writer = f"field manager {each.get('manager')!r}"
            if each.get("operation") != "Update":
                return f"{writer} applies"
            if each.get("subresource"):
                return f"{writer} has written through {each['subresource']}"
            if each.get("apiVersion") != self.own.get("apiVersion"):
                return f"{writer} has written with {each.get('apiVersion')}"
        for each in owners:
            self._moved.append(_nested((*path, name), _below(each["fieldsV1"], (*path, name))))
            each["fieldsV1"] = _without(each["fieldsV1"], (*path, name))
        return ""

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries, if there are changes; [] otherwise."""
        if not self._moved or self.own is None:
            return []
        fields = reduce(union, self._moved, self.own.get("fieldsV1") or {})
        return [{**self.own, "fieldsV1": fields}, *(each for each in self._entries if each.get("fieldsV1"))]

    def _at(self, path: tuple[str, ...]) -> list[dict[str, Any]]:
        found = (_below(each.get("fieldsV1"), path) for each in (*self._entries, self.own or {}))
        return [each for each in found if each is not None]


def _lists(
    wanted: Any, live: Any, steps: tuple[str, ...], records: _Records, at: tuple[str, ...] = ()
) -> Iterator[_List]:
    if not steps:
        if isinstance(wanted, list) and isinstance(live, list):
            yield _List(at, wanted, live)
    elif steps[0] != _ELEMENT:
        if isinstance(wanted, dict) and isinstance(live, dict):
            yield from _lists(wanted.get(steps[0]), live.get(steps[0]), steps[1:], records, (*at, f"f:{steps[0]}"))
    elif isinstance(wanted, list) and isinstance(live, list):
        keys = records.keys(at)
        for mine in wanted:
            same = [each for each in live if _has_key(each, mine, keys)]
            if len(same) == 1 and (name := records.name(at, same[0])):
                yield from _lists(mine, same[0], steps[1:], records, (*at, name))


def _in_the_way(each: _List, keys: tuple[str, ...], member: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield wanted elements whose key no live one has, each with the only live one that has the same member."""
    for mine in each.wanted:
        if not isinstance(mine, dict) or mine.get(member) is None or member in keys:
            continue
        if not keys or any(_has_key(element, mine, keys) for element in each.live):
            continue
        same = [one for one in each.live if isinstance(one, dict) and is_same(one.get(member), mine[member])]
        if len(same) == 1 and not any(_has_key(same[0], other, keys) for other in each.wanted):
            yield mine, same[0]


def _has_key(element: Any, mine: Any, keys: tuple[str, ...]) -> bool:
    """Return whether a live element has the key of a wanted one, which may leave out what has a default."""
    if not isinstance(element, dict) or not isinstance(mine, dict):
        return False
    return all(is_same(element.get(name), mine[name]) for name in keys if name in mine)


def _below(fields: Any, path: tuple[str, ...]) -> dict[str, Any] | None:
    for name in path:
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields if isinstance(fields, dict) else None


def _nested(path: tuple[str, ...], fields: dict[str, Any] | None) -> dict[str, Any]:
    return reduce(lambda inner, name: {name: inner}, reversed(path), fields or {})


def _without(fields: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return a set without what is at a path, and without what it leaves empty."""
    name, *rest = path
    inner = _without(fields[name], tuple(rest)) if rest else {}
    kept = {other: below for other, below in fields.items() if other != name}
    return {**kept, name: inner} if inner else kept
