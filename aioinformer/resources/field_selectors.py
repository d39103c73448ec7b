r"""Field selectors: conditions on fields of an object, as the API's `fieldSelector` parameter takes them.

Requirements are `path=value`, `path==value` and `path!=value`, joined by commas; all must hold. Nothing is trimmed: a
blank is part of the path or the value. `\`, `,` and `=` in values are written with a backslash before them, and no
other escape exists. An absent field reads as "". Empty terms are skipped, so `a=b,` is fine. Which paths a resource
knows is for the server to say: every kind has `metadata.name`, every namespaced one `metadata.namespace`.

`str()` of a selector is canonical (sorted, `=` for `==`), and parsing it again gives an equal selector.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.errors import SelectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_OPERATOR = re.compile("!=|==|=")
_ESCAPED = re.compile(r"([\\,=])")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One condition on one field.

    Attributes:
        path: "metadata.name", "spec.nodeName" …
        value: what the field is compared with, unescaped.
        negated: whether it must differ.
    """

    path: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.path}{'!=' if self.negated else '='}{_escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions on fields that must all hold; without any, everything matches.

    Immutable, hashable, comparable, and safe to use from any thread.
    """

    requirements: tuple[FieldRequirement, ...] = ()

    def __post_init__(self) -> None:
        items = sorted(self.requirements, key=lambda item: (item.path, item.negated, item.value))
        object.__setattr__(self, "requirements", tuple(items))

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> FieldSelector:
        """Wants each of these fields with exactly this value; values are given as they are, not escaped.

        Raises:
            SelectorError: a path that the grammar cannot express.
        """
        for path in fields:
            if re.search(r"[\\,=]|!$", path):
                raise SelectorError(f"field path {path!r} must not contain '=', ',' or '\\' nor end with '!'")
        return cls(tuple(FieldRequirement(path, value) for path, value in fields.items()))

    @property
    def empty(self) -> bool:
        """Whether there is no condition, so that everything matches."""
        return not self.requirements

    def matches(self, get: Callable[[str], str]) -> bool:
        """Whether an object fulfils every condition.

        Args:
            get: returns the value of a field by its path, "" for an absent one. Asked only for the paths named, and no
                longer than needed.
        """
        return all((get(item.path) == item.value) is not item.negated for item in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_field_selector(text: str) -> FieldSelector:
    """Parses a field selector with the grammar of Kubernetes; "" matches everything.

    Args:
        text: for example `spec.nodeName=node-1,status.phase!=Running`.

    Raises:
        SelectorError: it does not parse; the message quotes the text, says where, and names the remedy.
    """
    items = []
    for start, term in _terms(text):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None:
            raise SelectorError(
                f"field selector {text!r}, at character {start + 1}: {term!r} has no operator; "
                "write path=value or path!=value"
            )
        path, value = term[: operator.start()], term[operator.end() :]
        items.append(FieldRequirement(path, _unescape(value, text, start + operator.end()), operator.group() == "!="))
    return FieldSelector(tuple(items))


def _terms(text: str) -> Iterator[tuple[int, str]]:
    """Splits at commas that no backslash precedes, and yields the terms with their positions."""
    start, escaped = 0, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield start, text[start:position]
            start = position + 1
    yield start, text[start:]


def _unescape(value: str, text: str, start: int) -> str:
    pieces, escaped = [], False
    for position, character in enumerate(value):
        if escaped:
            if character not in "\\,=":
                raise _bad_escape(text, start + position - 1)
            escaped = False
        elif character == "\\":
            escaped = True
            continue
        elif character == "=":
            raise SelectorError(
                f"field selector {text!r}, at character {start + position + 1}: "
                "'=' inside a value must be written '\\='"
            )
        pieces.append(character)
    if escaped:
        raise _bad_escape(text, start + len(value) - 1)
    return "".join(pieces)


def _bad_escape(text: str, position: int) -> SelectorError:
    return SelectorError(
        f"field selector {text!r}, at character {position + 1}: a backslash stands only before '\\', ',' or '='; "
        "write '\\\\' for the character itself"
    )


def _escape(value: str) -> str:
    return _ESCAPED.sub(r"\\\1", value)
