"""Faults of literals that can be found without values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.cel.expressions import compile_pattern
from aioinformer.testing.cel.functions import call_overload
from aioinformer.testing.cel.library.times import to_duration, to_timestamp
from aioinformer.testing.cel.nodes import Call, Literal, Node
from aioinformer.testing.cel.values import EvaluationError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.cel.functions import Functions

_PARSERS: dict[str, Callable[[str], Any]] = {
    "duration": to_duration,
    "matches": compile_pattern,
    "timestamp": to_timestamp,
}
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})
_SEARCHES = frozenset({"find", "findAll"})


def literal_faults(node: Node) -> Iterator[tuple[int, str]]:
    """Yield invalid times and patterns that are literals, with their positions."""
    match node:
        case Call(function=name, args=(*_, Literal(value=str() as text) as literal)) if name in _PARSERS:
            if _fault(_PARSERS[name], text) is not None:
                yield literal.at, f"invalid {name} argument"
    for part in node.parts:
        yield from literal_faults(part)


def constant_faults(node: Node, functions: Functions) -> Iterator[str]:
    """Yield the errors of constant parts of an expression."""
    for part in node.parts:
        yield from constant_faults(part, functions)
    match node:
        case Call(function=name, target=None, args=(Literal(value=value),)) if name in _CONVERSIONS:
            fault = _fault(lambda _: call_overload(functions[name], [value]), "")
        case Call(function=name, args=(Literal(value=str() as pattern), *_)) if name in _SEARCHES:
            fault = _fault(compile_pattern, pattern)
        case _:
            return
    if fault is not None:
        yield fault


def _fault(parse: Callable[[str], Any], text: str) -> str | None:
    try:
        parse(text)
    except EvaluationError as error:
        return str(error)
    except ArithmeticError:
        return "overflow"
    except Unsupported:
        # The pattern may be valid; its evaluation raises `Unsupported`.
        return None
    return None
