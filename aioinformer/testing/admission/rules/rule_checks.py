"""Validation of the rules of a definition: each must compile, and its message must be one line.

Rules are compiled only if the rest of the schema is valid. Their cost is not limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.checking import CheckFault
from aioinformer.testing.admission.rules.field_names import FieldNameError, field_name
from aioinformer.testing.admission.rules.rule_values import schema_type
from aioinformer.testing.admission.rules.rules import compile_message, compile_rule
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.testing.admission.cel.types import Type

RULES = "x-kubernetes-validations"
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_form_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the rules of a node, except for their expressions.

    Args:
        schema: the node.
        path: of the node.
    """
    for index, declaration in enumerate(schema.get(RULES) or ()):
        yield from _form_faults(declaration, schema, f"{path}.{RULES}[{index}]")


def _form_faults(declaration: Mapping[str, Any], schema: Mapping[str, Any], rule_path: str) -> Iterator[Cause]:
    rule, message = (str(declaration.get(key) or "") for key in ("rule", "message"))
    if not rule.strip():
        yield Cause.required(f"{rule_path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield Cause.invalid(f"{rule_path}.message", quote(message), "must be non-empty if specified")
    elif _has_breaks(message.strip()):
        yield Cause.invalid(f"{rule_path}.message", quote(message), "must not contain line breaks")
    elif _has_breaks(rule.strip()) and not message.strip():
        yield Cause.required(f"{rule_path}.message", "message must be specified if rule contains line breaks")
    if (computed := str(declaration.get("messageExpression") or "")) and not computed.strip():
        yield Cause.required(f"{rule_path}.messageExpression", "messageExpression must be non-empty if specified")
    if (reason := declaration.get("reason")) is not None and reason not in _REASONS:
        yield Cause.unsupported(f"{rule_path}.reason", quote(reason), _REASONS)
    if field := str(declaration.get("fieldPath") or ""):
        yield from _path_faults(field, schema, f"{rule_path}.fieldPath")


def _path_faults(field: str, schema: Mapping[str, Any], rule_path: str) -> Iterator[Cause]:
    if not field.strip():
        yield Cause.invalid(rule_path, quote(field), "must be non-empty if specified")
    if _has_breaks(field):
        yield Cause.invalid(rule_path, quote(field), "must not contain line breaks")
    try:
        field_name(field, schema)
    except FieldNameError:
        yield Cause.invalid(rule_path, quote(field), "must be a valid path")


def rule_faults(
    schema: Mapping[str, Any], path: str, *, is_object: bool = True, uncorrelatable: str = ""
) -> Iterator[Cause]:
    """Yield a cause for each rule of a schema that does not compile.

    Args:
        schema: a schema whose form is valid.
        path: of the schema.
        is_object: whether the schema describes a whole object.
        uncorrelatable: the path of the closest parent whose values cannot be correlated with old ones, or "".
    """
    properties, items, others = (schema.get(key) for key in ("properties", "items", "additionalProperties"))
    if schema.get("x-kubernetes-map-type", "granular") not in ("granular", "atomic"):
        uncorrelatable = uncorrelatable or path
    for name, below in (properties or {}).items():
        yield from _below(below, f"{path}.properties[{name}]", uncorrelatable)
    if isinstance(others, dict):
        yield from _below(others, f"{path}.additionalProperties", uncorrelatable)
    if isinstance(items, dict):
        is_keyed = schema.get("x-kubernetes-list-type") == "map"
        yield from _below(items, f"{path}.items", uncorrelatable or ("" if is_keyed else path))
    if not schema.get(RULES):
        return
    type_ = schema_type(schema, is_object=is_object)
    if type_ is None:
        why = "internal error: failed to retrieve type information for x-kubernetes-validations"
        yield Cause("InternalError", f"{path}.{RULES}", f"Internal error: {why}")
        return
    for index, declaration in enumerate(schema[RULES]):
        yield from _expression_faults(declaration, type_, f"{path}.{RULES}[{index}]", uncorrelatable)


def _below(schema: Mapping[str, Any], path: str, uncorrelatable: str) -> Iterator[Cause]:
    is_object = bool(schema.get("x-kubernetes-embedded-resource"))
    yield from rule_faults(schema, path, is_object=is_object, uncorrelatable=uncorrelatable)


def _expression_faults(
    declaration: Mapping[str, Any], type_: Type, rule_path: str, uncorrelatable: str
) -> Iterator[Cause]:
    try:
        program = compile_rule(declaration, type_)
    except CheckFault as fault:
        yield Cause.invalid(f"{rule_path}.rule", _shown_rule(declaration), str(fault))
        return
    if declaration.get("messageExpression"):
        try:
            compile_message(declaration, type_)
        except CheckFault as fault:
            yield Cause.invalid(f"{rule_path}.messageExpression", _shown_rule(declaration), str(fault))
    if "oldSelf" in program.names:
        if uncorrelatable:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            yield Cause.invalid(f"{rule_path}.rule", quote(declaration["rule"]), why)
    elif declaration.get("optionalOldSelf") is not None:
        why = "may not be set if oldSelf is not used in rule"
        yield Cause.invalid(f"{rule_path}.optionalOldSelf", quote(declaration["optionalOldSelf"]), why)


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _shown_rule(declaration: Mapping[str, Any]) -> str:
    """Return a rule as Go shows it."""
    text = quote(
        {
            "Rule": declaration["rule"],
            "Message": declaration.get("message", ""),
            "MessageExpression": declaration.get("messageExpression", ""),
            "Reason": declaration.get("reason"),
            "FieldPath": declaration.get("fieldPath", ""),
            "OptionalOldSelf": declaration.get("optionalOldSelf"),
        }
    )
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
