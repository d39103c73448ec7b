"""Declared fields: paths into objects that are decoded together with the metadata, and so cost next to nothing.

A path is written as on the wire, `spec.nodeName`, and leads through objects only, not through arrays. A key that holds
a dot or a slash is put in brackets: `metadata.annotations['example.com/owner']`. Labels are paths, too:
`metadata.labels.app`.

An index, or a filter, may be given as a path instead of a function. Of a declared path the value is there when the
object arrives, and no body is decoded for it; of any other, the body is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.errors import DecodeError, UsageError
from aioinformer.frozen import freeze
from aioinformer.objects import Record, labels_of
from aioinformer.read_failures import announce
from aioinformer.selectors import FieldSelector, field_selector_of
from aioinformer.shallow import members

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = re.compile(r"\.?([^.\[\]'\"\s]+)|\[(?:'([^']+)'|\"([^\"]+)\")\]")
_LABELS = ("metadata", "labels")
#: Paths whose values every record has by itself.
_OWN = {
    ("metadata", "name"): "name",
    ("metadata", "namespace"): "namespace",
    ("metadata", "uid"): "uid",
    ("metadata", "resourceVersion"): "resource_version",
}


@cache
def parse_path(path: str) -> tuple[str, ...]:
    """The steps of a path.

    Raises:
        UsageError: it does not parse.
    """
    steps, position = [], 0
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
    """Whether every record has the value at a path by itself."""
    return steps in _OWN or steps[:2] == _LABELS


def field_value(item: Any, steps: tuple[str, ...]) -> Any:
    """The value at a path of anything a store may hold, None if there is none.

    Costs nothing for declared fields, labels and identity; otherwise the body of the object is looked into.
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
        except RecursionError:  # one object must not keep readers from all others by its depth
            return _shallow_value(record.json, steps)
        except (msgspec.DecodeError, UnicodeDecodeError):
            announce(record, "not JSON")
            raise DecodeError(f"{record.key}: not JSON", key=record.key, version=record.resource_version) from None
    else:
        value = item if isinstance(item, Mapping) else item.to_dict()
    for step in steps:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _shallow_value(raw: bytes, steps: tuple[str, ...]) -> Any:
    """The value at a path of an object that is nested deeper than the decoder goes; None if it is what is so deep."""
    for step in steps:
        raw = members(raw).get(step, b"")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class FieldIndexFunc:
    """The index function of a path: the value there, as text; lists of values count one by one.

    Args:
        path: as above.
    """

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
    """A function that tells whether an object has certain values, for filtering handlers and lists.

    Args:
        selector: as kubectl's --field-selector takes it, over any path: `status.phase=Running,spec.nodeName!=a`.

    Raises:
        SelectorError: it does not parse.
    """
    parsed = field_selector_of(selector, "selector")

    def passes(item: Any) -> bool:
        return parsed.matches(lambda path: _text(field_value(item, parse_path(path))))

    return passes


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
