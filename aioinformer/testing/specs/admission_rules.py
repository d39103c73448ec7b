"""What webhooks and policies of admission have in common: the requests that they are asked about.

Expressions in CEL are not compiled. Those that cannot be wrong are taken, and of all others it is said that nobody
looked at them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.api.validation import label_name_faults
from aioinformer.testing.specs.parts import duplicate, formed, one_of, required, selector_causes, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_MOST_CONDITIONS = 64
_FIELD = r"(?:object|oldObject)(?:\.[a-zA-Z_]\w*)+"
_CONSTANT = r"""(?:true|false|-?\d{1,9}|"[\w./-]*"|'[\w./-]*')"""
_CLAIM = rf"(?:true|false|!?has\({_FIELD}\)|{_FIELD} (?:==|!=|<=?|>=?) {_CONSTANT})"
_SURE = re.compile(rf"\s*{_CLAIM}(?: (?:&&|\|\|) {_CLAIM})*\s*")
# fmt: off
_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})
# fmt: on


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
                yield from formed(name, f"{here}.resourceNames[{number}]", path_segment_faults)
                if name in names[:number]:
                    yield duplicate(name, f"{here}.resourceNames[{number}]")
            yield from rule_causes(rule, here)


def path_segment_faults(name: str) -> list[str]:
    """What is wrong with a name that has to be a part of a path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def condition_causes(conditions: Sequence[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    """What is wrong with the conditions under which anything happens."""
    if len(conditions) > _MOST_CONDITIONS:
        why = f"must have at most {_MOST_CONDITIONS} items"
        yield Cause("FieldValueTooMany", path, f"Too many: {len(conditions)}: {why}")
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        yield from expression_causes(condition.get("expression") or "", f"{here}.expression")
        yield from required(condition, here, "name")
        if name:
            yield from formed(name, f"{here}.name", label_name_faults)
        if name and any(each.get("name") == name for each in conditions[:index]):
            yield duplicate(name, f"{here}.name")


def expression_causes(expression: str, path: str, why: str = "") -> Iterator[Cause]:
    """What is wrong with an expression that is true or false.

    Args:
        why: is told of one that is not there.

    Raises:
        StatusError: 501, it would have to be compiled.
    """
    if not expression.strip():
        yield Cause.required(path, why)
    elif not _SURE.fullmatch(expression) or _RESERVED.intersection(re.findall(r"\.(\w+)", expression)):
        raise not_compiled(path)


def not_compiled(path: str) -> StatusError:
    """What is said of an expression that nobody can tell anything of."""
    return StatusError(501, "NotImplemented", f"this server does not compile CEL, and there is an expression: {path}")
