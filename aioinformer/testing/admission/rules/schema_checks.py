"""Validation of the schemas of a definition: a structural schema with defaults that fit it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.rules.node_shapes import (
    has_unknown_fields,
    root_faults,
    shape_faults,
    unknown_keywords,
)
from aioinformer.testing.admission.rules.rule_checks import rule_faults, rule_form_faults
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.schemas.structural import value_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_GO_PATTERN_FAULTS = {
    "unterminated character set": "missing closing ]",
    "nothing to repeat": "missing argument to repetition operator",
    "missing ), unterminated subpattern": "missing closing )",
}


def schema_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield everything that is wrong with a schema.

    Args:
        schema: an `openAPIV3Schema`.
        path: of the schema.
    """
    faults = list(_node_faults(schema, path, "at the root"))
    # Rules are compiled only if the schema itself is valid.
    yield from faults or rule_faults(schema, path)


def _node_faults(schema: Mapping[str, Any], path: str, place: str) -> Iterator[Cause]:
    if place == "at the root":
        yield from root_faults(schema, path)
    if unknown := unknown_keywords(schema, path):
        yield from unknown
        return
    properties, items, others = (schema.get(key) for key in ("properties", "items", "additionalProperties"))
    for name, below in (properties or {}).items():
        yield from _node_faults(below, f"{path}.properties[{name}]", "for specified object fields")
    if isinstance(items, dict):
        yield from _node_faults(items, f"{path}.items", "for specified array items")
    if isinstance(others, dict):
        yield from _node_faults(others, f"{path}.additionalProperties", "for specified object fields")
    if properties and others:
        why = "additionalProperties and properties are mutual exclusive"
        yield Cause.forbidden(f"{path}.additionalProperties", why)
    type_ = schema.get("type")
    may_lack_type = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if not type_ and (place == "at the root" or not may_lack_type):
        yield Cause.required(f"{path}.type", f"must not be empty {place}")
    elif type_ and type_ not in _TYPES:
        yield Cause.unsupported(f"{path}.type", f'"{type_}"', _TYPES)
    if type_ == "array" and not items:
        yield Cause.required(f"{path}.items", "must be specified")
    yield from _list_type_faults(schema, path)
    yield from shape_faults(schema, path)
    if "pattern" in schema:
        yield from _pattern_faults(schema["pattern"], f"{path}.pattern")
    if has_unknown_fields(schema.get("default"), schema):
        value = json.dumps(schema["default"], ensure_ascii=False, separators=(",", ":"))
        yield Cause.invalid(f"{path}.default", value, "must not have unknown fields")
    if schema.get("default") is not None and type_ in _TYPES:
        for cause in value_causes(schema["default"], schema):
            field = f"{path}.default.{cause.field}" if cause.field else f"{path}.default"
            yield Cause(cause.reason, field, cause.message)
    yield from rule_form_faults(schema, path)


def _list_type_faults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if keys and kind != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield Cause.required(f"{path}.x-kubernetes-list-type", why)
    if kind == "map" and not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield Cause.required(f"{path}.x-kubernetes-list-map-keys", why)


def _pattern_faults(pattern: str, path: str) -> Iterator[Cause]:
    try:
        re.compile(pattern)
    except re.error as error:
        what = _GO_PATTERN_FAULTS.get(error.msg, error.msg)
        why = f"error parsing regexp: {what}: `{pattern[error.pos or 0 :]}`"
        yield Cause.invalid(path, f'"{pattern}"', f"must be a valid regular expression, but isn't: {why}")
