"""Carry a change of what a class makes of a document over to the document, which has members that the class lacks.

Members of objects are the same if they have one name. Elements of lists are the same if they have

1. the same key, in a list whose keys the server has recorded in the managed fields of the document;
2. otherwise the same `name`, or else the same `type`;
3. otherwise the same value;
4. otherwise the same place among the rest, or, if there are more or fewer of them than before, the most equal members.

An element that is new has what the class states, and nothing else.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from aioinformer.client.changes.patches import is_same

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What the field managers have recorded at one place of a document: members of a `fieldsV1` each.
_Recorded: TypeAlias = "Sequence[dict[str, Any]]"
_Identity: TypeAlias = "tuple[Any, ...] | bytes"

#: What identifies an element of a list without recorded keys, the first that it has.
_NAMES: Final = (("name",), ("type",))


def carried(document: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a document, changed as `old` was changed to `new`.

    `old` and `new` are what a class makes of the document, which may leave out members, and add defaults.
    """
    metadata = document.get("metadata")
    entries = (metadata.get("managedFields") if isinstance(metadata, dict) else None) or ()
    recorded = [fields for each in entries if isinstance(fields := each.get("fieldsV1"), dict)]
    changed: dict[str, Any] = _carried(document, old, new, recorded)
    return changed


def json_patch(document: dict[str, Any], old: Any, new: Any) -> list[dict[str, Any]]:
    """Return the JSON patch (RFC 6902) of a document that changes it as `old` was changed to `new`.

    The arguments are those of `carried`. The patch leaves everything in which the two do not differ as it is.
    """
    return list(_operations(document, carried(document, old, new), ""))


def _carried(sent: Any, old: Any, new: Any, recorded: _Recorded) -> Any:
    if is_same(old, new):
        return sent
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(sent, dict):
        found = {name: each for name, each in sent.items() if old.get(name) is None or new.get(name) is not None}
        for name, now in new.items():
            if now is not None and not is_same(old.get(name), now):
                known = sent.get(name)
                was = old.get(name)
                below = _below(recorded, f"f:{name}")
                found[name] = now if known is None else _carried(known, was, now, below)
        return found
    if isinstance(old, list) and isinstance(new, list) and isinstance(sent, list):
        return _carried_list(sent, old, new, recorded)
    return new


def _carried_list(sent: list[Any], old: list[Any], new: list[Any], recorded: _Recorded) -> list[Any]:
    keys = _keys(recorded)
    names = (keys, *_NAMES) if keys else _NAMES
    elements = list(chain.from_iterable(each.values() for each in (_elements(fields) for fields in recorded)))
    origins = _origins(sent, old, names)
    found = []
    for each, at in zip(new, _partners(old, new, names), strict=True):
        origin = None if at is None else origins[at]
        # The class may write a value in another form, and a set in another order: a change of it says nothing.
        is_plain = not isinstance(each, (dict, list))
        found.append(each if is_plain or at is None or origin is None else _carried(origin, old[at], each, elements))
    return found


def _origins(sent: list[Any], old: list[Any], names: Sequence[tuple[str, ...]]) -> list[Any]:
    """Return for each element of the old list the element of the document that the class has made it of, or None.

    A class may have sorted or dropped elements. So those with an identity are found by it, and others by their place.
    """
    made = [_named(each, names) for each in old]
    if len(sent) == len(old) and all(_has(each, named or ()) for each, named in zip(sent, made, strict=True)):
        return list(sent)
    return [next((each for each in sent if _has(each, named)), None) if named else None for named in made]


def _has(value: Any, members: tuple[tuple[str, Any], ...]) -> bool:
    """Return whether a value has some members with these values."""
    return not members or (isinstance(value, dict) and all(value.get(name) == each for name, each in members))


def _partners(old: list[Any], new: list[Any], names: Sequence[tuple[str, ...]]) -> list[int | None]:
    """Return for each element of a list where it was in the old one; None if it was not there."""
    places: dict[_Identity, list[int]] = {}
    for at, each in enumerate(old):
        places.setdefault(_identity(each, names), []).append(at)
    identities = [_identity(each, names) for each in new]
    found = [places[identity].pop(0) if places.get(identity) else None for identity in identities]
    fresh = [at for at, known in enumerate(found) if known is None and isinstance(identities[at], bytes)]
    gone = sorted(at for identity, rest in places.items() for at in rest if isinstance(identity, bytes))
    if len(fresh) == len(gone):
        for at, was in zip(fresh, gone, strict=True):
            found[at] = was
        return found
    for at in fresh:
        likeness = {was: _equal_members(old[was], new[at]) for was in gone}
        nearest = max(likeness, key=likeness.__getitem__, default=None)  # the first of equal ones
        if nearest is not None and likeness[nearest]:
            found[at] = nearest
            gone.remove(nearest)
    return found


def _equal_members(one: Any, other: Any) -> int:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return 0
    return sum(name in one and is_same(one[name], value) for name, value in other.items())


def _identity(value: Any, names: Sequence[tuple[str, ...]]) -> _Identity:
    """Return what makes an element of a list the same one after a change: its key or name, or else its value."""
    named = _named(value, names)
    return msgspec.json.encode(value, order="sorted") if named is None else named


def _named(value: Any, names: Sequence[tuple[str, ...]]) -> tuple[tuple[str, Any], ...] | None:
    """Return the key or the name of an element, None if it has none.

    A class may lack a part of the key: the rest of it then identifies the elements that the class can tell apart.
    """
    if isinstance(value, dict):
        for several in names:
            found = tuple((name, value[name]) for name in several if isinstance(value.get(name), (str, int, float)))
            if found:
                return found
    return None


def _keys(recorded: _Recorded) -> tuple[str, ...]:
    """Return the fields that identify the elements of a list, () if none are recorded."""
    for fields in recorded:
        for key in _elements(fields):
            decoded = msgspec.json.decode(key.removeprefix("k:"))
            if isinstance(decoded, dict):
                return tuple(decoded)
    return ()


def _elements(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: below for name, below in fields.items() if name.startswith("k:") and isinstance(below, dict)}


def _below(recorded: _Recorded, name: str) -> _Recorded:
    return [below for fields in recorded if isinstance(below := fields.get(name), dict)]


def _operations(old: Any, new: Any, path: str) -> Iterator[dict[str, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            at = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            if name not in new:
                yield {"op": "remove", "path": at}
            elif name not in old:
                yield {"op": "add", "path": at, "value": new[name]}
            else:
                yield from _operations(old[name], new[name], at)
    elif not is_same(old, new):
        yield {"op": "replace", "path": path, "value": new}
