"""Parse label and field selectors, with the two grammars of Kubernetes.

Label selectors are requirements joined by commas, which must all hold. `a` requires the key, `!a` its absence. `a=b`
and `a==b` mean the same. `a!=b` and `a notin (b,c)` also hold if the key is absent. `a>1` and `a<1` compare integers,
and do not hold for other values. Spaces only separate. A value may be empty (`a=`, `a in (,b)`). `in` and `notin` are
operators only between a key and its values; elsewhere they are ordinary keys and values. Keys and values follow the
limits of the API for labels, so that servers accept each selector that parses here. After a comma, a requirement must
follow: `a,` is an error.

Field selectors have no sets and no bare keys. Spaces in them have meaning, and they have escapes: see
`field_selectors`.

`str()` of a selector is canonical (sorted, `=` for `==`), and parsing it gives an equal selector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from aioinformer.errors import SelectorError
from aioinformer.resources.field_selectors import FieldRequirement, FieldSelector, parse_field_selector
from aioinformer.resources.label_selectors import LabelRequirement, LabelSelector, Operator, everything, nothing

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelRequirement",
    "LabelSelector",
    "Operator",
    "everything",
    "field_selector_of",
    "label_selector_of",
    "nothing",
    "parse_field_selector",
    "parse_label_selector",
]

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_SPECIAL = frozenset("=!(),<>") | {"==", "!="}
_OPERATORS = {
    "=": Operator.EQUALS,
    "==": Operator.EQUALS,
    "!=": Operator.NOT_EQUALS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


def parse_label_selector(text: str) -> LabelSelector:
    """Parse a label selector with the grammar of Kubernetes; "" matches everything.

    Args:
        text: for example `app=web,tier in (front, back),!canary`.

    Raises:
        SelectorError: the selector is invalid. The message quotes it, and says where and what is expected there.
    """
    return _LabelParser(text).parse()


def label_selector_of(selector: str | LabelSelector | Mapping[str, str], option: str = "selector") -> LabelSelector:
    """Return a label selector for any of its forms.

    Args:
        selector: text; a mapping of required labels and values; or a selector.
        option: the name of the caller's option, for errors.

    Raises:
        SelectorError: it is none of these, is invalid, or names a label that no object can have.
    """
    if isinstance(selector, LabelSelector):
        return selector
    try:
        if isinstance(selector, str):
            return parse_label_selector(selector)
        if isinstance(selector, Mapping):
            if selector.keys() & {"matchLabels", "matchExpressions"}:
                raise SelectorError("for matchLabels and matchExpressions, use LabelSelector.from_dict(...)")
            return LabelSelector.from_labels(selector)
    except SelectorError as error:
        raise SelectorError(f"{option}: {error}") from None
    raise _no_selector(option, selector, "a label selector", "LabelSelector")


def field_selector_of(
    selector: str | FieldSelector | Mapping[str, str], option: str = "field_selector"
) -> FieldSelector:
    """Return a field selector for any of its forms.

    Args:
        selector: text; a mapping of paths to values; or a selector.
        option: the name of the caller's option, for errors.

    Raises:
        SelectorError: it is none of these, or is invalid.
    """
    if isinstance(selector, FieldSelector):
        return selector
    try:
        if isinstance(selector, str):
            return parse_field_selector(selector)
        if isinstance(selector, Mapping):
            fields: Mapping[Any, Any] = selector
            for path, value in fields.items():
                if not isinstance(path, str) or not isinstance(value, str):
                    raise SelectorError(f"field {path!r}: path and value must be strings, not {value!r}")
            return FieldSelector.from_fields(selector)
    except SelectorError as error:
        raise SelectorError(f"{option}: {error}") from None
    raise _no_selector(option, selector, "a field selector", "FieldSelector")


def _no_selector(option: str, given: object, what: str, kind: str) -> SelectorError:
    return SelectorError(
        f'{option}: expected {what} as text, a mapping of names to values or a {kind} ("" for all), not {given!r}'
    )


class _LabelParser:
    """A recursive-descent parser; each method parses what its name says."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [(match.group(), match.start()) for match in _TOKEN.finditer(text)]
        self._next = 0

    def parse(self) -> LabelSelector:
        items: list[LabelRequirement] = []
        if self._tokens:
            items.append(self._requirement())
            while self._peek():
                self._take(",", expected="',' or the end")
                items.append(self._requirement())
        return LabelSelector(tuple(items))

    def _requirement(self) -> LabelRequirement:
        start = self._next
        absent = self._peek() == "!"
        if absent:
            self._next += 1
        if not self._at_word():
            raise self._error("a label name" if absent else "a label name or '!'")
        key = self._take()
        operator, values = (Operator.DOES_NOT_EXIST, ()) if absent else self._condition()
        try:
            return LabelRequirement(key, operator, values)
        except SelectorError as error:
            position = self._tokens[start][1]
            raise SelectorError(f"label selector {self._text!r}, at character {position + 1}: {error}") from None

    def _condition(self) -> tuple[Operator, tuple[str, ...]]:
        if self._peek() in ("", ","):
            return Operator.EXISTS, ()
        operator = _OPERATORS.get(self._peek())
        if operator is None:
            raise self._error("one of = == != in notin < >, a ',' or the end")
        self._next += 1
        if operator is Operator.IN or operator is Operator.NOT_IN:
            return operator, self._values()
        # `a=` and `a=,b` require the empty value.
        if self._peek() in ("", ","):
            return operator, ("",)
        if not self._at_word():
            raise self._error("a value")
        return operator, (self._take(),)

    def _values(self) -> tuple[str, ...]:
        self._take("(", expected="'(' before the values")
        values: list[str] = []
        if self._peek() == ")":
            self._next += 1
            return ("",)  # as on the server: the set of the empty value
        while True:
            if self._at_word():
                values.append(self._take())
                if self._peek() not in (",", ")"):
                    raise self._error("',' or ')'")
            elif self._peek() == ",":
                self._next += 1
                # There is an empty value before a leading comma, between two commas, and after a trailing one.
                if not values:
                    values.append("")
                if self._peek() == ",":
                    self._next += 1
                    values.append("")
                    if self._peek() == ")":
                        raise self._error("a value, because two commas already mean an empty one")
                elif self._peek() == ")":
                    values.append("")
            elif values and self._peek() == ")":
                self._next += 1
                return tuple(values)
            else:
                raise self._error("a value, ',' or ')'")

    def _peek(self) -> str:
        return self._tokens[self._next][0] if self._next < len(self._tokens) else ""

    def _at_word(self) -> bool:
        return bool(self._peek()) and self._peek() not in _SPECIAL

    def _take(self, token: str = "", expected: str = "") -> str:
        found = self._peek()
        if token and found != token:
            raise self._error(expected)
        self._next += 1
        return found

    def _error(self, expected: str) -> SelectorError:
        at_end = self._next >= len(self._tokens)
        position = len(self._text) if at_end else self._tokens[self._next][1]
        found = "the text ends" if at_end else f"found {self._peek()!r}"
        return SelectorError(
            f"label selector {self._text!r}, at character {position + 1}: {found} where {expected} should be"
        )
