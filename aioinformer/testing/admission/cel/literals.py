"""What can be told of an expression before there are values: literals that are not what a function takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.expressions import expression
from aioinformer.testing.admission.cel.functions import called
from aioinformer.testing.admission.cel.library.times import to_duration, to_timestamp
from aioinformer.testing.admission.cel.nodes import Call, Literal, Node
from aioinformer.testing.admission.cel.values import EvaluationError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.admission.cel.functions import Functions

_CHECKED: dict[str, Callable[[str], Any]] = {
    "duration": to_duration,
    "matches": expression,
    "timestamp": to_timestamp,
}
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})
_SEARCHES = frozenset({"find", "findAll"})


def literal_faults(node: Node) -> Iterator[tuple[int, str]]:
    """Texts that are no times or patterns where such are wanted, with their places."""
    match node:
        case Call(function=name, args=(*_, Literal(value=str() as text) as literal)) if name in _CHECKED:
            if _fault(_CHECKED[name], text) is not None:
                yield literal.at, f"invalid {name} argument"
    for part in node.parts:
        yield from literal_faults(part)


def constant_faults(node: Node, functions: Functions) -> Iterator[str]:
    """Why parts of an expression that are the same for every value have none."""
    for part in node.parts:
        yield from constant_faults(part, functions)
    match node:
        case Call(function=name, target=None, args=(Literal(value=value),)) if name in _CONVERSIONS:
            fault = _fault(lambda _: called(functions[name], [value]), "")
        case Call(function=name, args=(Literal(value=str() as pattern), *_)) if name in _SEARCHES:
            fault = _fault(expression, pattern)
        case _:
            return
    if fault is not None:
        yield fault


def _fault(does: Callable[[str], Any], text: str) -> str | None:
    try:
        does(text)
    except EvaluationError as error:
        return str(error)
    except ArithmeticError:
        return "overflow"
    except Unsupported:
        # It may be right; whoever evaluates it says that it cannot be.
        return None
    return None
