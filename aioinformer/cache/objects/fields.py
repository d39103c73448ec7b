"""Fields of objects: paths such as `spec.nodeName`, their values, indices by path, and fields that are decoded early.

- `parse_path` and `field_value` read any field of any stored item; `FieldIndexFunc` and `field_filter` use them;
- `FieldDecoder` decodes declared fields together with the metadata, in one pass. It builds msgspec classes from the
  paths. Records store the values alone, and equal values (a phase, a node name) are shared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import msgspec

from aioinformer.cache.objects.frozen import freeze
from aioinformer.cache.objects.models.shapes import notation_at
from aioinformer.cache.objects.read_failures import count_failed_read
from aioinformer.cache.objects.record import (
    READ,
    Declared,
    Envelope,
    Meta,
    Record,
    decode_record,
    labels_of,
    read,
    record_of,
)
from aioinformer.errors import DecodeError, UsageError
from aioinformer.resources.selectors import FieldSelector, field_selector_of
from aioinformer.transport.json_scanner import members, outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.transport.json_scanner import Wanted


#: The number of shared values; the table is cleared when it is full.
_SHARED = 4096
#: Longer texts are not shared.
_SHORT = 128

_STEP = re.compile(r"\.?([^.\[\]'\"\s]+)|\[(?:'([^']+)'|\"([^\"]+)\")\]")
_LABELS = ("metadata", "labels")
#: Paths whose values are attributes of every record.
_OWN = {
    ("metadata", "name"): "name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "uid"): "uid",
    ("metadata", "resourceVersion"): "resource_version",
}


@cache
def parse_path(path: str) -> tuple[str, ...]:
    """Return the steps of a path.

    Raises:
        UsageError: the path does not parse.
    """
    steps = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None or (position == 0 and path.startswith(".")):
            raise UsageError(
                f"field path {path!r} does not parse at {path[position:]!r}; write it like spec.nodeName, "
                "and keys with dots in brackets: metadata.annotations['a.b/c']"
            )
        steps.append(next(group for group in match.groups() if group is not None))
        position = match.end()
    if not steps:
        raise UsageError("a field path must not be empty; write it like spec.nodeName")
    return tuple(steps)


def is_own(steps: tuple[str, ...]) -> bool:
    """Return whether every record has the value at a path, without a declared field."""
    return steps in _OWN or steps[:2] == _LABELS


def field_value(item: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at a path of a stored item of any form; None if it has none.

    Declared fields, labels and identity need no decoding; for all other paths, the whole object is decoded.

    Raises:
        DecodeError: the object is not JSON.
    """
    record = item if isinstance(item, Record) else getattr(item, "_record", None)
    if isinstance(record, Record):
        if record.fields is not None and (place := record.fields.places.get(steps)) is not None:
            return freeze(getattr(record.fields, place))
        if steps in _OWN:
            return getattr(record, _OWN[steps]) or None
        if steps[:2] == _LABELS and len(steps) == 3:
            return labels_of(record).get(steps[2])
        try:
            value = msgspec.json.decode(record.json)
        except RecursionError:  # one deep object must not make reads of all others fail
            return _shallow_value(record.json, steps)
        except (msgspec.DecodeError, UnicodeDecodeError):
            count_failed_read(record, "not JSON")
            raise DecodeError(f"{record.key}: not JSON", key=record.key, version=record.resource_version) from None
    else:
        value = item if isinstance(item, Mapping) else item.to_dict()
    for step in steps:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _shallow_value(raw: bytes, steps: tuple[str, ...]) -> Any:
    """Return a value of an object that is nested too deeply for the decoder; None if the value itself is."""
    for step in steps:
        raw = members(raw, (step,)).get(step, b"")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class FieldIndexFunc:
    """The index function of a path like `spec.nodeName`: the value as text, or a text for each element of a list."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.steps = parse_path(path)

    def __call__(self, item: Any) -> list[str]:
        value = field_value(item, self.steps)
        if value is None or value == "":
            return []
        if type(value) is str:
            return [value]
        values = value if isinstance(value, (list, tuple)) else [value]
        return [_text(each) for each in values if not isinstance(each, (Mapping, list, tuple))]

    def __repr__(self) -> str:
        return f"FieldIndexFunc({self.path!r})"


def field_filter(selector: str | FieldSelector | Mapping[str, str]) -> Callable[[Any], bool]:
    """Return a predicate that selects objects by the values of fields, for filtering handlers and lists.

    Args:
        selector: as in kubectl's --field-selector, with any path: `status.phase=Running,spec.nodeName!=a`.

    Raises:
        SelectorError: the selector does not parse.
    """
    parsed = field_selector_of(selector, "selector")

    def passes(item: Any) -> bool:
        return parsed.matches(lambda path: _text(field_value(item, parse_path(path))))

    return passes


def selectable_value(item: Any, path: str, model: str) -> str | None:
    """Return the text that the API server compares with a field selector; None if that is not certain.

    Some servers compare other values than those of the object: an absent number or boolean as "0" or "false", and
    fields that the object does not have.

    Args:
        model: kubernetes_asyncio's name of the model of the object, "" for custom resources.
    """
    try:
        steps = parse_path(path)
    except UsageError:
        return None
    if model and notation_at(model, steps) != "str":
        return None
    value = field_value(item, steps)
    return None if isinstance(value, (Mapping, list, tuple)) else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class FieldDecoder:
    """Decodes the metadata and the declared fields of objects, in one pass.

    Raises:
        UsageError: a path does not parse, is the whole metadata, or leads through another declared field.
    """

    def __init__(self, paths: Iterable[str], form: type[Record] = Record) -> None:
        self._form = form
        parsed = dict.fromkeys(parse_path(path) for path in paths)
        #: Paths that have to be decoded; the values of all others are in every record.
        self.paths = frozenset(steps for steps in parsed if not is_own(steps))
        self._values = _Values(self.paths) if self.paths else None
        self._decode = msgspec.json.Decoder(_envelope_with(self.paths, Any)).decode
        self._decode_texts = msgspec.json.Decoder(_envelope_with(self.paths, str | None)).decode
        #: The members that this decoder reads, for `decode_deep`.
        self.wanted = _wanted(self.paths)
        #: All values so far were strings.
        self._texts = True

    def __call__(self, raw: bytes) -> Record:
        """Return the record of an object, with its declared fields.

        Raises:
            DecodeError: as `decode_record`.
            TooDeep: as `decode_record`.
        """
        values = self._values
        if values is None:
            return decode_record(raw)
        if self._texts:
            try:
                envelope = self._decode_texts(raw)
                declared = values.of_texts(envelope)
            except msgspec.ValidationError:
                self._texts = False
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
                pass  # an unusual object: decode all of it, for a good error
            else:
                record = record_of(envelope.metadata, raw, self._form)
                record.fields = declared
                return record
        try:
            envelope = read(raw, self._decode)
        except DecodeError:
            # A path that leads through anything but objects has no value.
            return self._of_unusual(decode_record(raw), values)
        record = record_of(envelope.metadata, raw, self._form)
        record.fields = values.of_any(envelope)
        return record

    def _of_unusual(self, record: Record, values: _Values) -> Record:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            record.fields = values.of_any(self._decode(outline(record.raw, self.wanted)))
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
            fields.append((attribute, inner | None, inner()))  # a missing object has no members
    frozen = base is msgspec.Struct  # msgspec accepts only frozen structs as defaults
    return msgspec.defstruct("Read", fields, bases=(base,), rename=renamed, gc=False, kw_only=True, frozen=frozen)


@cache
def _attribute(name: str) -> str:
    if name == "metadata":
        return name
    return "field_" + re.sub(r"\W", lambda match: f"_{ord(match.group()):x}_", name)


class _Values:
    """Extracts the values at some paths from decoded objects, and shares equal values."""

    def __init__(self, paths: Iterable[tuple[str, ...]]) -> None:
        places = {steps: f"value_{number}" for number, steps in enumerate(sorted(paths))}
        self._made = cast("type[Declared]", msgspec.defstruct("Values", places.values(), bases=(Declared,), gc=False))
        self._made.places = places
        self._attributes = [[_attribute(step) for step in steps] for steps in places]
        #: Returns the value for one path, and a tuple of values for several.
        self._at_once = attrgetter(*(".".join(each) for each in self._attributes))
        self._alone = len(places) == 1
        self._seen: dict[Any, Declared] = {}

    def of_texts(self, envelope: Any) -> Declared:
        """Return the values of an object, all of which are strings or missing."""
        found = self._at_once(envelope)
        declared = self._seen.get(found)
        if declared is not None:
            return declared
        return self._kept(found, (found,) if self._alone else found)

    def of_any(self, envelope: Any) -> Declared:
        """Return the values of any object."""
        values = tuple(_look_up(envelope, each) for each in self._attributes)
        key = values, *map(type, values)  # 1 equals 1.0 and True
        try:
            declared = self._seen.get(key)
        except TypeError:  # a value is a list or an object
            return self._made(*values)
        return self._kept(key, values) if declared is None else declared

    def _kept(self, key: Any, values: tuple[Any, ...]) -> Declared:
        declared = self._made(*values)
        # Long texts rarely repeat; and floats stay apart, since -0.0 equals 0.0.
        if not any(type(value) is float or (type(value) is str and len(value) > _SHORT) for value in values):
            if len(self._seen) >= _SHARED:
                self._seen.clear()
            self._seen[key] = declared
        return declared


def _look_up(value: Any, attributes: Iterable[str]) -> Any:
    for attribute in attributes:
        if value is None:
            return None
        value = getattr(value, attribute)
    return value
