"""Validation of the schemas of a definition: they are structural, their defaults fit, their rules compile.

Rules are compiled only if the rest of the schema is valid. Their cost is not limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.cel.checking import CheckFault
from aioinformer.cel.schemas import schema_type
from aioinformer.cel.values import EvaluationError
from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.rules.rules import FieldNameError, compile_message, compile_rule, field_name
from aioinformer.testing.schemas.structural import value_causes
from aioinformer.testing.schemas.text_formats import schema_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.cel.types import Type

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("$ref", "patternProperties", "definitions", "dependencies", "additionalItems", "id", "uniqueItems")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_RULES = "x-kubernetes-validations"
_LIST_TYPE = "x-kubernetes-list-type"
_MAP_TYPE = "x-kubernetes-map-type"
_KEYS = "x-kubernetes-list-map-keys"
#: The values of these keywords, and the type of node that may have them.
_KINDS = {_LIST_TYPE: ("array", ("atomic", "set", "map")), _MAP_TYPE: ("object", ("atomic", "granular"))}
#: Keywords that are forbidden in `allOf`, `anyOf`, `oneOf` and `not` of a structural schema.
_FORBIDDEN_IN_CONDITIONS = (
    "type",
    "additionalProperties",
    "default",
    "title",
    "description",
    "nullable",
    _PRESERVE,
    _EMBEDDED,
    _INT_OR_STRING,
    _KEYS,
    _LIST_TYPE,
    _MAP_TYPE,
    _RULES,
)
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def schema_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield everything that is wrong with a schema."""
    faults = [*_root_faults(schema, path), *_node_faults(schema, path, is_root=True)]
    yield from faults or _rule_faults(schema, path)


def _root_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if (type_ := schema.get("type")) and type_ != "object":
        yield Cause.invalid(f"{path}.type", quote(type_), "must be object at the root")
    if schema.get("nullable"):
        yield Cause.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    metadata = (schema.get("properties") or {}).get("metadata")
    here = f"{path}.properties[metadata]"
    if metadata is not None:
        if metadata.get("type") != "object":
            yield Cause.invalid(f"{here}.type", quote(metadata.get("type", "")), "must be object")
        if set(metadata.get("properties") or ()) - {"name", "generateName"}:
            yield Cause.forbidden(here, "must not specify anything other than name and generateName")


def _node_faults(schema: Mapping[str, Any], path: str, *, is_root: bool = False) -> Iterator[Cause]:
    unknown = [Cause.forbidden(f"{path}.{key}", "is not supported") for key in _UNSUPPORTED if schema.get(key)]
    if isinstance(schema.get("items"), list):
        unknown.append(Cause.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if unknown:
        yield from unknown
        return
    for below, where in _below(schema, path):
        yield from _node_faults(below, where)
    if schema.get("properties") and schema.get("additionalProperties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield Cause.forbidden(f"{path}.additionalProperties", why)
    type_ = schema.get("type")
    if not type_ and (is_root or not (schema.get(_PRESERVE) or schema.get(_INT_OR_STRING))):
        yield Cause.required(f"{path}.type", "must not be empty")
    elif type_ and type_ not in _TYPES:
        yield Cause.unsupported(f"{path}.type", quote(type_), _TYPES)
    if type_ == "array" and not schema.get("items"):
        yield Cause.required(f"{path}.items", "must be specified")
    yield from _kind_faults(schema, path)
    for keyword in ("allOf", "anyOf", "oneOf", "not"):
        for part in (schema.get(keyword) or ()) if keyword != "not" else [schema.get("not") or {}]:
            if not schema.get(_INT_OR_STRING):
                yield from _condition_faults(part, f"{path}.{keyword}")
    if "pattern" in schema:
        try:
            schema_pattern(schema["pattern"])
        except EvaluationError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield Cause.invalid(f"{path}.pattern", quote(schema["pattern"]), why)
    yield from _default_faults(schema, f"{path}.default")
    for index, declaration in enumerate(schema.get(_RULES) or ()):
        yield from _form_faults(declaration, schema, f"{path}.{_RULES}[{index}]")


def _below(schema: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    for name, below in (schema.get("properties") or {}).items():
        yield below, f"{path}.properties[{name}]"
    for keyword in ("items", "additionalProperties"):
        if isinstance(below := schema.get(keyword), dict):
            yield below, f"{path}.{keyword}"


def _kind_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check what the extensions for lists and maps require."""
    type_ = schema.get("type", "")
    keys = schema.get(_KEYS) or []
    items = schema.get("items") or {}
    for key, (wanted, known) in _KINDS.items():
        given = schema.get(key)
        if given is not None and type_ != wanted:
            yield Cause.invalid(f"{path}.type", quote(type_), f"must be {wanted} if {key} is specified")
        if given is not None and given not in known:
            yield Cause.unsupported(f"{path}.{key}", quote(given), known)
    if schema.get(_PRESERVE) is False:
        yield Cause.invalid(f"{path}.{_PRESERVE}", "false", "must be true or undefined")
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not schema.get("properties"):
        yield Cause.required(f"{path}.properties", f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}")
    if keys and schema.get(_LIST_TYPE) != "map":
        yield Cause.required(f"{path}.{_LIST_TYPE}", f"must be map if {_KEYS} is non-empty")
    if schema.get(_LIST_TYPE) == "set":
        for kind, key in (("object", _MAP_TYPE), ("array", _LIST_TYPE)):
            if items.get("type") == kind and items.get(key) != "atomic":
                yield Cause.invalid(f"{path}.items.{key}", quote(items.get(key)), "must be atomic in a set")
    if schema.get(_LIST_TYPE) != "map":
        return
    properties = items.get("properties") or {}
    if not keys:
        yield Cause.required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    elif items and items.get("type") != "object":
        why = f"must be object if parent array's {_LIST_TYPE} is map"
        yield Cause.invalid(f"{path}.items.type", quote(items.get("type", "")), why)
    elif len(set(keys)) < len(keys) or not set(keys).issubset(properties):
        yield Cause.invalid(f"{path}.{_KEYS}", quote(keys), "entries must all be names of item properties, each once")
    for key in keys:
        if key in properties and key not in (items.get("required") or ()) and "default" not in properties[key]:
            why = f"this property is in {_KEYS}, so it must have a default or be a required property"
            yield Cause.required(f"{path}.items.properties[{key}].default", why)


def _condition_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for key in _FORBIDDEN_IN_CONDITIONS:
        if schema.get(key):
            yield Cause.forbidden(f"{path}.{key}", "must not be set to be structural")
    for below, where in _below(schema, path):
        yield from _condition_faults(below, where)


def _default_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    default = schema.get("default")
    if _has_unknown_fields(default, schema):
        yield Cause.invalid(path, quote(default), "must not have unknown fields")
    if default is not None and schema.get("type") in _TYPES:
        for cause in value_causes(default, schema):
            yield Cause(cause.reason, f"{path}.{cause.field}" if cause.field else path, cause.message)


def _has_unknown_fields(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether the value has fields that pruning would drop."""
    if isinstance(value, list):
        return any(_has_unknown_fields(each, schema.get("items") or {}) for each in value)
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    if not isinstance(value, dict) or schema.get(_PRESERVE) or others is True:
        return False
    return any(
        not (key in properties or isinstance(others, dict))
        or _has_unknown_fields(below, properties.get(key) or others or {})
        for key, below in value.items()
    )


def _form_faults(declaration: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check a rule, except for its expressions."""
    rule, message = (str(declaration.get(key) or "") for key in ("rule", "message"))
    if not rule.strip():
        yield Cause.required(f"{path}.rule", "rule is not specified")
    elif (message and not message.strip()) or "\n" in message.strip():
        yield Cause.invalid(f"{path}.message", quote(message), "must be one line, and non-empty if specified")
    elif "\n" in rule.strip() and not message:
        yield Cause.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if (reason := declaration.get("reason")) is not None and reason not in _REASONS:
        yield Cause.unsupported(f"{path}.reason", quote(reason), _REASONS)
    try:
        field_name(str(declaration.get("fieldPath") or ""), schema)
    except FieldNameError:
        yield Cause.invalid(f"{path}.fieldPath", quote(declaration["fieldPath"]), "must be a valid path")


def _rule_faults(
    schema: Mapping[str, Any], path: str, *, is_object: bool = True, uncorrelatable: str = ""
) -> Iterator[Cause]:
    """Yield a cause for each rule of a schema that does not compile.

    Args:
        is_object: whether the schema describes a whole object.
        uncorrelatable: the path of the closest parent whose values cannot be correlated with old ones, or "".
    """
    for below, where in _below(schema, path):
        in_list = where == f"{path}.items" and schema.get(_LIST_TYPE) != "map"
        outer = uncorrelatable or (path if in_list else "")
        yield from _rule_faults(below, where, is_object=bool(below.get(_EMBEDDED)), uncorrelatable=outer)
    if not schema.get(_RULES):
        return
    type_ = schema_type(schema, is_object=is_object)
    if type_ is None:
        yield Cause("InternalError", f"{path}.{_RULES}", "Internal error: rules cannot see values of this type")
        return
    for index, declaration in enumerate(schema[_RULES]):
        yield from _expression_faults(declaration, type_, f"{path}.{_RULES}[{index}]", uncorrelatable)


def _expression_faults(declaration: Mapping[str, Any], type_: Type, path: str, uncorrelatable: str) -> Iterator[Cause]:
    rule = quote(declaration["rule"])
    try:
        program = compile_rule(declaration, type_)
    except CheckFault as fault:
        yield Cause.invalid(f"{path}.rule", rule, str(fault))
        return
    if declaration.get("messageExpression"):
        try:
            compile_message(declaration, type_)
        except CheckFault as fault:
            yield Cause.invalid(f"{path}.messageExpression", quote(declaration["messageExpression"]), str(fault))
    if "oldSelf" in program.names and uncorrelatable:
        why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        yield Cause.invalid(f"{path}.rule", rule, why)
    elif "oldSelf" not in program.names and declaration.get("optionalOldSelf") is not None:
        yield Cause.invalid(f"{path}.optionalOldSelf", "", "may not be set if oldSelf is not used in rule")
