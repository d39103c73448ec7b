"""What a CustomResourceDefinition may say, in the words of the API.

What all versions have in common the API looks at once, and names it as if it stood above the versions: a schema that
all of them share is `spec.validation`, and so it is with subresources, columns and selectable fields.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import letter_label_faults
from aioinformer.testing.schemas.schema_checks import schema_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MIXED_CASE = "may have mixed case, but should otherwise match: "
_SCOPES = ("Cluster", "Namespaced")
_CONVERSIONS = ("None", "Webhook")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_SELECTABLE_TYPES = ("boolean", "integer", "string")


def definition_causes(obj: Mapping[str, Any], stored: Sequence[str]) -> list[Cause]:
    """Everything that is wrong with a definition.

    Args:
        obj: with its defaults.
        stored: the versions that objects are or were stored in.
    """
    return list(_causes(obj, stored))


def _causes(obj: Mapping[str, Any], stored: Sequence[str]) -> Iterator[Cause]:
    spec = obj["spec"]
    names, versions = spec["names"], spec.get("versions")
    if not spec.get("group"):
        yield Cause.required("spec.group")
    yield from _choice(spec.get("scope"), "spec.scope", _SCOPES)
    for index, version in enumerate(versions or ()):
        yield from _labels(version.get("name"), f"spec.versions[{index}].name")
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield Cause.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for part, check in _PARTS.items():
        yield from _of_versions(versions or (), part, check)
    shown = _shown_versions(versions)
    if len({version["name"] for version in versions or ()}) != len(versions or ()):
        yield Cause.invalid("spec.versions", shown, "must contain unique version names")
    storages = [version["name"] for version in versions or () if version.get("storage")]
    if len(storages) != 1:
        yield Cause.invalid("spec.versions", shown, "must have exactly one version marked as storage version")
    yield from _name_causes(names)
    yield from _conversion_causes(spec["conversion"])
    if not stored:
        yield Cause.invalid("status.storedVersions", "null", "must have at least one stored version")
    elif storages and storages[-1] not in stored:
        why = f"must have the storage version {storages[-1]}"
        yield Cause.invalid("status.storedVersions", _shown(list(stored)), why)


def _name_causes(names: Mapping[str, Any]) -> Iterator[Cause]:
    for part in ("plural", "singular", "kind", "listKind"):
        if not names.get(part):
            yield Cause.required(f"spec.names.{part}")
    for part, lead in (("plural", ""), ("singular", ""), ("kind", _MIXED_CASE)):
        yield from _labels(names.get(part), f"spec.names.{part}", lead)
    for index, short in enumerate(names.get("shortNames") or ()):
        yield from _labels(short, f"spec.names.shortNames[{index}]")
    yield from _labels(names.get("listKind"), "spec.names.listKind", _MIXED_CASE)


def _conversion_causes(conversion: Mapping[str, Any]) -> Iterator[Cause]:
    yield from _choice(conversion.get("strategy"), "spec.conversion.strategy", _CONVERSIONS)
    webhook = conversion.get("webhook") or {}
    if conversion.get("strategy") == "Webhook":
        if not webhook.get("clientConfig"):
            yield Cause.required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
        if not webhook.get("conversionReviewVersions"):
            yield Cause.required("spec.conversion.conversionReviewVersions")


def _of_versions(
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
    if schema := (version.get("schema") or {}).get("openAPIV3Schema"):
        yield from schema_faults(schema, f"{path}.openAPIV3Schema")


def _subresource_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        for name in ("specReplicasPath", "statusReplicasPath"):
            if not scale.get(name):
                yield Cause.required(f"{path}.scale.{name}")


def _column_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        type_, where = column.get("type"), column.get("jsonPath") or ""
        if type_ not in _COLUMN_TYPES:
            why = f"must be one of {','.join(_COLUMN_TYPES)}"
            if type_:
                yield Cause.invalid(f"{path}[{index}].type", _shown(type_), why)
            else:
                yield Cause.required(f"{path}[{index}].type", why)
        if not where:
            yield Cause.required(f"{path}[{index}].JSONPath")
        elif not where.startswith("."):
            why = "must be a simple json path starting with ."
            yield Cause.invalid(f"{path}[{index}].JSONPath", _shown(where), why)


def _selectable_causes(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for index, selectable in enumerate(version.get("selectableFields") or ()):
        where = selectable.get("jsonPath") or ""
        node = schema
        for name in where.lstrip(".").split("."):
            node = (node.get("properties") or {}).get(name) or {}
        if node.get("type") not in _SELECTABLE_TYPES:
            why = "is an invalid path: does not refer to a valid field"
            yield Cause.invalid(f"{path}[{index}].jsonPath", _shown(where), why)


_PARTS = {
    "schema": _schema_causes,
    "subresources": _subresource_causes,
    "additionalPrinterColumns": _column_causes,
    "selectableFields": _selectable_causes,
}


def _labels(value: Any, field: str, lead: str = "") -> Iterator[Cause]:
    text = str(value or "")
    for why in letter_label_faults(text.lower() if lead else text) if text else ():
        yield Cause.invalid(field, _shown(text), lead + why)


def _choice(value: Any, field: str, known: Sequence[str]) -> Iterator[Cause]:
    if not value:
        yield Cause.required(field)
    elif value not in known:
        yield Cause.unsupported(field, _shown(value), known)


def _shown_versions(versions: Any) -> str:
    """The versions as Go shows them, without what they have in common."""
    if not versions:
        return _shown(versions)
    shown = [
        {
            "Name": version["name"],
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
            **dict.fromkeys(("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")),
        }
        for version in versions
    ]
    return _shown(shown)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
