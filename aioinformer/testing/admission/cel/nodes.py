"""What an expression consists of.

Operators are calls of functions with the names that the language has for them, `_+_` and `_?_:_`. What the language
calls macros, `all` or `map`, are nodes of their own: `Fold` and `Bind`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression.

    Attributes:
        at: where it is in the source: the place that faults of it are told at.
    """

    at: int

    @property
    def parts(self) -> tuple[Node, ...]:
        """What it is made of."""
        return ()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`; with `test` whether there is such a field, and with `optional` one that may be missing."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: str
    target: Node | None
    args: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    """A list; each item with whether it is an optional, which is left out if it has no value."""

    items: tuple[tuple[Node, bool], ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(item for item, _ in self.items)


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    """A map: keys, values, and whether a value is an optional."""

    entries: tuple[tuple[Node, Node, bool], ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(part for key, value, _ in self.entries for part in (key, value))


@dataclass(frozen=True, slots=True)
class Fold(Node):
    """One pass over a list, or over the keys of a map.

    Attributes:
        kind: "all", "exists", "exists_one", "map", "filter", "sortBy", "transformMap" or "transformMapEntry".
        over: the list or map.
        names: of the element; or of index (or key) and element.
        given: what must be true of an element to be looked at; None for all of them.
        result: evaluated for each element.
    """

    kind: str
    over: Node
    names: tuple[str, ...]
    given: Node | None
    result: Node

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.over, *((self.given,) if self.given is not None else ()), self.result)


@dataclass(frozen=True, slots=True)
class Bind(Node):
    """`optMap` and `optFlatMap`: an expression of the value of an optional, if it has one."""

    optional: Node
    name: str
    result: Node
    flat: bool

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.optional, self.result)
