r"""Field selectors: conditions on fields of an object, for the API's parameter `fieldSelector`.

Requirements are `path=value`, `path==value` and `path!=value`, joined by commas; all must hold. Nothing is trimmed: a
space is part of the path or the value. In values, a backslash precedes `\`, `,` and `=`; there is no other escape. An
absent field has the value "". Empty terms are skipped, so that `a=b,` is valid. The server decides which paths a
resource supports: each kind has `metadata.name`, and each namespaced one has `metadata.namespace`.

`str()` of a selector is canonical (sorted, `=` for `==`), and parsing it gives an equal selector.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import force_setattr

from aioinformer.errors import SelectorError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPERATOR = re.compile("!=|==|=")
_ESCAPED = re.compile(r"([\\,=])")


class FieldRequirement(msgspec.Struct, frozen=True):
    """A condition on a field.

    Attributes:
        path: "metadata.name", "spec.nodeName" …
        value: the value to compare with, unescaped.
        negated: whether the field must differ from the value.
    """

    path: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.path}{'!=' if self.negated else '='}{_escape(self.value)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """Conditions on fields that must all hold; without conditions, everything matches.

    Immutable, hashable, comparable, and safe to use from any thread.
    """

    requirements: tuple[FieldRequirement, ...] = ()

    def __post_init__(self) -> None:
        items = sorted(self.requirements, key=lambda item: (item.path, item.negated, item.value))
        force_setattr(self, "requirements", tuple(items))

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> FieldSelector:
        """Return a selector that requires each of these fields with exactly this value. Values are not escaped.

        Raises:
            SelectorError: the grammar cannot express a path.
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
        """Return whether an object fulfils all conditions.

        Args:
            get: returns the value of a field by its path, "" for an absent one. It is called only for the paths in the
                selector, until a condition does not hold.
        """
        return all((get(item.path) == item.value) is not item.negated for item in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_field_selector(text: str) -> FieldSelector:
    """Parse a field selector with the grammar of Kubernetes; "" matches everything.

    Args:
        text: for example `spec.nodeName=node-1,status.phase!=Running`.

    Raises:
        SelectorError: the selector is invalid. The message quotes it, and says where and what to write.
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
        path = term[: operator.start()]
        value = term[operator.end() :]
        items.append(FieldRequirement(path, _unescape(value, text, start + operator.end()), operator.group() == "!="))
    return FieldSelector(tuple(items))


def _terms(text: str) -> Iterator[tuple[int, str]]:
    """Split at commas without a backslash before them; yield each term with its position."""
    start = 0
    escaped = False
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
    pieces = []
    escaped = False
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
        f"field selector {text!r}, at character {position + 1}: a backslash is allowed only before '\\', ',' or '='; "
        "write '\\\\' for a backslash"
    )


def _escape(value: str) -> str:
    return _ESCAPED.sub(r"\\\1", value)
