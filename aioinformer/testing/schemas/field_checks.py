"""Objects held against the schemas of their kinds.

Fields that a kind does not have are dropped, and told or refused, as the request's `fieldValidation` wants it.

`kubectl create` and `kubectl apply` ask for "Strict", which is how a typing error in a manifest is found. Without the
parameter a server warns. The field is gone from what is stored in any case: a Go struct has no place for it, and custom
resources are pruned to their schema.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.checking import CheckFault
from aioinformer.testing.admission.kinds.defaults import default_object
from aioinformer.testing.admission.rules.rules import RuleError, Rules, read_rules, rule_causes
from aioinformer.testing.api import statuses
from aioinformer.testing.api.protobuf.go_json import go_json
from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.api.warnings import warn
from aioinformer.testing.schemas.go_values import GoValueError, decode_values
from aioinformer.testing.schemas.openapi_v3 import custom_schema, patch_schema
from aioinformer.testing.schemas.structural import default_fields, schema_causes
from aioinformer.testing.schemas.typed_fields import FieldType
from aioinformer.testing.schemas.value_types import go_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.patches.media_types import PatchSchema

_NESTED = (dict, list)
# Larger numbers Go writes with an exponent.
_IN_FULL = 1e21
# Rules are not for objects that are not even of the form that they are written for.
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def check_object(served: Served, obj: dict[str, Any], directive: str, repeated: Sequence[str] = ()) -> list[str]:
    """Makes of the object of a create or update request what the server's decoder makes of it.

    Args:
        obj: is changed: values as Go writes them, unknown fields dropped.
        directive: "Ignore", "Warn" or "Strict".
        repeated: what is to be told of its form.

    Returns:
        What to warn of.

    Raises:
        StatusError: 400, a value does not fit its field; or there are unknown fields, and the client is strict.
    """
    resource = served.resource
    prefix = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    try:
        check_values(served, obj)
    except GoValueError as error:
        raise statuses.bad_request(f"{prefix}: {error}") from None
    unknown = drop_unknown_fields(served, obj)
    told = [*_not_within(repeated, unknown, served), *unknown]
    if told and directive == "Strict":
        if told[0].startswith("line "):
            told[:1] = [f"yaml: unmarshal errors:\n  {told[0]}"]
        raise statuses.bad_request(f"{prefix}: strict decoding error: {', '.join(told)}")
    return told if directive == "Warn" else []


def check_values(served: Served, obj: dict[str, Any], *, converted: bool = False) -> None:
    """Writes values as Go does.

    Args:
        obj: of any kind; what the values of a custom resource are is seen when its schema is checked.
        converted: whether the server makes the object from maps rather than from JSON.

    Raises:
        GoValueError: one does not fit its field.
    """
    if not served.custom and (schema := kind_schema(served)) is not None:
        decode_values(obj, schema.schemas, schema.node, served.resource.kind, converted=converted)


def check_patched(
    served: Served,
    obj: dict[str, Any],
    directive: str,
    shown: Callable[[], str],
    *,
    converted: bool,
    repeated: Sequence[str] = (),
) -> list[str]:
    """Drops unknown fields from what a patch made of an object.

    Args:
        obj: is changed.
        directive: "Ignore", "Warn" or "Strict".
        shown: gives what the server shows as the value that is invalid: the patch, or the patched object.
        converted: whether the server makes the object from maps rather than from JSON, as it does after a strategic
            merge patch.

    Returns:
        What to warn of.

    Raises:
        StatusError: 422, a value does not fit its field; or there are unknown fields, and the client is strict.
    """
    text = shown()
    has_version = served.custom or converted or bool(obj.get("apiVersion"))
    try:
        if has_version:
            check_values(served, obj, converted=converted)
    except GoValueError as error:
        raise unfit_patch(text, error.converting if converted and error.converting else str(error)) from None
    unknown = drop_unknown_fields(served, obj) if has_version else _drop_all_fields(obj)
    told = [*_not_within(repeated, unknown, served), *unknown]
    if told and directive == "Strict":
        raise unfit_patch(text, f"strict decoding error: {', '.join(told)}")
    return told if directive == "Warn" else []


def _not_within(repeated: Sequence[str], unknown: Sequence[str], served: Served) -> Sequence[str]:
    """What is told of repeated keys, but for those in fields that structs do not have: nobody looks into these."""
    if served.custom or not repeated:
        return repeated
    names = [each.removeprefix('unknown field "').removesuffix('"') for each in unknown]
    within = tuple(f'duplicate field "{name}{mark}' for name in names for mark in ".[")
    return [each for each in repeated if not each.startswith(within)]


def _drop_all_fields(obj: dict[str, Any]) -> list[str]:
    """Drops what is unknown in an object of no version: the form that the server has for itself has other names."""
    unknown = sorted(obj.keys() - {"kind", "apiVersion"})
    for name in unknown:
        del obj[name]
    return [f'unknown field "{name}"' for name in unknown]


def unfit_patch(shown: str, why: str) -> StatusError:
    """The refusal of what a patch has made.

    Args:
        shown: what the server shows as the value that is invalid.
        why: what is wrong with it.
    """
    quoted = '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'
    cause = Cause.invalid("patch", quoted, why)
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field}]
    message = f' "" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, details={"causes": causes})


def fill_defaults(served: Served, obj: dict[str, Any]) -> None:
    """Says what the client left out."""
    if served.schema is not None:
        default_fields(obj, served.schema)
    elif not served.custom:
        _take_form(obj)
        default_object(served.resource.group_resource, obj)


def _take_form(obj: dict[str, Any]) -> None:
    """Gives an object the form that it has as a struct; its metadata stay the mapping that they are."""
    written, metadata = dict(go_json(obj)), obj["metadata"]
    kept = dict(written.pop("metadata"))
    metadata.clear()
    metadata.update(kept)
    obj.clear()
    obj.update({"kind": written.pop("kind"), "apiVersion": written.pop("apiVersion"), "metadata": metadata} | written)


def check_schema(served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None = None) -> None:
    """Checks the values of a custom resource, and warns of rules that what did not change goes on breaking.

    Args:
        obj: about to be stored; is changed: once it is checked, whole numbers are written without a point.
        old: what it replaces. What was wrong in it already, under a schema that has become narrower since, does not
            stand in the way of a change.

    Raises:
        StatusError: 422, with everything that its schema does not allow; 501, a rule cannot be evaluated here.
    """
    if not served.custom:
        return
    causes = [] if served.schema is None else schema_causes(obj, served.schema)
    _with_whole_numbers(obj)
    if served.schema is None:
        return
    if causes and old is not None:
        known = schema_causes(old, served.schema)
        causes = [cause for cause in causes if cause not in known]
    if (rules := _rules(served)) is not None:
        causes += _broken_rules(served, rules, obj, old, causes)
    if causes:
        raise statuses.invalid_object(served.resource, str(obj["metadata"].get("name") or ""), causes)


def _broken_rules(
    served: Served, rules: Rules, obj: Mapping[str, Any], old: Mapping[str, Any] | None, causes: Sequence[Cause]
) -> list[Cause]:
    if any(cause.reason in _BLOCKING for cause in causes):
        return [Cause("FieldValueInvalid", "<nil>", f"Invalid value: null: {_RULES_NOT_CHECKED}")]
    try:
        broken, tolerated = rule_causes(rules, obj, old)
    except RuleError as error:
        # Nobody should take for right what was not looked at.
        why = f"this server cannot evaluate a rule of {served.resource.group_resource}: {error}"
        raise StatusError(501, "NotImplemented", why) from None
    for cause in tolerated:
        warn(f"{cause.field}: {cause.message}")
    return broken


@lru_cache(maxsize=64)
def _rules(served: Served) -> Rules | None:
    try:
        return None if served.schema is None else read_rules(served.schema)
    except CheckFault as fault:
        # Such a definition was not asked for, but loaded.
        why = f"a rule of {served.resource.group_resource} does not compile: {fault}"
        raise StatusError(501, "NotImplemented", why) from None


def warning_headers(warnings: Sequence[str]) -> list[str]:
    """The `Warning` headers, one for each text that a header can have: none that has control characters."""
    plain = (each for each in warnings if not _CONTROL.search(each))
    return [f'299 - "{text}"' for text in (each.replace("\\", "\\\\").replace('"', '\\"') for each in plain)]


def drop_unknown_fields(served: Served, obj: dict[str, Any]) -> list[str]:
    """Removes the fields that the kind does not have.

    Returns:
        The server's words for each of them, in the order of the object; those of a custom resource are sorted.
    """
    type_ = kind_type(served)
    unknown: list[str] = []
    if type_ is not None:
        _drop(obj, type_, "", served.custom, unknown)
    return sorted(unknown) if served.custom else unknown


def kind_schema(served: Served) -> PatchSchema | None:
    """The schema of a kind, None if the server knows none (beta versions that were added by hand)."""
    resource = served.resource
    if not served.custom:
        return patch_schema(resource.api_version, resource.kind)
    return _custom_schema(served) if served.schema is not None else None


@lru_cache(maxsize=256)
def kind_type(served: Served) -> FieldType | None:
    """The same schema as what says which fields there are."""
    schema = kind_schema(served)
    return None if schema is None else FieldType(schema.schemas, schema.node)


@lru_cache(maxsize=64)
def _custom_schema(served: Served) -> PatchSchema:
    return custom_schema(served.schema or {})


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = _with_whole_numbers(inner)
    elif isinstance(value, list):
        value[:] = map(_with_whole_numbers, value)
    elif isinstance(number := go_number(value), float) and number.is_integer() and abs(number) < _IN_FULL:
        # As many digits as tell it from others, and zeros.
        return int(Decimal(repr(number)))
    return value


def _drop(value: Any, type_: FieldType, path: str, structural: bool, unknown: list[str]) -> None:
    node = type_.node
    if isinstance(value, list):
        if "items" in node:
            for index, item in enumerate(value):
                if isinstance(item, _NESTED):
                    _drop(item, type_.element, f"{path}[{index}]", structural, unknown)
        return
    properties, others = node.get("properties") or {}, node.get("additionalProperties")
    # A built-in type without fields is raw JSON; a structural schema without fields describes an empty object.
    raw = "properties" not in node and others is None and not structural
    keeps_others = node.get(_PRESERVE) or others is True or raw
    for key, inner in list(value.items()):
        declared = key in properties
        if declared or isinstance(others, dict):
            if isinstance(inner, _NESTED):
                # What metadata looks like is not the custom schema's to say.
                own = structural and not (declared and key == "metadata" and "$ref" in str(properties[key]))
                _drop(inner, type_.field(key), _joined(path, key), own, unknown)
        elif not keeps_others:
            del value[key]
            unknown.append(f'unknown field "{_joined(path, key)}"')


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
