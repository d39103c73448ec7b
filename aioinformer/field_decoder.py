"""Declared fields, read from objects together with the metadata.

What is read is described by classes that are made of the paths, so that one pass of the decoder does it. Of what was
decoded, a record keeps the values alone, and values that are found again and again (a phase, a node) are kept once.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import msgspec

from aioinformer.errors import DecodeError, UsageError
from aioinformer.fields import is_own, parse_path
from aioinformer.objects import (
    NO_LABELS,
    READ,
    Declared,
    Envelope,
    Meta,
    Record,
    decode_record,
    read,
    record_of,
    without_managed_fields,
)
from aioinformer.shallow import LARGE, Heavy, finish, outline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.shallow import Wanted

#: So many values of declared fields are remembered, until all of them are forgotten.
_SEEN = 4096
#: ... if no text among them is longer.
_SHORT = 128


class FieldDecoder:
    """Reads the metadata and the declared fields of objects, in one pass.

    Args:
        paths: the declared fields.

    Raises:
        UsageError: a path does not parse, is all of the metadata, or contradicts another.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        parsed = dict.fromkeys(parse_path(path) for path in paths)
        #: Paths whose values are decoded; all others are in every record.
        self.paths = frozenset(steps for steps in parsed if not is_own(steps))
        self._values = _Values(self.paths) if self.paths else None
        self._decode = msgspec.json.Decoder(_envelope_with(self.paths, Any)).decode
        self._decode_texts = msgspec.json.Decoder(_envelope_with(self.paths, str | None)).decode
        #: The members that are read, for `decode_in_steps`.
        self.wanted = _wanted(self.paths)
        #: No value was anything but a text so far. Managed fields are in none of them, and need not be read.
        self._texts = not any("managedFields" in steps for steps in self.paths)

    def __call__(self, raw: bytes, *, valid: bool = False) -> Record:
        """The record of an object, with its declared fields, which may stand anywhere.

        Raises:
            DecodeError: as `decode_record`.
            Heavy: as `decode_record`.
        """
        values = self._values
        if values is None:
            return decode_record(raw, valid=valid)
        if self._texts:
            shorter = without_managed_fields(raw) if valid else None
            try:
                envelope = self._decode_texts(raw if shorter is None else shorter)
                declared = values.of_texts(envelope)
            except msgspec.ValidationError:
                self._texts = False
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
                pass  # this object is unusual: read as a whole, it says why
            else:
                meta = envelope.metadata
                if meta.labels is not NO_LABELS and shorter is not None:
                    meta.labels = msgspec.Raw(bytes(meta.labels))  # which must not keep what is shorter alive
                record = record_of(meta, raw)
                record.fields = declared
                return record
        try:
            envelope = read(raw, self._decode)
        except DecodeError:
            # Where a path leads through something else than objects, it has no value.
            return self._of_unusual(decode_record(raw, valid=valid), values)
        record = record_of(envelope.metadata, raw)
        record.fields = values.of_any(envelope)
        return record

    def _of_unusual(self, record: Record, values: _Values) -> Record:
        if len(record.raw) > LARGE:
            raise Heavy
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            record.fields = values.of_any(self._decode(finish(outline(record.raw, self.wanted))))
        return record


def _wanted(paths: frozenset[tuple[str, ...]]) -> Wanted:
    tree: dict[str, Any] = {name: dict(within or {}) for name, within in READ.items()}
    for steps in paths:
        node = tree
        for step in steps[:-1]:
            node = node.setdefault(step, {})
        node[steps[-1]] = None
    return tree


def _envelope_with(paths: frozenset[tuple[str, ...]], value: Any) -> type[Envelope]:
    if ("metadata",) in paths:
        raise UsageError("field path metadata is all of the metadata: declare fields of it, like metadata.generation")
    tree: dict[str, Any] = {}
    for steps in sorted(paths):
        node = tree
        for step in steps[:-1]:
            node = node.setdefault(step, {})
            if node is None:
                raise UsageError(f"field path {'.'.join(steps)} leads through another declared field: declare one")
        if node.get(steps[-1]):
            raise UsageError(f"another declared field leads through {'.'.join(steps)}: declare one")
        node[steps[-1]] = None
    return _struct(Envelope, tree, value)


def _struct(base: type[Any], tree: Mapping[str, Any], value: Any) -> type[Any]:
    fields: list[Any] = []
    renamed: dict[str, str] = {}
    for name, below in tree.items():
        attribute = _attribute(name)
        renamed[attribute] = name
        if base is Envelope and name == "metadata":
            fields.append((attribute, _struct(Meta, below or {}, value)))
            continue
        if below is None:
            fields.append((attribute, value, None))
        else:
            inner = _struct(msgspec.Struct, below, value)
            fields.append((attribute, inner | None, inner()))  # what is missing has nothing in it
    frozen = base is msgspec.Struct  # only such may be a default
    return msgspec.defstruct("Read", fields, bases=(base,), rename=renamed, gc=False, kw_only=True, frozen=frozen)


@cache
def _attribute(name: str) -> str:
    return name if name == "metadata" else "field_" + re.sub(r"\W", lambda match: f"_{ord(match.group()):x}_", name)


class _Values:
    """Takes the values at some paths out of decoded objects. Values that are found again and again are kept once.

    Args:
        paths: in any order, one at least.
    """

    def __init__(self, paths: Iterable[tuple[str, ...]]) -> None:
        places = {steps: f"value_{number}" for number, steps in enumerate(sorted(paths))}
        self._made = cast("type[Declared]", msgspec.defstruct("Values", places.values(), bases=(Declared,), gc=False))
        self._made.places = places
        self._attributes = [[_attribute(step) for step in steps] for steps in places]
        #: Of one path it is the value; of several, a tuple of them.
        self._at_once = attrgetter(*(".".join(each) for each in self._attributes))
        self._alone = len(places) == 1
        self._seen: dict[Any, Declared] = {}

    def of_texts(self, envelope: Any) -> Declared:
        """Those of an object of which they are all texts, or missing."""
        found = self._at_once(envelope)
        declared = self._seen.get(found)
        return self._kept(found, (found,) if self._alone else found) if declared is None else declared

    def of_any(self, envelope: Any) -> Declared:
        """Those of any object."""
        values = tuple(_look_up(envelope, each) for each in self._attributes)
        key = values, *map(type, values)  # 1 is 1.0, and true
        try:
            declared = self._seen.get(key)
        except TypeError:  # one of them is a list, or an object
            return self._made(*values)
        return self._kept(key, values) if declared is None else declared

    def _kept(self, key: Any, values: tuple[Any, ...]) -> Declared:
        declared = self._made(*values)
        # Long texts are not worth it; -0.0 equals 0.0.
        if not any(type(value) is float or (type(value) is str and len(value) > _SHORT) for value in values):
            if len(self._seen) >= _SEEN:
                self._seen.clear()
            self._seen[key] = declared
        return declared


def _look_up(value: Any, attributes: Iterable[str]) -> Any:
    for attribute in attributes:
        if value is None:
            return None
        value = getattr(value, attribute)
    return value
