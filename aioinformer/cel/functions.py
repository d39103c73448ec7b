"""Function tables: signatures with their implementations.

Signatures are written as in CEL's messages: `string.(string, int)` is a member function of strings, `(string)` is not.
The overload is chosen twice: by the types of the expression, and again by the values, since a `dyn` argument can have
any type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.cel.types import DYN, Type, read_type, read_types
from aioinformer.cel.values import EvaluationError, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of a function.

    Attributes:
        is_member: whether it is called on its first argument.
        args: the types of its arguments, including the one that it is called on.
        result: the type of its result.
        function: the implementation.
        kinds: the type names that argument values must have; None allows all.
    """

    is_member: bool
    args: tuple[Type, ...]
    result: Type
    function: Callable[..., Any]
    kinds: tuple[str | None, ...]


Functions = dict[str, list[Overload]]

NO_OVERLOAD = "no such overload"


def function_table(tables: Iterable[Mapping[str, Mapping[str, Callable[..., Any]]]]) -> Functions:
    """Merge tables that map names to signatures, such as `string.(int) -> string`, to implementations."""
    functions: Functions = {}
    for table in tables:
        for name, signatures in table.items():
            for signature, function in signatures.items():
                functions.setdefault(name, []).append(_overload(signature, function))
    return functions


def _overload(signature: str, function: Callable[..., Any]) -> Overload:
    parameters, result = signature.rsplit(" -> ", 1)
    target, dot, rest = parameters.partition(".(")
    if dot:
        args = (read_type(target), *read_types(rest[:-1]))
    else:
        args = read_types(parameters[1:-1])
    kinds = tuple(None if arg == DYN or arg.is_parameter else arg.name for arg in args)
    return Overload(bool(dot), args, read_type(result), function, kinds)


def find_overload(overloads: Iterable[Overload], values: Sequence[Any]) -> Overload | None:
    """Return the first overload that accepts the values, or None."""
    for overload in overloads:
        for kind, value in zip(overload.kinds, values, strict=True):
            if kind is not None and type_name(value) != kind:
                break
        else:
            return overload
    return None


def call_overload(overloads: Iterable[Overload], values: Sequence[Any]) -> Any:
    """Call the overload that accepts the values.

    Raises:
        EvaluationError: no overload accepts them, or the call fails.
    """
    if (overload := find_overload(overloads, values)) is None:
        raise EvaluationError(NO_OVERLOAD)
    return overload.function(*values)


def is_valid(parse: Callable[..., Any]) -> Callable[..., bool]:
    """Return a function that tells whether `parse` accepts its arguments."""

    def accepted(*args: Any) -> bool:
        try:
            parse(*args)
        except EvaluationError:
            return False
        return True

    return accepted
