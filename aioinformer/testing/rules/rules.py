"""Validation rules in CEL (`x-kubernetes-validations`).

A schema is compiled once, into a tree of the nodes that have rules in or below them. A rule sees the value of its node
as `self`, and the value before the update as `oldSelf`: the same field, or in list maps the item with the same keys. A
transition rule (one that uses `oldSelf`) is skipped if there is no old value.

An unchanged value that violates a rule only causes a warning, unless the rule is a transition rule.

The cost of evaluation is not limited.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.cel.checking import CheckFault
from aioinformer.cel.programs import Program, compile_expression
from aioinformer.cel.schemas import make_reader, schema_type
from aioinformer.cel.types import BOOL, STRING, Type, optional_of
from aioinformer.cel.values import NONE, EvaluationError, Optional, Unsupported
from aioinformer.testing.api.statuses import Cause, StatusError, warn
from aioinformer.testing.patches.json_patches import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from aioinformer.testing.api.served import Served

_LONGEST_MESSAGE = 5120
_MISSING = object()
_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
# Rules are not evaluated for objects with these faults.
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_MISSING = object()
_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
# Rules are not evaluated for objects with these faults.
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)


def rule_faults(
    served: Served, obj: Mapping[str, Any], old: Mapping[str, Any] | None, causes: Sequence[Cause]
) -> list[Cause]:
    """Return the violated rules of a custom resource. Warn of rules that unchanged values violate.

    Raises:
        StatusError: 501, a rule cannot be evaluated by this server.
    """
    rules = _rules(served)
    if rules is None:
        return []
    if any(cause.reason in _BLOCKING for cause in causes):
        return [Cause("FieldValueInvalid", "<nil>", "the rules were not checked because the object is invalid")]
    try:
        faults, tolerated = rule_causes(rules, obj, old)
    except RuleError as error:
        # Fail the request: an unchecked object must not pass as valid.
        why = f"this server cannot evaluate a rule of {served.resource.group_resource}: {error}"
        raise StatusError(501, "NotImplemented", why) from None
    for cause in tolerated:
        warn(f"{cause.field}: {cause.message}")
    return faults


@lru_cache(maxsize=64)
def _rules(served: Served) -> Rules | None:
    try:
        return None if served.schema is None else read_rules(served.schema)
    except CheckFault as fault:
        # Only definitions that were loaded from files can have such rules.
        why = f"a rule of {served.resource.group_resource} does not compile: {fault}"
        raise StatusError(501, "NotImplemented", why) from None


class RuleError(Exception):
    """This server cannot evaluate a rule. The message names the rule and what is missing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule.

    Attributes:
        message: the program of `messageExpression`, if any.
        field: the name of the reported field, relative to the rule's node; "" for the node itself.
    """

    declaration: Mapping[str, Any]
    program: Program
    message: Program | None
    field: str

    @property
    def is_transition_rule(self) -> bool:
        return "oldSelf" in self.program.names

    @property
    def text(self) -> str:
        """Return the text by which faults name the rule."""
        return str(self.declaration.get("message") or self.declaration["rule"]).strip()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a node of a schema, and of the nodes below it."""

    schema: Mapping[str, Any]
    read: Callable[[Any], Any]
    own_rules: tuple[Rule, ...]
    properties: Mapping[str, Rules]
    others: Rules | None
    items: Rules | None


@dataclass(frozen=True, slots=True)
class _Correlation:
    """The old value of a value, to decide whether it changed.

    Attributes:
        pair: value and old value; None if they cannot be correlated.
        above: the closest pair above it.
    """

    pair: tuple[Any, Any] | None = None
    above: tuple[Any, Any] | None = None

    @property
    def is_unchanged(self) -> bool:
        pair = self.pair or self.above
        return pair is not None and same(*pair)

    def below(self, value: Any, old: Any) -> _Correlation:
        if self.pair is None:
            return self
        return _Correlation(None if old is _MISSING else (value, old), self.pair)


def read_rules(schema: Mapping[str, Any]) -> Rules | None:
    """Compile the rules of a schema; return None if it has none.

    Raises:
        CheckFault: a rule does not compile.
    """
    return _read_node(schema, is_object=True)


def compile_rule(declaration: Mapping[str, Any], type_: Type) -> Program:
    """Compile a rule for values of a type.

    Raises:
        CheckFault: the rule does not compile.
    """
    program = _compile(str(declaration["rule"]), _variables(declaration, type_), "compilation failed")
    if program.type != BOOL:
        raise CheckFault("cel expression must evaluate to a bool")
    if program.fault:
        raise CheckFault(f"program instantiation failed: {program.fault}")
    return program


def compile_message(declaration: Mapping[str, Any], type_: Type) -> Program:
    """Compile the `messageExpression` of a rule.

    Raises:
        CheckFault: the expression does not compile.
    """
    source = str(declaration["messageExpression"])
    program = _compile(source, _variables(declaration, type_), "messageExpression compilation failed")
    if program.type != STRING:
        raise CheckFault("messageExpression must evaluate to a string")
    if program.fault:
        raise CheckFault(f"messageExpression instantiation failed: {program.fault}")
    return program


def _compile(source: str, variables: Mapping[str, Type], failed: str) -> Program:
    try:
        return compile_expression(source, variables)
    except CheckFault as fault:
        raise CheckFault(f"{failed}: {fault}") from None


def _variables(declaration: Mapping[str, Any], type_: Type) -> dict[str, Type]:
    return {"self": type_, "oldSelf": optional_of(type_) if declaration.get("optionalOldSelf") else type_}


def _read_node(schema: Any, *, is_object: bool = False) -> Rules | None:
    if not isinstance(schema, dict):
        return None
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    type_ = schema_type(schema, is_object=is_object)
    if type_ is None:
        return None
    own_rules = tuple(_rule(declaration, type_, schema) for declaration in schema.get("x-kubernetes-validations") or ())
    below = {name: _read_node(each) for name, each in (schema.get("properties") or {}).items()}
    properties = {name: rules for name, rules in below.items() if rules is not None}
    others, items = (_read_node(schema.get(part)) for part in ("additionalProperties", "items"))
    has_rules = own_rules or properties or others or items
    if has_rules:
        return Rules(schema, make_reader(schema, is_object=is_object), own_rules, properties, others, items)
    return None


def _rule(declaration: Mapping[str, Any], type_: Type, schema: Mapping[str, Any]) -> Rule:
    if declaration.get("messageExpression"):
        message = compile_message(declaration, type_)
    else:
        message = None
    try:
        field = field_name(declaration.get("fieldPath") or "", schema)
    except FieldNameError:
        field = ""
    return Rule(declaration, compile_rule(declaration, type_), message, field)


def rule_causes(
    rules: Rules, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> tuple[list[Cause], list[Cause]]:
    """Evaluate the rules for an object.

    Returns:
        The violations that reject the object, and those that only cause warnings.

    Raises:
        RuleError: this server cannot evaluate a rule.
    """
    correlation = _Correlation() if old is None else _Correlation((obj, old))
    faults: list[Cause] = []
    warnings: list[Cause] = []
    for cause, is_warning in _violations(rules, "", obj, _MISSING if old is None else old, correlation):
        (warnings if is_warning else faults).append(cause)
    return faults, warnings


def _violations(
    rules: Rules, path: str, value: Any, old: Any, correlation: _Correlation
) -> Iterator[tuple[Cause, bool]]:
    if value is None:
        return
    yield from _own_violations(rules, path, value, old, correlation)
    if isinstance(value, list) and rules.items is not None:
        former = _by_keys(old, rules.schema)
        for index, item in enumerate(value):
            was = former.get(_keys(item, rules.schema), _MISSING)
            yield from _violations(rules.items, f"{path}[{index}]", item, was, correlation.below(item, was))
    if isinstance(value, dict):
        for key, item in value.items():
            was = old.get(key, _MISSING) if isinstance(old, dict) else _MISSING
            # Objects are converted between versions, so these fields of the old object cannot be compared.
            is_converted = not path and key in ("apiVersion", "kind")
            inner = _Correlation() if is_converted else correlation.below(item, was)
            if key in rules.properties:
                yield from _violations(rules.properties[key], f"{path}.{key}" if path else key, item, was, inner)
            elif rules.others is not None:
                yield from _violations(rules.others, f"{path}[{key}]", item, was, inner)


def _keys(item: Any, schema: Mapping[str, Any]) -> str:
    names = schema.get("x-kubernetes-list-map-keys") or ()
    return json.dumps([item.get(name) for name in names] if isinstance(item, dict) else None)


def _by_keys(old: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return {}
    return {_keys(item, schema): item for item in old}


def _own_violations(
    rules: Rules, path: str, value: Any, old: Any, correlation: _Correlation
) -> Iterator[tuple[Cause, bool]]:
    if not rules.own_rules:
        return
    kind = f'"{rules.schema.get("type") or ""}"'
    field = path or "<nil>"
    has_old = old is not _MISSING and old is not None
    scope: dict[str, Any] = {}
    for rule in rules.own_rules:
        is_optional = bool(rule.declaration.get("optionalOldSelf"))
        if rule.is_transition_rule and not has_old and not is_optional:
            continue
        try:
            if "self" not in scope:
                scope["self"] = rules.read(value)
            if rule.is_transition_rule:
                former = rules.read(old) if has_old else None
                if is_optional:
                    former = Optional((former,)) if has_old else NONE
                scope["oldSelf"] = former
            holds = rule.program.evaluate(scope)
        except EvaluationError as error:
            yield Cause.invalid(field, kind, f"{error} evaluating rule: {rule.text}"), False
            continue
        except Unsupported as error:
            raise RuleError(f"the rule `{rule.declaration['rule']}` of {field}: {error}") from None
        if not holds:
            cause = _cause(rule, path, value, _message(rule, scope))
            yield cause, not rule.is_transition_rule and correlation.is_unchanged


def _message(rule: Rule, scope: Mapping[str, Any]) -> str:
    if rule.message is not None:
        try:
            text = str(rule.message.evaluate(scope)).strip()
        except (EvaluationError, KeyError):
            text = ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    return str(rule.declaration.get("message") or f"failed rule: {rule.text}").strip()


def _cause(rule: Rule, path: str, value: Any, message: str) -> Cause:
    field = ".".join(filter(None, (path, rule.field))) or "<nil>"
    reason = str(rule.declaration.get("reason") or "FieldValueInvalid")
    if isinstance(value, dict | list):
        shown = ""
    else:
        shown = f"{json.dumps(value, ensure_ascii=False)}: "
    kind = {"FieldValueForbidden": "Forbidden", "FieldValueRequired": "Required value"}.get(reason)
    return Cause(reason, field, f"{kind or f'Invalid value: {shown}'.removesuffix(': ')}: {message}")


class FieldNameError(Exception):
    """The path does not name a field of the schema."""


def field_name(path: str, schema: Mapping[str, Any]) -> str:
    """Return the name of a field relative to its rule; "" for an empty path.

    Args:
        path: the `fieldPath` of the rule.
        schema: the schema that has the rule.

    Raises:
        FieldNameError: the path does not name a field.
    """
    name = ""
    end = 0
    while end < len(path):
        match = _STEP.match(path, end)
        if match is None:
            raise FieldNameError(path)
        key = match[1] or re.sub(r"\\(.)", r"\1", match[2] or "")
        properties = schema.get("properties")
        others = schema.get("additionalProperties")
        if properties:
            if key not in properties:
                raise FieldNameError(path)
            name += f".{key}"
            schema = properties[key]
        elif isinstance(others, dict):
            name += f"[{key}]"
            schema = others
        else:
            raise FieldNameError(path)
        end = match.end()
    return name.lstrip(".")
