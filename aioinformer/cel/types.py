"""Types of expressions and their unification.

A type parameter is bound to the first type that it is unified with, as in CEL's own checker. `dyn` stands for types
that are unknown before evaluation and unifies with every type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Type:
    """A type.

    Attributes:
        name: "int", "list", "selfType", or the name of a parameter.
        args: type arguments of lists, maps, optionals and types.
        fields: of objects.
    """

    name: str
    args: tuple[Type, ...] = ()
    fields: Mapping[str, Type] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})" if self.args else self.name

    @property
    def is_parameter(self) -> bool:
        return self.name[0].isupper()

    @property
    def is_object(self) -> bool:
        return self.name.startswith(_OBJECT)


DYN = Type("dyn")
ERROR = Type("!error!")
NULL = Type("null")
BOOL, INT, UINT, DOUBLE, STRING, BYTES = map(Type, ("bool", "int", "uint", "double", "string", "bytes"))
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")

_OBJECT = "selfType"
_PLAIN = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"})

# The types that parameters are bound to.
Bindings = dict[str, Type]


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", (value,))


def object_of(path: str, fields: Mapping[str, Type]) -> Type:
    """Return an object type. Two object types are equal if their paths are.

    Args:
        path: the position in the root object; "" for the root.
    """
    return Type(_OBJECT + path, (), fields)


@cache
def read_type(text: str) -> Type:
    """Parse a type such as "map(string, list(A))"."""
    match = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", text)
    assert match is not None, text
    return Type(match[1], tuple(map(read_type, _split(match[2] or ""))))


def _split(text: str) -> list[str]:
    parts = re.findall(r"\s*((?:[^,()]|\((?:[^()]|\([^()]*\))*\))+)", text)
    return [part.strip() for part in parts]


def read_types(text: str) -> tuple[Type, ...]:
    """Parse types separated by commas."""
    return tuple(map(read_type, _split(text)))


def resolved(type_: Type, bindings: Bindings, *, free: Type | None = None) -> Type:
    """Return a type with its bound parameters replaced.

    Args:
        free: replaces unbound parameters; None keeps them.
    """
    if type_.is_parameter:
        if type_.name in bindings:
            return resolved(bindings[type_.name], bindings, free=free)
        return free or type_
    if not type_.args:
        return type_
    return Type(type_.name, tuple(resolved(arg, bindings, free=free) for arg in type_.args))


def unify(given: Type, wanted: Type, bindings: Bindings) -> bool:
    """Unify two types, and return whether a value of `given` can be used as `wanted`.

    Args:
        bindings: new bindings of parameters are added, even if the answer is no.
    """
    if wanted.is_parameter:
        if _bind_parameter(given, wanted, bindings):
            return True
        if wanted.name in bindings:
            return False
    if given.is_parameter:
        return _bind_parameter(wanted, given, bindings)
    if DYN in (given, wanted) or ERROR in (given, wanted):
        return True
    if NULL in (given, wanted):
        other = wanted if given == NULL else given
        return other == NULL or other.name not in _PLAIN
    if given.name != wanted.name:
        return False
    if given.name == "type":
        return True
    return len(given.args) == len(wanted.args) and all(
        unify(one, other, bindings) for one, other in zip(given.args, wanted.args, strict=True)
    )


def _bind_parameter(given: Type, parameter: Type, bindings: Bindings) -> bool:
    if given == parameter:
        return True
    if parameter.name in bindings:
        known = bindings[parameter.name]
        if given == known:
            return True
        if not unify(given, known, bindings):
            return False
        general = given if _less_specific(given, known) else known
        if not _occurs(parameter, general, bindings):
            bindings[parameter.name] = general
        return True
    if _occurs(parameter, given, bindings):
        return False
    bindings[parameter.name] = given
    return True


def _less_specific(one: Type, other: Type) -> bool:
    if one == DYN or one.is_parameter:
        return True
    if other == DYN or other.is_parameter or one.name != other.name:
        return False
    return one.name == "type" or all(map(_less_specific, one.args, other.args))


def _occurs(parameter: Type, within: Type, bindings: Bindings) -> bool:
    if within == parameter:
        return True
    if within.is_parameter:
        return within.name in bindings and _occurs(parameter, bindings[within.name], bindings)
    return any(_occurs(parameter, arg, bindings) for arg in within.args)
