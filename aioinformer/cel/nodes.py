"""The nodes of an expression's syntax tree.

Operators are calls of functions with CEL's names for them, such as `_+_` and `_?_:_`. CEL's macros, such as `all` and
`map`, have nodes of their own: `Fold` and `Bind`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression.

    Attributes:
        at: the position in the source at which faults are reported.
    """

    at: int

    @property
    def parts(self) -> tuple[Node, ...]:
        """Return the child nodes."""
        return ()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`: the field; with `test`, whether it exists; with `optional`, an optional of it."""

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
    """A list of items, each with a flag for optional items, which are left out if empty."""

    items: tuple[tuple[Node, bool], ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(item for item, _ in self.items)


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    """A map of keys and values, each with a flag for optional values, which are left out if empty."""

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
        names: the variable of the element, or those of the index (or key) and the element.
        given: the condition that selects elements; None selects all.
        result: the expression that is evaluated for each element.
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
    """`optMap` and `optFlatMap`: an expression that uses the value of an optional, if it has one."""

    optional: Node
    name: str
    result: Node
    flat: bool

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.optional, self.result)
