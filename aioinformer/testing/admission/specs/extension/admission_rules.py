"""Shared checks of admission webhooks and admission policies: rules that match requests, and CEL conditions.

CEL expressions about objects and parameters are compiled. The server does not know the types of requests, authorizers,
namespaces and variables: expressions that use them are answered with 501.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.checking import CheckFault
from aioinformer.testing.admission.cel.programs import compile_expression
from aioinformer.testing.admission.cel.types import BOOL, DYN
from aioinformer.testing.admission.specs.terms.parts import (
    duplicate,
    format_causes,
    lone_wildcard,
    one_of,
    required,
    selector_causes,
)
from aioinformer.testing.api.statuses import Cause, StatusError, quote
from aioinformer.testing.api.validation import label_name_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aioinformer.testing.admission.cel.types import Type

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_MOST_CONDITIONS = 64
#: Variables of dynamic type.
_DYNAMIC_VARIABLES = ("object", "oldObject")
_UNSUPPORTED_VARIABLES = re.compile(r"\b(?:authorizer|namespaceObject|request|variables)\b")


def rule_causes(rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check a rule that matches requests."""
    operations = rule.get("operations") or ()
    yield from required(rule, path, "operations")
    yield from lone_wildcard(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        yield from one_of(operation, f"{path}.operations[{index}]", _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        yield from required(rule, path, field)
        yield from lone_wildcard(rule.get(field) or (), f"{path}.{field}", what)
    yield from _no_empty_values(rule.get("apiVersions") or (), f"{path}.apiVersions")
    yield from _resource_causes(rule.get("resources") or (), f"{path}.resources")
    if (scope := rule.get("scope")) is not None:
        yield from one_of(scope, f"{path}.scope", _SCOPES)


def _no_empty_values(values: Sequence[str], path: str) -> Iterator[Cause]:
    return (Cause.required(f"{path}[{index}]") for index, value in enumerate(values) if not value)


def _resource_causes(resources: Sequence[str], path: str) -> Iterator[Cause]:
    if not resources:
        yield Cause.required(path)
    has_plain_resource = False
    for index, resource in enumerate(resources):
        name, _, part = resource.partition("/")
        before = resources[:index]
        if not resource:
            yield Cause.required(f"{path}[{index}]")
        elif not part and "/" not in resource:
            has_plain_resource = resource != "*"
        else:
            for wide in (f"{name}/*", f"*/{part}"):
                if wide in before:
                    why = f"if '{wide}' is present, must not specify {resource}"
                    yield Cause.invalid(f"{path}[{index}]", quote(resource), why)
    if len(resources) > 1 and "*/*" in resources:
        yield Cause.invalid(path, quote(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain_resource:
        why = "if '*' is present, must not specify other resources without subresources"
        yield Cause.invalid(path, quote(resources), why)


def constraint_causes(constraints: Mapping[str, Any] | None, path: str) -> Iterator[Cause]:
    """Check the match constraints of a policy or of a binding."""
    if constraints is None:
        return
    yield from one_of(constraints.get("matchPolicy"), f"{path}.matchPolicy", MATCH_POLICIES)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(constraints.get(field) or {}, f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(constraints.get(field) or ()):
            here, names = f"{path}.{field}[{index}]", rule.get("resourceNames") or ()
            for number, name in enumerate(names):
                yield from format_causes(name, f"{here}.resourceNames[{number}]", path_segment_faults)
                if name in names[:number]:
                    yield duplicate(name, f"{here}.resourceNames[{number}]")
            yield from rule_causes(rule, here)


def path_segment_faults(name: str) -> list[str]:
    """Return what is wrong with a path segment."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def condition_causes(
    conditions: Sequence[Mapping[str, Any]], path: str, *, parameters: bool = False
) -> Iterator[Cause]:
    """Check the match conditions.

    Args:
        parameters: whether expressions may use `params`.
    """
    if len(conditions) > _MOST_CONDITIONS:
        yield Cause.too_many(path, len(conditions), _MOST_CONDITIONS)
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        yield from expression_causes(
            (condition.get("expression") or "").strip(), f"{here}.expression", parameters=parameters
        )
        yield from required(condition, here, "name")
        if name:
            yield from format_causes(name, f"{here}.name", label_name_faults)
        if name and any(each.get("name") == name for each in conditions[:index]):
            yield duplicate(name, f"{here}.name")


def expression_causes(
    expression: str, path: str, why: str = "", *, wanted: Type = BOOL, parameters: bool = False
) -> Iterator[Cause]:
    """Check a CEL expression.

    Args:
        why: the message for a missing expression.
        wanted: the type that the expression must have.
        parameters: whether the expression may use `params`.

    Raises:
        StatusError: 501, the expression uses variables whose types the server does not know.
    """
    if not expression.strip():
        yield Cause.required(path, why)
        return
    if _UNSUPPORTED_VARIABLES.search(expression):
        raise not_compiled(path)
    try:
        program = compile_expression(
            expression, dict.fromkeys((*_DYNAMIC_VARIABLES, "params") if parameters else _DYNAMIC_VARIABLES, DYN)
        )
    except CheckFault as fault:
        yield Cause.invalid(path, quote(expression), f"compilation failed: {fault}")
        return
    if program.type != wanted:
        yield Cause.invalid(path, quote(expression), f"must evaluate to {wanted} but got {program.type}")


def not_compiled(path: str) -> StatusError:
    """Return the error for an expression that this server does not compile."""
    return StatusError(501, "NotImplemented", f"this server does not compile the expression in {path}")
