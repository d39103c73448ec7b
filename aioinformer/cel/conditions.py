"""The conditions under which a webhook is called (`matchConditions`): expressions of its object and its request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from aioinformer.cel.checking import CheckFault
from aioinformer.cel.expressions import compile_pattern
from aioinformer.cel.programs import Program, compile_expression
from aioinformer.cel.schemas import schema_type
from aioinformer.cel.types import BOOL, DYN
from aioinformer.cel.values import Unsupported


def _fields(*names: str, **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**{name: {"type": "string"} for name in names}, **others}}


_TEXTS = {"type": "array", "items": {"type": "string"}}
_KIND = _fields("group", "version", "kind")
_RESOURCE = _fields("group", "version", "resource")
_USER = _fields("username", "uid", groups=_TEXTS, extra={"type": "object", "additionalProperties": _TEXTS})
_REQUEST = _fields(
    *("subResource", "requestSubResource", "name", "namespace", "operation"),
    **{"kind": _KIND, "requestKind": _KIND, "resource": _RESOURCE, "requestResource": _RESOURCE, "userInfo": _USER},
    dryRun={"type": "boolean"},
    options={"x-kubernetes-int-or-string": True},  # of any type
)
_REQUEST_TYPE = schema_type(_REQUEST)
assert _REQUEST_TYPE is not None
_VARIABLES = {"object": DYN, "oldObject": DYN, "request": _REQUEST_TYPE}
_AUTHORIZER = re.compile(r"\bauthorizer\b")
_PATTERN_CALL = re.compile(r"\b(?:matches|find|findAll)\s*\(")


@lru_cache(maxsize=256)
def compiled_condition(expression: str) -> Program | None:
    """Return the program of a condition; None for one that this server does not support.

    Raises:
        CheckFault: kube-apiserver refuses it, too.
    """
    try:
        program = compile_expression(expression, _VARIABLES)
    except CheckFault:
        if _AUTHORIZER.search(expression):
            return None
        raise
    if program.type != BOOL:
        raise CheckFault("must evaluate to bool")
    return program


class ConditionFault(NamedTuple):
    """What is wrong with a condition.

    Attributes:
        field: the path of the expression in the configuration of webhooks.
        expression: as it is there.
        reason: why kube-apiserver refuses it.
    """

    field: str
    expression: str
    reason: str


def condition_faults(configuration: Mapping[str, Any]) -> Iterator[ConditionFault]:
    """Yield what is wrong with the conditions of a configuration of webhooks."""
    for at, webhook in enumerate(configuration.get("webhooks") or ()):
        for number, condition in enumerate(webhook.get("matchConditions") or ()):
            expression = str(condition.get("expression") or "")
            try:
                compiled_condition(expression)
            except CheckFault as fault:
                field = f"webhooks[{at}].matchConditions[{number}].expression"
                yield ConditionFault(field, expression, f"compilation failed: {fault}")


def unchecked_pattern(expression: str) -> str:
    """Return why patterns in a condition that compiles are not checked here, "" if they are, or if it has none."""
    if not _PATTERN_CALL.search(expression):
        return ""
    try:
        compile_pattern("")
    except Unsupported as missing:
        return str(missing).partition(" needs ")[2]
    return ""
