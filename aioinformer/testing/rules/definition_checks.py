"""Validation of CustomResourceDefinitions.

The API checks a part that all versions share only once, and reports it under a path above the versions: a shared schema
is `spec.validation`. The same holds for subresources, columns and selectable fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.cel.library.formats import letter_label_faults, subdomain_faults
from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.rules.schema_checks import schema_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MIXED_CASE = "may have mixed case, but should otherwise match: "
_SCOPES = ("Cluster", "Namespaced")
_CONVERSIONS = ("None", "Webhook")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_LONGEST_WARNING = 256
_SCALE_PATHS = {
    "specReplicasPath": (".spec",),
    "statusReplicasPath": (".status",),
    "labelSelectorPath": (".spec", ".status"),
}
_NEEDED_PATHS = ("specReplicasPath", "statusReplicasPath")
_SELECTABLE_TYPES = ("boolean", "integer", "string")


def definition_causes(obj: Mapping[str, Any], stored: Sequence[str]) -> list[Cause]:
    """Return everything that is wrong with a definition.

    Args:
        stored: the versions in which objects are or were stored.
    """
    return list(_causes(obj, stored))


def _causes(obj: Mapping[str, Any], stored: Sequence[str]) -> Iterator[Cause]:
    spec = obj["spec"]
    names = spec["names"]
    versions = spec.get("versions")
    yield from _group_causes(spec.get("group") or "")
    yield from _choice(spec.get("scope"), "spec.scope", _SCOPES)
    for index, version in enumerate(versions or ()):
        yield from _labels(version.get("name") or "", f"spec.versions[{index}].name", empty=True)
        yield from _warning_causes(version, f"spec.versions[{index}].deprecationWarning")
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield Cause.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for part, check in _PARTS.items():
        yield from _shared_or_each(versions or (), part, check)
    quoted = quote([version["name"] for version in versions or ()])
    if len({version["name"] for version in versions or ()}) != len(versions or ()):
        yield Cause.invalid("spec.versions", quoted, "must contain unique version names")
    storages = [version["name"] for version in versions or () if version.get("storage")]
    if len(storages) != 1:
        yield Cause.invalid("spec.versions", quoted, "must have exactly one version marked as storage version")
    if spec.get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield Cause.invalid("spec.preserveUnknownFields", "true", f"cannot set to true, {instead}")
    yield from _name_causes(names)
    yield from _conversion_causes(spec["conversion"])
    if not stored:
        yield Cause.invalid("status.storedVersions", "null", "must have at least one stored version")
    elif storages and storages[-1] not in stored:
        why = f"must have the storage version {storages[-1]}"
        yield Cause.invalid("status.storedVersions", quote(list(stored)), why)


def _name_causes(names: Mapping[str, Any]) -> Iterator[Cause]:
    for part in ("plural", "singular", "kind", "listKind"):
        if not names.get(part):
            yield Cause.required(f"spec.names.{part}")
    for part, lead in (("plural", ""), ("singular", ""), ("kind", _MIXED_CASE)):
        yield from _labels(names.get(part), f"spec.names.{part}", lead)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            yield from _labels(name, f"spec.names.{field}[{index}]", empty=True)
    yield from _labels(names.get("listKind"), "spec.names.listKind", _MIXED_CASE)
    if (kind := names.get("kind")) and kind == names.get("listKind"):
        yield Cause.invalid("spec.names.listKind", quote(kind), "kind and listKind may not be the same")


def _conversion_causes(conversion: Mapping[str, Any]) -> Iterator[Cause]:
    yield from _choice(conversion.get("strategy"), "spec.conversion.strategy", _CONVERSIONS)
    webhook = conversion.get("webhook") or {}
    client = webhook.get("clientConfig")
    versions = webhook.get("conversionReviewVersions") or ()
    where = "spec.conversion.webhookClientConfig"
    path = "spec.conversion.conversionReviewVersions"
    if conversion.get("strategy") == "Webhook":
        if client is None:
            yield Cause.required(where, "required when strategy is set to Webhook")
        if not versions:
            yield Cause.required(path)
        return
    for field, shown_fields in ((where, client is not None), (path, versions)):
        if shown_fields:
            yield Cause.forbidden(field, "should not be set when strategy is not set to Webhook")


def _group_causes(group: str) -> Iterator[Cause]:
    if not group:
        yield Cause.required("spec.group")
    elif faults := subdomain_faults(group):
        yield Cause.invalid("spec.group", quote(group), ",".join(faults))
    elif "." not in group:
        yield Cause.invalid("spec.group", quote(group), "should be a domain with at least one dot")


def _warning_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield Cause.invalid(path, quote(text), "can only be set for deprecated versions")
        return
    if not text or len(text) > _LONGEST_WARNING or not text.isprintable():
        yield Cause.invalid(path, quote(text), f"must be printable, and have 1 to {_LONGEST_WARNING} characters")


def _shared_or_each(
    versions: Sequence[Mapping[str, Any]],
    part: str,
    check: Callable[[Mapping[str, Any], str], Iterator[Cause]],
) -> Iterator[Cause]:
    if versions and all(version.get(part) == versions[0].get(part) for version in versions):
        yield from check(versions[0], "spec.validation" if part == "schema" else f"spec.{part}")
        return
    for index, version in enumerate(versions):
        yield from check(version, f"spec.versions[{index}].{part}")


def _schema_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if (schema := (version.get("schema") or {}).get("openAPIV3Schema")) is not None:
        yield from schema_faults(schema, f"{path}.openAPIV3Schema")


def _subresource_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, roots in _SCALE_PATHS.items():
        field = f"{path}.scale.{name}"
        where = scale.get(name) or ""
        if not where and name in _NEEDED_PATHS:
            yield Cause.required(field)
        elif where and not where.startswith(tuple(f"{root}." for root in roots)):
            yield Cause.invalid(field, quote(where), f"should be a json path under {' or '.join(roots)}")


def _column_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        here = f"{path}[{index}]"
        where = column.get("jsonPath") or ""
        if not column.get("name"):
            yield Cause.required(f"{here}.name")
        if not (type_ := column.get("type")):
            yield Cause.required(f"{here}.type")
        elif type_ not in _COLUMN_TYPES:
            yield Cause.invalid(f"{here}.type", quote(type_), f"must be one of {','.join(_COLUMN_TYPES)}")
        if (form := column.get("format")) and form not in _COLUMN_FORMATS:
            yield Cause.invalid(f"{here}.format", quote(form), f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not where:
            yield Cause.required(f"{here}.JSONPath")
        elif not where.startswith("."):
            yield Cause.invalid(f"{here}.JSONPath", quote(where), "must be a simple json path starting with .")


def _selectable_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    known: list[str] = []
    for index, selectable in enumerate(version.get("selectableFields") or ()):
        where = selectable.get("jsonPath") or ""
        field = f"{path}[{index}].jsonPath"
        if not where:
            yield Cause.required(field)
        elif why := _selectable_fault(where, schema):
            yield Cause.invalid(field, quote(where), why)
        elif where in known:
            yield Cause("FieldValueDuplicate", field, f"Duplicate value: {quote(where)}")
        known.append(where)


def _selectable_fault(where: str, schema: Mapping[str, Any]) -> str:
    if not where.startswith("."):
        return f"is an invalid path: expected [ or . but got: {where.split('.')[0]}"
    node: Mapping[str, Any] = schema
    for name in where[1:].split("."):
        node = (node.get("properties") or {}).get(name.partition("[")[0]) or {}
        if node and "[" in name:
            return "is an invalid path: array notation is not allowed"
    if not node:
        return "is an invalid path: does not refer to a valid field"
    if node.get("type") not in _SELECTABLE_TYPES:
        allowed = "Enum string fields and strings with formats are allowed."
        return f"must point to a field of type string, boolean or integer. {allowed}"
    return ""


_PARTS = {
    "schema": _schema_causes,
    "subresources": _subresource_causes,
    "additionalPrinterColumns": _column_causes,
    "selectableFields": _selectable_causes,
}


def _labels(value: Any, field: str, lead: str = "", *, empty: bool = False) -> Iterator[Cause]:
    text = str(value or "")
    if not text and not empty:
        return
    for why in letter_label_faults(text.lower() if lead else text):
        yield Cause.invalid(field, quote(text), lead + why)


def _choice(value: Any, field: str, known: Sequence[str]) -> Iterator[Cause]:
    if not value:
        yield Cause.required(field)
    elif value not in known:
        yield Cause.unsupported(field, quote(value), known)
