"""Read untrusted YAML as kubectl and the API server do, and write YAML that they read as it was.

The rules for scalars are in `yaml_scalars`. A `<<` merges at its place, as in go-yaml: it overwrites the keys that
precede it.

Aliases and nesting are limited. A few hundred bytes of nested aliases can stand for more values than fit into memory:
the result holds them as one graph, but any walk through it follows each path.

Values are built from the events of the parser, libyaml's if PyYAML has it: five times as fast as PyYAML's loader in C.
No code here recurses, so deep nesting cannot crash the process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml
from yaml.composer import ComposerError

from aioinformer.transport.auth.yaml_scalars import (
    MERGE_TAG,
    json_value,
    key_text,
    plain_value,
    tagged_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_ALIASED: Final = 4 * 1024 * 1024
"""How many bytes aliases may add to a document. Each value counts as `_LEAST` bytes or more."""
_LEAST: Final = 32
_DEEPEST: Final = 250
"""How many collections may contain each other: less than what walks through values can recurse."""
#: What a mapping waits for: a key, or the value of `<<`.
_KEY: Final = object()
_MERGED: Final = object()

_TEXT: Final = "tag:yaml.org,2002:str"
#: Line breaks that readers make "\\n" unless they are escaped.
_OTHER_BREAKS: Final = frozenset("\r\x85\u2028\u2029")
#: Of no scalar that is written.
_OTHER: Final = "tag:yaml.org,2002:binary"

_Parser: Any = yaml.CLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class UnboundedDocument(ComposerError):
    """A document is nested too deeply, or its aliases expand to too much. `problem` says which, without values."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document in YAML.

    Attributes:
        value: its value, of the types of JSON.
        line: the line on which the value begins, from 1.
        item_lines: the line of each element of the list `items`, if the value is a mapping that has it.
        repeated: lines and names of the keys that a mapping has already. The last one of a name counts.
    """

    value: Any = field(repr=False)
    line: int
    item_lines: tuple[int, ...] = ()
    repeated: tuple[tuple[int, str], ...] = ()


def load_yaml(data: bytes | str) -> Any:
    """Return the value of the first document, None if there is none. What follows it is not read.

    Raises:
        YAMLError: it is not YAML, is nested too deeply, has too many aliases, or a value has no form in JSON.
    """
    first = next(documents(data), None)
    return None if first is None else first.value


def documents(data: bytes | str) -> Iterator[Document]:
    """Yield each document.

    Raises:
        YAMLError: as `load_yaml`.
    """
    parser = _Parser(data)
    try:
        parser.get_event()
        while not parser.check_event(yaml.StreamEndEvent):
            parser.get_event()
            document = _Builder(parser).document()
            parser.get_event()
            yield document
    finally:
        parser.dispose()


def line_of(error: yaml.YAMLError, data: bytes | str) -> int | None:
    """Return the line of an error of `documents`, None if it is unknown."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return None
    # An error at the end is on the line after the last one for libyaml, even if there is none.
    lines = len(data.splitlines())
    return max(1, min(int(mark.line) + 1, lines))


def to_yaml(bodies: Iterable[Any], *, sort_keys: bool) -> str:
    """Return values as YAML documents. Texts that a reader would take for another type are quoted.

    Args:
        sort_keys: write the keys by name, otherwise in their order.
    """
    return yaml.dump_all(
        bodies, Dumper=_Dumper, sort_keys=sort_keys, default_flow_style=False, allow_unicode=True, width=120
    )


class _Collection:
    """A list or a mapping that is being built."""

    __slots__ = ("anchor", "key", "key_line", "line", "lines", "merged", "size", "value")

    def __init__(self, value: list[Any] | dict[str, Any], event: Any, *, is_counted: bool) -> None:
        self.value: Any = value
        self.anchor: str | None = event.anchor
        self.line: int = event.start_mark.line + 1
        self.lines: list[int] | None = [] if is_counted else None
        self.size = _LEAST
        self.key: Any = _KEY
        self.key_line = 0
        self.merged: set[str] = set()


class _Builder:
    """Builds the value of one document."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._anchors: dict[str, tuple[Any, int] | None] = {}  # None while the value is being built
        self._aliased = 0
        self._open: list[_Collection] = []
        self._item_lines: tuple[int, ...] = ()
        self._repeated: list[tuple[int, str]] = []

    def document(self) -> Document:
        line: int = self._parser.peek_event().start_mark.line + 1
        return Document(self._value(), line, self._item_lines, tuple(self._repeated))

    def _value(self) -> Any:
        while True:
            event: Any = self._parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                line = event.start_mark.line + 1
                size = _LEAST + len(event.value)
                value = _scalar(event)
                if event.anchor is not None:
                    self._anchors[event.anchor] = (value, size)
            elif kind is yaml.AliasEvent:
                line = event.start_mark.line + 1
                value, size = self._alias(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._begin(event)
                continue
            else:
                ended = self._open.pop()
                line = ended.line
                value = ended.value
                size = ended.size
                if ended.anchor is not None:
                    self._anchors[ended.anchor] = (value, size)
                if ended.lines is not None:
                    self._item_lines = tuple(ended.lines)
            if not self._open:
                return _json(value, event)
            self._add(self._open[-1], value, size, line, event)

    def _begin(self, event: Any) -> None:
        if len(self._open) == _DEEPEST:
            raise UnboundedDocument(None, None, "exceeded max depth", None)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        is_counted = is_list and len(self._open) == 1 and self._open[0].key == "items"
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Collection([] if is_list else {}, event, is_counted=is_counted))

    def _alias(self, event: Any) -> tuple[Any, int]:
        if event.anchor not in self._anchors:
            raise ComposerError(None, None, f"found undefined alias {event.anchor!r}", event.start_mark)
        found = self._anchors[event.anchor]
        if found is None:
            raise UnboundedDocument(None, None, "an anchor's value contains itself", event.start_mark)
        # The size of a value includes that of its own aliases: so the sum is what all aliases add.
        self._aliased += found[1]
        if self._aliased > _MOST_ALIASED:
            raise UnboundedDocument(None, None, "document contains excessive aliasing", None)
        return found

    def _add(self, parent: _Collection, value: Any, size: int, line: int, event: Any) -> None:
        parent.size += size
        if isinstance(parent.value, list):
            parent.value.append(_json(value, event))
            if parent.lines is not None:
                parent.lines.append(line)
        elif parent.key is _KEY:
            parent.key = _MERGED if _is_merge(event) else _key(value, event)
            parent.key_line = line
        elif parent.key is _MERGED:
            _merge(parent, value, event)
            parent.key = _KEY
        else:
            if parent.key in parent.merged:
                parent.merged.remove(parent.key)
            elif parent.key in parent.value:
                self._repeated.append((parent.key_line, parent.key))
            parent.value[parent.key] = _json(value, event)
            parent.key = _KEY


def _scalar(event: Any) -> Any:
    """Return the Go value of a scalar."""
    if event.tag is None:
        return plain_value(event.value) if event.implicit[0] else event.value
    try:
        return tagged_value(event.tag, event.value)
    except ValueError as error:
        raise ComposerError(None, None, str(error), event.start_mark) from None


def _json(value: Any, event: Any) -> Any:
    if type(value) is str:
        return value
    try:
        return json_value(value)
    except ValueError as error:
        raise ComposerError(None, None, str(error), event.start_mark) from None


def _key(value: Any, event: Any) -> str:
    if type(value) is str:
        return value
    try:
        return key_text(value)
    except ValueError as error:
        raise ComposerError(None, None, str(error), event.start_mark) from None


def _is_merge(event: Any) -> bool:
    if type(event) is not yaml.ScalarEvent or event.value != "<<":
        return False
    return bool(event.implicit[0]) or event.tag == MERGE_TAG


def _merge(parent: _Collection, value: Any, event: Any) -> None:
    """Merge a mapping, or the mappings of a list: the first of them that has a key counts."""
    is_list = isinstance(value, list) and not isinstance(event, yaml.AliasEvent)
    sources = list(reversed(value)) if is_list else [value]
    for source in sources:
        if not isinstance(source, dict):
            problem = "map merge requires map or sequence of maps as the value"
            raise ComposerError(None, None, problem, event.start_mark)
        parent.value.update(source)
        parent.merged.update(source)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and quotes texts that PyYAML or go-yaml would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return that a value that occurs twice is written twice."""
        return True

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Return the tag that readers give to a scalar without quotes and without a tag."""
        found = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        if kind is yaml.ScalarNode and implicit[0] and found == _TEXT and not isinstance(plain_value(value), str):
            return _OTHER
        return found


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    style = "|" if "\n" in data else None
    if not _OTHER_BREAKS.isdisjoint(data):
        style = '"'
    return dumper.represent_scalar(_TEXT, data, style)


_Dumper.add_representer(str, _text)
