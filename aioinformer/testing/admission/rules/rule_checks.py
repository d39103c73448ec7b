"""What a definition may have for rules: ones that compile, and tell what is wrong in one line.

Rules are compiled only where everything else about the schema is right. What a rule may cost is not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.checking import CheckFault
from aioinformer.testing.admission.rules.field_names import FieldNameError, field_name
from aioinformer.testing.admission.rules.rule_values import schema_type
from aioinformer.testing.admission.rules.rules import compile_message, compile_rule
from aioinformer.testing.api.statuses import Cause, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.testing.admission.cel.types import Type

RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_form_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the rules of a node, but for the expressions themselves.

    Args:
        schema: the node.
        path: where it is.
    """
    for index, told in enumerate(schema.get(RULES) or ()):
        yield from _form_faults(told, schema, f"{path}.{RULES}[{index}]")


def _form_faults(told: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[Cause]:
    rule, message = (str(told.get(key) or "") for key in ("rule", "message"))
    if not rule.strip():
        yield Cause.required(f"{place}.rule", "rule is not specified")
    elif message and not message.strip():
        yield Cause.invalid(f"{place}.message", shown(message), "must be non-empty if specified")
    elif _has_breaks(message.strip()):
        yield Cause.invalid(f"{place}.message", shown(message), "must not contain line breaks")
    elif _has_breaks(rule.strip()) and not message.strip():
        yield Cause.required(f"{place}.message", "message must be specified if rule contains line breaks")
    if (computed := str(told.get("messageExpression") or "")) and not computed.strip():
        yield Cause.required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
    if (reason := told.get("reason")) is not None and reason not in _REASONS:
        yield Cause.unsupported(f"{place}.reason", shown(reason), _REASONS)
    if field := str(told.get("fieldPath") or ""):
        yield from _path_faults(field, schema, f"{place}.fieldPath")


def _path_faults(field: str, schema: Mapping[str, Any], place: str) -> Iterator[Cause]:
    if not field.strip():
        yield Cause.invalid(place, shown(field), "must be non-empty if specified")
    if _has_breaks(field):
        yield Cause.invalid(place, shown(field), "must not contain line breaks")
    try:
        field_name(field, schema)
    except FieldNameError:
        yield Cause.invalid(place, shown(field), "must be a valid path")


def rule_faults(
    schema: Mapping[str, Any], path: str, *, is_object: bool = True, uncompared: str = ""
) -> Iterator[Cause]:
    """Every rule of a schema that does not compile.

    Args:
        schema: one whose form is right.
        path: where it is.
        is_object: whether it is of whole objects.
        uncompared: the path above it from which on nothing is compared with what it was, "" if there is none.
    """
    properties, items, others = (schema.get(key) for key in ("properties", "items", "additionalProperties"))
    if schema.get("x-kubernetes-map-type", "granular") not in ("granular", "atomic"):
        uncompared = uncompared or path
    for name, below in (properties or {}).items():
        yield from _below(below, f"{path}.properties[{name}]", uncompared)
    if isinstance(others, dict):
        yield from _below(others, f"{path}.additionalProperties", uncompared)
    if isinstance(items, dict):
        is_keyed = schema.get("x-kubernetes-list-type") == "map"
        yield from _below(items, f"{path}.items", uncompared or ("" if is_keyed else path))
    if not schema.get(RULES):
        return
    type_ = schema_type(schema, is_object=is_object)
    if type_ is None:
        why = "internal error: failed to retrieve type information for x-kubernetes-validations"
        yield Cause("InternalError", f"{path}.{RULES}", f"Internal error: {why}")
        return
    for index, told in enumerate(schema[RULES]):
        yield from _expression_faults(told, type_, f"{path}.{RULES}[{index}]", uncompared)


def _below(schema: Mapping[str, Any], path: str, uncompared: str) -> Iterator[Cause]:
    is_object = bool(schema.get("x-kubernetes-embedded-resource"))
    yield from rule_faults(schema, path, is_object=is_object, uncompared=uncompared)


def _expression_faults(told: Mapping[str, Any], type_: Type, place: str, uncompared: str) -> Iterator[Cause]:
    try:
        program = compile_rule(told, type_)
    except CheckFault as fault:
        yield Cause.invalid(f"{place}.rule", _shown_rule(told), str(fault))
        return
    if told.get("messageExpression"):
        try:
            compile_message(told, type_)
        except CheckFault as fault:
            yield Cause.invalid(f"{place}.messageExpression", _shown_rule(told), str(fault))
    if "oldSelf" in program.names:
        if uncompared:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncompared}"
            yield Cause.invalid(f"{place}.rule", shown(told["rule"]), why)
    elif told.get("optionalOldSelf") is not None:
        why = "may not be set if oldSelf is not used in rule"
        yield Cause.invalid(f"{place}.optionalOldSelf", shown(told["optionalOldSelf"]), why)


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _shown_rule(told: Mapping[str, Any]) -> str:
    """A rule as Go shows it."""
    text = shown(
        {
            "Rule": told["rule"],
            "Message": told.get("message", ""),
            "MessageExpression": told.get("messageExpression", ""),
            "Reason": told.get("reason"),
            "FieldPath": told.get("fieldPath", ""),
            "OptionalOldSelf": told.get("optionalOldSelf"),
        }
    )
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
