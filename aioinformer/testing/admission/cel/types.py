"""Types of expressions, and which of them go with which.

A type parameter stands for what it was first held against, as the language's own checker does it; what is not known
before a program runs is `dyn`, which goes with everything.
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
        name: "int", "list", "object", or of a parameter.
        args: of lists, maps, optionals and types.
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


DYN, ERROR, NULL = Type("dyn"), Type("!error!"), Type("null")
BOOL, INT, UINT, DOUBLE, STRING, BYTES = map(Type, ("bool", "int", "uint", "double", "string", "bytes"))
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")

_OBJECT = "selfType"
_PLAIN = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"})

# What parameters stand for.
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
    """A type of its own with fields; two objects of one path are of the same type.

    Args:
        path: where it is in what it is part of; "" for the whole.
    """
    return Type(_OBJECT + path, (), fields)


@cache
def read_type(text: str) -> Type:
    """A type from how it is written: "map(string, list(A))"."""
    match = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", text)
    assert match is not None, text
    return Type(match[1], tuple(map(read_type, _split(match[2] or ""))))


def _split(text: str) -> list[str]:
    parts = re.findall(r"\s*((?:[^,()]|\((?:[^()]|\([^()]*\))*\))+)", text)
    return [part.strip() for part in parts]


def read_types(text: str) -> tuple[Type, ...]:
    """Types with commas between them."""
    return tuple(map(read_type, _split(text)))


def resolved(type_: Type, bound: Bindings, *, free: Type | None = None) -> Type:
    """A type with what its parameters stand for.

    Args:
        free: what stands for those that are not known, None to let them be.
    """
    if type_.is_parameter:
        if type_.name in bound:
            return resolved(bound[type_.name], bound, free=free)
        return free or type_
    if not type_.args:
        return type_
    return Type(type_.name, tuple(resolved(arg, bound, free=free) for arg in type_.args))


def assignable(given: Type, wanted: Type, bound: Bindings) -> bool:
    """Whether a value of one type can be used for another one; what that says of parameters is noted.

    Args:
        bound: is changed, also where the answer is no.
    """
    if wanted.is_parameter:
        if _stands_for(given, wanted, bound):
            return True
        if wanted.name in bound:
            return False
    if given.is_parameter:
        return _stands_for(wanted, given, bound)
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
        assignable(one, other, bound) for one, other in zip(given.args, wanted.args, strict=True)
    )


def _stands_for(given: Type, parameter: Type, bound: Bindings) -> bool:
    if given == parameter:
        return True
    if parameter.name in bound:
        known = bound[parameter.name]
        if given == known:
            return True
        if not assignable(given, known, bound):
            return False
        general = given if _less_specific(given, known) else known
        if not _occurs(parameter, general, bound):
            bound[parameter.name] = general
        return True
    if _occurs(parameter, given, bound):
        return False
    bound[parameter.name] = given
    return True


def _less_specific(one: Type, other: Type) -> bool:
    if one == DYN or one.is_parameter:
        return True
    if other == DYN or other.is_parameter or one.name != other.name:
        return False
    return one.name == "type" or all(map(_less_specific, one.args, other.args))


def _occurs(parameter: Type, within: Type, bound: Bindings) -> bool:
    if within == parameter:
        return True
    if within.is_parameter:
        return within.name in bound and _occurs(parameter, bound[within.name], bound)
    return any(_occurs(parameter, arg, bound) for arg in within.args)
