"""What another version cannot hold: kept in an annotation of the converted object, and restored on the way back.

A conversion there and back shows what is lost: the fields in which the result differs from the original. Each is kept
with its path, its value, and a digest of what the way back makes of it. On the way back, it is restored if that is
still so: if the other version has changed the field, or what it was made of, the live value wins, and the kept one is
dropped. Fields of an object that has been removed since are not restored.

The text of an annotation has a format. Format 1 states none; a later one states its number in `version`.

The members of a list are known by their keys, if the schema says them, else by a digest of what they were. Equal ones
are told apart by their order.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.crds.conversion.places import ABSENT
from aioinformer.crds.conversion.steps import ConversionError
from aioinformer.crds.markers import LIST_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.crds.types import Schema

#: Bytes of an annotation. The server accepts 256 KiB for all of an object.
MOST: Final = 64 * 2**10
_DIGITS: Final = 16
#: Of the text. It stands in texts of later formats only.
FORMAT: Final = 1


class _Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """A member of a list, in a path.

    Attributes:
        keys: by which it is known; empty for none.
        digest: of the member, if it has no keys.
        nth: how many members before it have the same keys or digest.
    """

    keys: dict[str, Any] = {}
    digest: str = ""
    nth: int = 0


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that is lost.

    Attributes:
        path: names, and members of lists.
        digest: of what a conversion there and back makes of it; "" if it is absent then.
        value: unset if the original has none.
    """

    path: tuple[str | _Member, ...]
    digest: str = ""
    value: Any = msgspec.UNSET

    def __str__(self) -> str:
        steps = (f".{each}" if isinstance(each, str) else "[]" for each in self.path)
        return "".join(steps).lstrip(".")


class _Annotation(msgspec.Struct, frozen=True):
    kept: tuple[_Kept, ...]
    sum: str


class _Format(msgspec.Struct, frozen=True):
    version: int = FORMAT


_decode = msgspec.json.Decoder(_Annotation).decode
_decode_format = msgspec.json.Decoder(_Format).decode


class _Lists:
    """Finds members of lists by their keys or digests. The lists must not change meanwhile."""

    def __init__(self) -> None:
        #: By the list and the names of the keys: the places of the members with a digest of these keys.
        self._places: dict[tuple[int, tuple[str, ...]], dict[str, list[int]]] = {}

    def member(self, values: list[Any], place: int, names: Any) -> _Member:
        """Return what a member is known by."""
        value = values[place]
        if isinstance(value, dict):
            keys = {name: value[name] for name in names if name in value}
        else:
            keys = {}
        found = _Member(keys) if keys else _Member(digest=_digest(value))
        return _Member(found.keys, found.digest, bisect_left(self._equal(values, found), place))

    def place(self, values: list[Any], member: _Member) -> int | None:
        """Return where a member is; None if there is none like it."""
        equal = self._equal(values, member)
        return equal[member.nth] if 0 <= member.nth < len(equal) else None

    def _equal(self, values: list[Any], member: _Member) -> list[int]:
        names = tuple(member.keys)
        at = (id(values), names)
        if at not in self._places:
            self._places[at] = {}
            for place, value in enumerate(values):
                if not names:
                    self._places[at].setdefault(_digest(value), []).append(place)
                elif isinstance(value, dict) and all(name in value for name in names):
                    keys = {name: value[name] for name in names}
                    self._places[at].setdefault(_digest(keys), []).append(place)
        return self._places[at].get(_digest(member.keys) if names else member.digest, [])


def lost(original: Mapping[str, Any], result: Mapping[str, Any], schema: Schema) -> str:
    """Return the text of the annotation that keeps what a conversion there and back has changed, "" for nothing.

    Args:
        original: the object, without metadata.
        result: what is left of it there and back.
        schema: of its version.

    Raises:
        ConversionError: it is longer than 64 KiB; the message names the largest field.
    """
    kept = tuple(_differences(original, result, schema, (), _Lists()))
    if not kept:
        return ""
    encoded = msgspec.json.encode(_Annotation(kept, _digest(msgspec.to_builtins(kept))))
    if len(encoded) > MOST:
        largest = max(kept, key=lambda each: len(msgspec.json.encode(each)))
        raise ConversionError(f"{largest}: what the other version lacks has {len(encoded)} bytes, and may have {MOST}")
    return encoded.decode()


def unreadable(text: str) -> str:
    """Return why an annotation cannot be read, and what to do; "" if it can."""
    try:
        version = _decode_format(text).version
        if version != FORMAT:
            return (
                f"has format {version}, and this version of aioinformer knows {FORMAT}; run the version that has "
                "written it, or remove the annotation"
            )
        found = _decode(text)
        edited = _digest(msgspec.to_builtins(found.kept)) != found.sum
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        edited = True
    return "has been edited; repair or remove it" if edited else ""


def restore(document: dict[str, Any], text: str) -> None:
    """Restore what a readable annotation has kept, in place."""
    found = _decode(text)
    lists = _Lists()
    # What a member is known by must not change before all its fields are restored.
    for place, name, value in [each for kept in found.kept for each in _places(document, kept, lists)]:
        if value is not msgspec.UNSET:
            place[name] = value
        elif isinstance(place, dict):  # who writes an object may have written any annotation
            place.pop(name, None)


def _differences(original: Any, result: Any, schema: Schema, path: tuple[Any, ...], lists: _Lists) -> Iterator[_Kept]:
    if isinstance(original, dict) and isinstance(result, dict):
        properties: Schema = schema.get("properties") or {}
        for name in sorted(original.keys() | result.keys()):  # always the same text, or the server would see a change
            inner = properties.get(name) or schema.get("additionalProperties")
            at = (*path, name)
            if name not in result:
                yield _Kept(at, "", original[name])
            elif name not in original:
                yield _Kept(at, _digest(result[name]))
            else:
                below = inner if isinstance(inner, dict) else {}
                yield from _differences(original[name], result[name], below, at, lists)
    elif isinstance(original, list) and isinstance(result, list) and len(original) == len(result):
        for place, (one, other) in enumerate(zip(original, result, strict=True)):
            if _text(one) != _text(other):
                member = lists.member(result, place, schema.get(LIST_KEYS) or ())
                yield from _differences(one, other, schema.get("items") or {}, (*path, member), lists)
    elif _text(original) != _text(result):
        yield _Kept(path, _digest(result), original)


def _places(document: Any, kept: _Kept, lists: _Lists) -> Iterator[tuple[Any, Any, Any]]:
    """Yield where a kept value belongs, if that is as it was: the object or list, the name or place, and the value."""
    place: Any = document
    for step in kept.path[:-1]:
        name = _name(place, step, lists)
        if name is None or (isinstance(place, dict) and name not in place):
            return
        place = place[name]
    name = _name(place, kept.path[-1], lists)
    if name is None:
        return
    present = place[name] if isinstance(place, list) else place.get(name, ABSENT)
    if ("" if present is ABSENT else _digest(present)) == kept.digest:
        yield place, name, kept.value


def _name(place: Any, step: str | _Member, lists: _Lists) -> Any:
    """Return the name or the number of a member; None if there is no such member."""
    if isinstance(step, str):
        return step if isinstance(place, dict) else None
    return lists.place(place, step) if isinstance(place, list) else None


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value)).hexdigest()[:_DIGITS]


def _text(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
