"""Rules in CEL (`x-kubernetes-validations`): what an object must be beyond what its schema says.

A schema is read once, and becomes a tree of those nodes that have rules in them or below them. Each rule looks at the
value of its node, `self`, and at what it was before an update, `oldSelf`: the same field, or in lists that are maps
the item with the same keys. A rule of changes is passed over where there is nothing to compare.

What an update leaves as it was may go on breaking a rule: that is only warned of, unless the rule is one of changes.

How much it costs to evaluate rules is not limited here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.checking import CheckFault
from aioinformer.testing.admission.cel.programs import Program, compile_expression
from aioinformer.testing.admission.cel.types import BOOL, STRING, Type, optional_of
from aioinformer.testing.admission.cel.values import NONE, EvaluationError, Optional, Unsupported
from aioinformer.testing.admission.rules.field_names import FieldNameError, field_name
from aioinformer.testing.admission.rules.rule_values import reader, schema_type
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.patches.json_patches import same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_LONGEST_MESSAGE = 5120
_MISSING = object()
_CAUSES = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
}


class RuleError(Exception):
    """A rule cannot be evaluated here. The text names it and what is missing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that can be evaluated.

    Attributes:
        told: the rule as it was written.
        program: the rule itself.
        message: what tells of a fault, if that is computed.
        field: name of the field that is to blame, below that of the rule; "" for the value itself.
    """

    told: Mapping[str, Any]
    program: Program
    message: Program | None
    field: str

    @property
    def is_of_changes(self) -> bool:
        return "oldSelf" in self.program.names

    @property
    def text(self) -> str:
        """What faults call it."""
        return str(self.told.get("message") or self.told["rule"]).strip()


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a node of a schema, and of the nodes below it."""

    schema: Mapping[str, Any]
    read: Callable[[Any], Any]
    own: tuple[Rule, ...]
    properties: Mapping[str, Rules]
    others: Rules | None
    items: Rules | None


@dataclass(frozen=True, slots=True)
class _Compared:
    """What a value was before, for telling what did not change.

    Attributes:
        pair: value and former value, None where there is none to compare.
        above: the nearest pair above it.
    """

    pair: tuple[Any, Any] | None = None
    above: tuple[Any, Any] | None = None

    @property
    def is_same(self) -> bool:
        pair = self.pair or self.above
        return pair is not None and same(*pair)

    def below(self, value: Any, old: Any) -> _Compared:
        if self.pair is None:
            return self
        return _Compared(None if old is _MISSING else (value, old), self.pair)


def read_rules(schema: Mapping[str, Any]) -> Rules | None:
    """The rules of a schema, None if it has none.

    Args:
        schema: the `openAPIV3Schema` of a version.

    Raises:
        CheckFault: one of them does not compile.
    """
    return _read(schema, is_object=True)


def compile_rule(told: Mapping[str, Any], type_: Type) -> Program:
    """A rule of values of a type.

    Raises:
        CheckFault: it does not compile.
    """
    program = _compiled(str(told["rule"]), _variables(told, type_), "compilation failed")
    if program.type != BOOL:
        raise CheckFault("cel expression must evaluate to a bool")
    if program.fault:
        raise CheckFault(f"program instantiation failed: {program.fault}")
    return program


def compile_message(told: Mapping[str, Any], type_: Type) -> Program:
    """What computes the message of a rule.

    Raises:
        CheckFault: it does not compile.
    """
    source = str(told["messageExpression"])
    program = _compiled(source, _variables(told, type_), "messageExpression compilation failed")
    if program.type != STRING:
        raise CheckFault("messageExpression must evaluate to a string")
    if program.fault:
        raise CheckFault(f"messageExpression instantiation failed: {program.fault}")
    return program


def _compiled(source: str, variables: Mapping[str, Type], failed: str) -> Program:
    try:
        return compile_expression(source, variables)
    except CheckFault as fault:
        raise CheckFault(f"{failed}: {fault}") from None


def _variables(told: Mapping[str, Any], type_: Type) -> dict[str, Type]:
    return {"self": type_, "oldSelf": optional_of(type_) if told.get("optionalOldSelf") else type_}


def _read(schema: Any, *, is_object: bool = False) -> Rules | None:
    if not isinstance(schema, dict):
        return None
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    type_ = schema_type(schema, is_object=is_object)
    if type_ is None:
        return None
    own = tuple(_rule(told, type_, schema) for told in schema.get("x-kubernetes-validations") or ())
    below = {name: _read(each) for name, each in (schema.get("properties") or {}).items()}
    properties = {name: rules for name, rules in below.items() if rules is not None}
    others, items = (_read(schema.get(part)) for part in ("additionalProperties", "items"))
    has_some = own or properties or others or items
    return Rules(schema, reader(schema, is_object=is_object), own, properties, others, items) if has_some else None


def _rule(told: Mapping[str, Any], type_: Type, schema: Mapping[str, Any]) -> Rule:
    message = compile_message(told, type_) if told.get("messageExpression") else None
    try:
        field = field_name(told.get("fieldPath") or "", schema)
    except FieldNameError:
        field = ""
    return Rule(told, compile_rule(told, type_), message, field)


def rule_causes(
    rules: Rules, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> tuple[list[Cause], list[Cause]]:
    """Everything in an object that breaks a rule.

    Args:
        rules: of its schema.
        obj: fits the schema.
        old: what it replaces.

    Returns:
        What stands in the way, and what is only to be warned of.

    Raises:
        RuleError: a rule cannot be evaluated here.
    """
    compared = _Compared() if old is None else _Compared((obj, old))
    faults: list[Cause] = []
    warnings: list[Cause] = []
    for cause, is_warning in _broken(rules, "", obj, _MISSING if old is None else old, compared):
        (warnings if is_warning else faults).append(cause)
    return faults, warnings


def _broken(rules: Rules, path: str, value: Any, old: Any, compared: _Compared) -> Iterator[tuple[Cause, bool]]:
    if value is None:
        return
    yield from _own(rules, path, value, old, compared)
    if isinstance(value, list) and rules.items is not None:
        former = _by_keys(old, rules.schema)
        for index, item in enumerate(value):
            was = former.get(_keys(item, rules.schema), _MISSING)
            yield from _broken(rules.items, f"{path}[{index}]", item, was, compared.below(item, was))
    if isinstance(value, dict):
        for key, item in value.items():
            was = old.get(key, _MISSING) if isinstance(old, dict) else _MISSING
            # Versions are converted: what the old object says of them is not what it said.
            is_hidden = not path and key in ("apiVersion", "kind")
            inner = _Compared() if is_hidden else compared.below(item, was)
            if key in rules.properties:
                yield from _broken(rules.properties[key], f"{path}.{key}" if path else key, item, was, inner)
            elif rules.others is not None:
                yield from _broken(rules.others, f"{path}[{key}]", item, was, inner)


def _keys(item: Any, schema: Mapping[str, Any]) -> str:
    names = schema.get("x-kubernetes-list-map-keys") or ()
    return json.dumps([item.get(name) for name in names] if isinstance(item, dict) else None)


def _by_keys(old: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return {}
    return {_keys(item, schema): item for item in old}


def _own(rules: Rules, path: str, value: Any, old: Any, compared: _Compared) -> Iterator[tuple[Cause, bool]]:
    if not rules.own:
        return
    kind = f'"{rules.schema.get("type") or ""}"'
    field = path or "<nil>"
    has_old = old is not _MISSING and old is not None
    scope: dict[str, Any] = {}
    for rule in rules.own:
        is_optional = bool(rule.told.get("optionalOldSelf"))
        if rule.is_of_changes and not has_old and not is_optional:
            continue
        try:
            if "self" not in scope:
                scope["self"] = rules.read(value)
            if rule.is_of_changes:
                former = rules.read(old) if has_old else None
                scope["oldSelf"] = (Optional((former,)) if has_old else NONE) if is_optional else former
            holds = rule.program.evaluate(scope)
        except EvaluationError as error:
            yield Cause.invalid(field, kind, _unevaluated(error, rule)), False
            continue
        except Unsupported as error:
            raise RuleError(f"the rule `{rule.told['rule']}` of {field}: {error}") from None
        if not holds:
            cause = _cause(rule, path, value, _message(rule, scope))
            yield cause, not rule.is_of_changes and compared.is_same


def _unevaluated(error: EvaluationError, rule: Rule) -> str:
    if str(error).startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {why}: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _message(rule: Rule, scope: Mapping[str, Any]) -> str:
    if rule.message is not None:
        try:
            text = str(rule.message.evaluate(scope)).strip()
        except (EvaluationError, KeyError):
            text = ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    return str(rule.told.get("message") or f"failed rule: {rule.text}").strip()


def _cause(rule: Rule, path: str, value: Any, message: str) -> Cause:
    field = ".".join(filter(None, (path, rule.field))) or "<nil>"
    reason = str(rule.told.get("reason") or "FieldValueInvalid")
    shown = "" if isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False)
    if reason == "FieldValueDuplicate":
        return Cause(reason, field, f"Duplicate value: {shown}" if shown else "Duplicate value")
    if reason == "FieldValueInvalid" and shown:
        return Cause.invalid(field, shown, message)
    return Cause(reason, field, f"{_CAUSES[reason]}: {message}")
