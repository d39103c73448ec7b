"""Checks of objects against the schemas of their kinds.

Unknown fields are dropped. The request's `fieldValidation` decides whether the server also warns of them or rejects the
request.

`kubectl create` and `kubectl apply` request "Strict", to find typing errors in manifests. The default is "Warn". The
fields are never stored: Go structs have no place for them, and custom resources are pruned.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from aioinformer.resources.catalog.go_structs import go_json
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.statuses import Cause, StatusError
from aioinformer.testing.schemas.openapi_v3 import custom_schema, patch_schema
from aioinformer.testing.schemas.typed_fields import FieldType
from aioinformer.testing.schemas.values import FieldValueError, decode_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.patches.media_types import PatchSchema

_NESTED = (dict, list)
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def check_object(served: Served, obj: dict[str, Any], directive: str, repeated: Sequence[str] = ()) -> list[str]:
    """Decode the object of a create or update request as the server does.

    Args:
        obj: is changed: values get the form that Go decodes, unknown fields are dropped.

    Returns:
        The warnings.

    Raises:
        StatusError: 400, a value does not fit its field, or there are unknown fields and the directive is "Strict".
    """
    resource = served.resource
    prefix = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    try:
        _check_values(served, obj)
    except FieldValueError as error:
        raise statuses.bad_request(f"{prefix}: {error}") from None
    messages = [*repeated, *drop_unknown_fields(served, obj)]
    if messages and directive == "Strict":
        raise statuses.bad_request(f"{prefix}: strict decoding error: {', '.join(messages)}")
    return messages if directive == "Warn" else []


def _check_values(served: Served, obj: dict[str, Any]) -> None:
    """Convert the values of a built-in kind; those of custom resources are checked later, with their schema."""
    if served.schema is not None:
        from aioinformer.testing.schemas.structural import drop_nulls

        drop_nulls(obj, served.schema)
    elif not served.custom and (schema := kind_schema(served)) is not None:
        decode_values(obj, schema.schemas, schema.node)


def check_applied(served: Served, obj: dict[str, Any]) -> None:
    """Decode the values of a merged object of a built-in kind.

    Args:
        obj: is changed: values get the form that Go decodes.

    Raises:
        StatusError: 500, a value does not fit its field.
    """
    if served.custom or (schema := kind_schema(served)) is None:
        return
    from aioinformer.testing.schemas.structural import write_integers

    write_integers(obj)  # a configuration is YAML, in which 3.0 is the integer 3
    try:
        decode_values(obj, schema.schemas, schema.node)
    except FieldValueError as error:
        resource = served.resource
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        name = f"{obj['metadata'].get('namespace', '')}/{obj['metadata'].get('name', '')}"
        raise statuses.internal_error(
            f"failed to convert new object ({name}; {kind}) to proper version: "
            f"unable to convert unstructured object to {kind.removeprefix('/')}: {error}"
        ) from None


def check_patched(
    served: Served, obj: dict[str, Any], directive: str, *, has_version: bool, repeated: Sequence[str] = ()
) -> list[str]:
    """Check the values of a patched object, and drop unknown fields.

    Args:
        obj: is changed. Without an `apiVersion`, all its fields are unknown, as in the API.
        has_version: whether its version is known even if the patch has removed it.

    Returns:
        The warnings.

    Raises:
        StatusError: 422, a value does not fit its field, or there are unknown fields and the directive is "Strict".
    """
    unknown = []
    if has_version or served.custom or obj.get("apiVersion"):
        try:
            _check_values(served, obj)
        except FieldValueError as error:
            raise unfit_patch(str(error)) from None
        unknown = drop_unknown_fields(served, obj)
    else:
        for name in sorted(obj.keys() - {"kind", "apiVersion"}):
            del obj[name]
            unknown.append(f'unknown field "{name}"')
    messages = [*repeated, *unknown]
    if messages and directive == "Strict":
        raise unfit_patch(f"strict decoding error: {', '.join(messages)}")
    return messages if directive == "Warn" else []


def unfit_patch(why: str) -> StatusError:
    """Return the error for an invalid result of a patch."""
    cause = Cause.invalid("patch", "the patched object", why)
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field}]
    message = f' "" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, details={"causes": causes})


def fill_defaults(served: Served, obj: dict[str, Any]) -> None:
    """Fill in the defaults of a custom resource; give a built-in object the form of its struct."""
    if served.schema is not None:
        from aioinformer.testing.schemas.structural import default_fields

        default_fields(obj, served.schema)
    elif not served.custom:
        _normalize(obj)


def _normalize(obj: dict[str, Any]) -> None:
    """Give an object the form of its struct, in place. Its metadata stay the same mapping."""
    written = dict(go_json(obj))
    metadata = obj["metadata"]
    kept = dict(written.pop("metadata"))
    metadata.clear()
    metadata.update(kept)
    obj.clear()
    obj.update({"kind": written.pop("kind"), "apiVersion": written.pop("apiVersion"), "metadata": metadata} | written)


def custom_causes(
    served: Served,
    obj: dict[str, Any],
    old: Mapping[str, Any] | None,
    rule_faults: Callable[[Sequence[Cause]], Iterable[Cause]],
) -> list[Cause]:
    """Return what is wrong with a custom resource by its schema; nothing for other kinds.

    Args:
        obj: the object to store; is changed: integral numbers are written without a fraction.
        old: the object that it replaces. Faults that it already has, such as after its schema became stricter, do not
            fail the update.
        rule_faults: evaluates the rules of the schema; takes the faults of the values.

    Raises:
        StatusError: 501, a rule cannot be evaluated by this server.
    """
    if not served.custom:
        return []
    from aioinformer.testing.schemas.structural import schema_causes, write_integers

    causes = [] if served.schema is None else schema_causes(obj, served.schema)
    write_integers(obj)
    if served.schema is None:
        return []
    if causes and old is not None:
        known = schema_causes(old, served.schema)
        causes = [cause for cause in causes if cause not in known]
    if _has_rules(served):
        causes += rule_faults(causes)
    return causes


@lru_cache(maxsize=64)
def _has_rules(served: Served) -> bool:
    return b'"x-kubernetes-validations"' in encode_plain(served.schema)


def drop_unknown_fields(served: Served, obj: dict[str, Any]) -> list[str]:
    """Remove the fields that the kind does not have.

    Returns:
        The server's message for each, in the order of the object; sorted for custom resources.
    """
    type_ = kind_type(served)
    unknown: list[str] = []
    if type_ is not None:
        _drop(obj, type_, "", served.custom, unknown)
    return sorted(unknown) if served.custom else unknown


def kind_schema(served: Served) -> PatchSchema | None:
    """Return the schema of a kind, or None if it is unknown, as for added beta versions."""
    resource = served.resource
    if not served.custom:
        return patch_schema(resource.api_version, resource.kind)
    return _custom_schema(served) if served.schema is not None else None


@lru_cache(maxsize=256)
def kind_type(served: Served) -> FieldType | None:
    """Return the schema of a kind as a field type."""
    schema = kind_schema(served)
    return None if schema is None else FieldType(schema.schemas, schema.node)


@lru_cache(maxsize=64)
def _custom_schema(served: Served) -> PatchSchema:
    return custom_schema(served.schema or {})


def _drop(value: Any, type_: FieldType, path: str, structural: bool, unknown: list[str]) -> None:
    node = type_.node
    if isinstance(value, list):
        if "items" in node:
            element = type_.element
        elif structural and not node.get(_PRESERVE):
            element = FieldType(type_.schemas, {})  # such as of a list in place of a text
        else:
            return
        for index, item in enumerate(value):
            if isinstance(item, _NESTED):
                _drop(item, element, f"{path}[{index}]", structural, unknown)
        return
    properties = node.get("properties") or {}
    others = node.get("additionalProperties")
    # A built-in type without fields is raw JSON; a structural schema without fields describes an empty object.
    raw = "properties" not in node and others is None and not structural
    keeps_others = node.get(_PRESERVE) or others is True or raw
    for key, inner in list(value.items()):
        declared = key in properties
        if declared or isinstance(others, dict):
            if isinstance(inner, _NESTED):
                # The schema of a custom resource does not apply to its metadata.
                own = structural and not (declared and key == "metadata" and "$ref" in str(properties[key]))
                _drop(inner, type_.field(key), _join(path, key), own, unknown)
        elif not keeps_others:
            del value[key]
            unknown.append(f'unknown field "{_join(path, key)}"')


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
