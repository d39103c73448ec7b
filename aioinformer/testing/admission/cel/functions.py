"""Functions of expressions: a table of signatures, each with what does it.

A signature is written as the language's own faults show it: `string.(string, int)` is called on a string, and
`(string)` is not. Which of the functions of a name is meant is decided twice: once by the types of an expression, and
again by its values, because `dyn` may have been anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.types import DYN, Type, read_type, read_types
from aioinformer.testing.admission.cel.values import EvaluationError, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Overload:
    """One function.

    Attributes:
        is_member: whether it is called on its first argument.
        args: their types, that of what it is called on included.
        result: what it gives.
        does: the function itself.
        kinds: what values of its arguments must be, None for those that may be anything.
    """

    is_member: bool
    args: tuple[Type, ...]
    result: Type
    does: Callable[..., Any]
    kinds: tuple[str | None, ...]


Functions = dict[str, list[Overload]]

NO_OVERLOAD = "no such overload"


def declared(tables: Iterable[Mapping[str, Mapping[str, Callable[..., Any]]]]) -> Functions:
    """The functions of tables: by name, and then by signature, `string.(int) -> string`."""
    functions: Functions = {}
    for table in tables:
        for name, signatures in table.items():
            for signature, does in signatures.items():
                functions.setdefault(name, []).append(_overload(signature, does))
    return functions


def _overload(signature: str, does: Callable[..., Any]) -> Overload:
    taken, result = signature.rsplit(" -> ", 1)
    target, dot, rest = taken.partition(".(")
    args = (read_type(target), *read_types(rest[:-1])) if dot else read_types(taken[1:-1])
    kinds = tuple(None if arg == DYN or arg.is_parameter else arg.name for arg in args)
    return Overload(bool(dot), args, read_type(result), does, kinds)


def fitting(overloads: Iterable[Overload], values: Sequence[Any]) -> Overload | None:
    """The function that is meant by values, None if there is none for them."""
    for overload in overloads:
        for kind, value in zip(overload.kinds, values, strict=True):
            if kind is not None and type_name(value) != kind:
                break
        else:
            return overload
    return None


def called(overloads: Iterable[Overload], values: Sequence[Any]) -> Any:
    """What the function that is meant by values makes of them.

    Raises:
        EvaluationError: there is none for them, or they have no value.
    """
    if (overload := fitting(overloads, values)) is None:
        raise EvaluationError(NO_OVERLOAD)
    return overload.does(*values)
