"""Expressions compiled for evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.cel.checking import CheckFault, check, constant_faults, fault_text
from aioinformer.cel.evaluation import evaluator
from aioinformer.cel.functions import function_table
from aioinformer.cel.library.collections import LISTS, OPTIONALS
from aioinformer.cel.library.formats import FORMATS
from aioinformer.cel.library.networks import NETWORKS
from aioinformer.cel.library.operators import STANDARD
from aioinformer.cel.library.quantities import QUANTITIES
from aioinformer.cel.library.texts import TEXTS
from aioinformer.cel.parsing import parse
from aioinformer.cel.tokens import SyntaxFault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.cel.types import Type

_FUNCTIONS = function_table([STANDARD, LISTS, OPTIONALS, TEXTS, QUANTITIES, NETWORKS, FORMATS])
_NAMESPACED = frozenset(name for name in _FUNCTIONS if "." in name)


@dataclass(frozen=True, slots=True)
class Program:
    """A checked expression.

    Attributes:
        type: the type of its value.
        names: the variables that it uses.
        fault: the error that every evaluation raises, or "".
        evaluate: returns the value for given variables; raises `EvaluationError` if there is none.
    """

    type: Type
    names: frozenset[str]
    fault: str
    evaluate: Callable[[Mapping[str, Any]], Any]


def compile_expression(source: str, variables: Mapping[str, Type]) -> Program:
    """Parse and check an expression.

    Args:
        source: the source text.
        variables: the types of the declared variables.

    Raises:
        CheckFault: the message lists all faults of the expression.
    """
    try:
        node = parse(source, _NAMESPACED)
        type_, names = check(node, source, variables, _FUNCTIONS)
        return Program(type_, names, next(constant_faults(node, _FUNCTIONS), ""), evaluator(node, _FUNCTIONS))
    except SyntaxFault as fault:
        raise CheckFault(fault_text(source, fault.at, fault.what)) from None
    except RecursionError:
        raise CheckFault(fault_text(source, 0, "expression recursion limit exceeded")) from None
