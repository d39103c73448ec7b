"""What webhooks and policies of admission have in common: the requests that they are asked about.

Expressions in CEL are compiled if they are about objects and parameters. Of those that are about requests, authorizers,
namespaces and variables, whose types are not known here, it is said that nobody looked at them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause, StatusError, shown
from aioinformer.testing.api.validation import label_name_faults
from aioinformer.testing.cel.checking import CheckFault
from aioinformer.testing.cel.programs import compiled
from aioinformer.testing.cel.types import BOOL, DYN
from aioinformer.testing.specs.terms.parts import duplicate, format_causes, one_of, required, selector_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aioinformer.testing.cel.types import Type

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_MOST_CONDITIONS = 64
#: What is compiled knows of these only that they are there.
_KNOWN = ("object", "oldObject")
_UNKNOWN = re.compile(r"\b(?:authorizer|namespaceObject|request|variables)\b")


def rule_causes(rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with a rule that chooses requests."""
    operations = rule.get("operations") or ()
    yield from required(rule, path, "operations")
    yield from _all_or_some(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        yield from one_of(operation, f"{path}.operations[{index}]", _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        yield from required(rule, path, field)
        yield from _all_or_some(rule.get(field) or (), f"{path}.{field}", what)
    yield from _each_said(rule.get("apiVersions") or (), f"{path}.apiVersions")
    yield from _resource_causes(rule.get("resources") or (), f"{path}.resources")
    if (scope := rule.get("scope")) is not None:
        yield from one_of(scope, f"{path}.scope", _SCOPES)


def _all_or_some(values: Sequence[str], path: str, what: str) -> Iterator[Cause]:
    if len(values) > 1 and "*" in values:
        yield Cause.invalid(path, shown(values), f"if '*' is present, must not specify other {what}")


def _each_said(values: Sequence[str], path: str) -> Iterator[Cause]:
    return (Cause.required(f"{path}[{index}]") for index, value in enumerate(values) if not value)


def _resource_causes(resources: Sequence[str], path: str) -> Iterator[Cause]:
    if not resources:
        yield Cause.required(path)
    plain = False
    for index, resource in enumerate(resources):
        name, _, part = resource.partition("/")
        before = resources[:index]
        if not resource:
            yield Cause.required(f"{path}[{index}]")
        elif not part and "/" not in resource:
            plain = resource != "*"
        else:
            for wide in (f"{name}/*", f"*/{part}"):
                if wide in before:
                    why = f"if '{wide}' is present, must not specify {resource}"
                    yield Cause.invalid(f"{path}[{index}]", shown(resource), why)
    if len(resources) > 1 and "*/*" in resources:
        yield Cause.invalid(path, shown(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        yield Cause.invalid(path, shown(resources), why)


def chosen_causes(chosen: Mapping[str, Any] | None, path: str) -> Iterator[Cause]:
    """What is wrong with the choice of requests that a policy, or a binding of one, is about."""
    if chosen is None:
        return
    yield from one_of(chosen.get("matchPolicy"), f"{path}.matchPolicy", MATCH_POLICIES)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(chosen.get(field) or {}, f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(chosen.get(field) or ()):
            here, names = f"{path}.{field}[{index}]", rule.get("resourceNames") or ()
            for number, name in enumerate(names):
                yield from format_causes(name, f"{here}.resourceNames[{number}]", path_segment_faults)
                if name in names[:number]:
                    yield duplicate(name, f"{here}.resourceNames[{number}]")
            yield from rule_causes(rule, here)


def path_segment_faults(name: str) -> list[str]:
    """What is wrong with a name that has to be a part of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def condition_causes(
    conditions: Sequence[Mapping[str, Any]], path: str, *, parameters: bool = False
) -> Iterator[Cause]:
    """What is wrong with the conditions under which anything happens.

    Args:
        parameters: whether they may look at some.
    """
    if len(conditions) > _MOST_CONDITIONS:
        why = f"must have at most {_MOST_CONDITIONS} items"
        yield Cause("FieldValueTooMany", path, f"Too many: {len(conditions)}: {why}")
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
    """What is wrong with an expression.

    Args:
        why: is told of one that is not there.
        wanted: of which type its value is to be.
        parameters: whether it may look at some.

    Raises:
        StatusError: 501, it is about things whose types are not known here.
    """
    if not expression.strip():
        yield Cause.required(path, why)
        return
    if _UNKNOWN.search(expression):
        raise not_compiled(path)
    try:
        program = compiled(expression, dict.fromkeys((*_KNOWN, "params") if parameters else _KNOWN, DYN))
    except CheckFault as fault:
        yield Cause.invalid(path, shown(expression), f"compilation failed: {fault}")
        return
    if program.type != wanted:
        yield Cause.invalid(path, shown(expression), f"must evaluate to {wanted} but got {program.type}")


def not_compiled(path: str) -> StatusError:
    """What is said of an expression that nobody can tell anything of."""
    return StatusError(501, "NotImplemented", f"this server does not compile expressions like that of {path}")
