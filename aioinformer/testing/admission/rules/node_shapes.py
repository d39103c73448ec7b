"""Validation of one node of a structural schema: allowed keywords and their combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSUPPORTED = ("$ref", "patternProperties", "definitions", "dependencies", "additionalItems", "id")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_LIST_TYPE, _MAP_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"
_QUADRATIC = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
#: Keywords that are forbidden in `allOf`, `anyOf`, `oneOf` and `not` of a structural schema.
_FORBIDDEN_IN_CONDITIONS = {
    "type": "must be empty",
    "additionalProperties": "must be undefined",
    "default": "must be undefined",
    "title": "must be empty",
    "description": "must be empty",
    "nullable": "must be false",
    _PRESERVE: "must be false",
    "x-kubernetes-embedded-resource": "must be false",
    "x-kubernetes-int-or-string": "must be false",
    _KEYS: "must be empty",
    _LIST_TYPE: "must be undefined",
    _MAP_TYPE: "must be undefined",
    "x-kubernetes-validations": "must be empty",
}
_INT_OR_STRING = "x-kubernetes-int-or-string"


def root_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check what only the root of a schema must satisfy."""
    if (type_ := schema.get("type")) and type_ != "object":
        yield Cause.invalid(f"{path}.type", quote(type_), "must be object at the root")
    if schema.get("nullable"):
        yield Cause.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    metadata, here = (schema.get("properties") or {}).get("metadata"), f"{path}.properties[metadata]"
    if metadata is None:
        return
    if metadata.get("type") != "object":
        yield Cause.invalid(f"{here}.type", quote(metadata.get("type", "")), "must be object")
    if set(metadata.get("properties") or ()) - {"name", "generateName"}:
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield Cause.forbidden(here, why)
    for name, below in (metadata.get("properties") or {}).items():
        if "default" in below:
            yield Cause.forbidden(f"{here}.properties[{name}].default", "must not be set in top-level metadata")


def unknown_keywords(schema: Mapping[str, Any], path: str) -> list[Cause]:
    """Return a cause for each unsupported keyword."""
    causes = [Cause.forbidden(f"{path}.{key}", f"{key} is not supported") for key in _UNSUPPORTED if schema.get(key)]
    if isinstance(schema.get("items"), list):
        causes.append(Cause.forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if schema.get("uniqueItems"):
        causes.append(Cause.forbidden(f"{path}.uniqueItems", _QUADRATIC))
    return causes


def shape_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the combination of a node's keywords."""
    type_ = schema.get("type", "")
    for key, wanted, known in ((_LIST_TYPE, "array", _LIST_TYPES), (_MAP_TYPE, "object", _MAP_TYPES)):
        given = schema.get(key)
        if given is not None and type_ != wanted:
            yield Cause.invalid(f"{path}.type", quote(type_), f"must be {wanted} if {key} is specified")
        if given is not None and given not in known:
            yield Cause.unsupported(f"{path}.{key}", quote(given), known)
    if schema.get(_PRESERVE) is False:
        yield Cause.invalid(f"{path}.{_PRESERVE}", "false", "must be true or undefined")
    if schema.get("x-kubernetes-embedded-resource") and not schema.get(_PRESERVE) and not schema.get("properties"):
        why = f"must not be empty if x-kubernetes-embedded-resource is true without {_PRESERVE}"
        yield Cause.required(f"{path}.properties", why)
    items = schema.get("items")
    if isinstance(items, dict) and schema.get(_LIST_TYPE) == "set":
        yield from _set_faults(items, f"{path}.items")
    if isinstance(items, dict) and schema.get(_LIST_TYPE) == "map" and schema.get(_KEYS):
        yield from _map_faults(schema, items, path)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, below in enumerate(schema.get(keyword) or ()):
            if not schema.get(_INT_OR_STRING):
                yield from _condition_faults(below, f"{path}.{keyword}[{index}]")
    if schema.get("not") is not None:
        yield from _condition_faults(schema["not"], f"{path}.not")


def _set_faults(items: Mapping[str, Any], path: str) -> Iterator[Cause]:
    where = "as item of a list with x-kubernetes-list-type=set"
    for type_, key in (("object", _MAP_TYPE), ("array", _LIST_TYPE)):
        if items.get("type") == type_ and items.get(key) != "atomic":
            yield Cause.invalid(f"{path}.{key}", quote(items.get(key)), f"must be atomic {where}")


def _map_faults(schema: Mapping[str, Any], items: Mapping[str, Any], path: str) -> Iterator[Cause]:
    keys, properties = schema[_KEYS], items.get("properties") or {}
    if items.get("type") != "object":
        why = f"must be object if parent array's {_LIST_TYPE} is map"
        yield Cause.invalid(f"{path}.items.type", quote(items.get("type", "")), why)
        return
    if len(set(keys)) < len(keys):
        yield Cause.invalid(f"{path}.{_KEYS}", quote(keys), "must not contain duplicate entries")
    if not set(keys).issubset(properties):
        yield Cause.invalid(f"{path}.{_KEYS}", quote(keys), "entries must all be names of item properties")
    for key in dict.fromkeys(keys):
        below = properties.get(key)
        if below is not None and key not in (items.get("required") or ()) and below.get("default") is None:
            why = f"this property is in {_KEYS}, so it must have a default or be a required property"
            yield Cause.required(f"{path}.items.properties[{key}].default", why)


def _condition_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for key, why in _FORBIDDEN_IN_CONDITIONS.items():
        if schema.get(key):
            yield Cause.forbidden(f"{path}.{key}", f"{why} to be structural")
    for name, below in (schema.get("properties") or {}).items():
        yield from _condition_faults(below, f"{path}.properties[{name}]")
    if isinstance(items := schema.get("items"), dict):
        yield from _condition_faults(items, f"{path}.items")
    for keyword in ("allOf", "anyOf", "oneOf"):
        for index, below in enumerate(schema.get(keyword) or ()):
            yield from _condition_faults(below, f"{path}.{keyword}[{index}]")
    if schema.get("not") is not None:
        yield from _condition_faults(schema["not"], f"{path}.not")


def has_unknown_fields(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether the value has fields that pruning would drop."""
    if isinstance(value, list):
        return any(has_unknown_fields(each, schema.get("items") or {}) for each in value)
    if not isinstance(value, dict) or schema.get(_PRESERVE):
        return False
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    if others is True:
        return False
    return any(
        has_unknown_fields(below, properties.get(key) or others or {})
        if key in properties or isinstance(others, dict)
        else True
        for key, below in value.items()
    )
