"""Structural schemas at work: what the API does to custom resources between decoding and storing them.

Defaults first: a missing field gets its default, and then the fields in it get theirs; a null where none is allowed is
the same as a missing field. Then everything the schema says about values is checked, and all faults are told at once,
in the words of kube-openapi, in the order of the object. Rules in CEL are another matter (`rules`).

The metadata of an object is not the schema's to say anything of; neither is that of embedded objects, which have to
say what they are.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import labelling_causes
from aioinformer.testing.patches.json_patches import same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NOT_THE_SCHEMAS = frozenset({"apiVersion", "kind", "metadata"})


def default_fields(obj: dict[str, Any], schema: Mapping[str, Any]) -> None:
    """Fills in the defaults of a schema, and drops nulls that it does not allow.

    Args:
        obj: a custom resource; is changed.
        schema: the `openAPIV3Schema` of its version.
    """
    _default(obj, schema, is_object=True)


def schema_causes(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Cause]:
    """Everything in an object that its schema does not allow.

    Args:
        obj: a custom resource, with its defaults.
        schema: the `openAPIV3Schema` of its version.
    """
    return list(_faults(obj, schema, "", is_object=True))


def value_causes(value: Any, schema: Mapping[str, Any]) -> list[Cause]:
    """Everything in a value of its own that a schema does not allow."""
    return list(_faults(value, schema, ""))


def _default(value: Any, schema: Mapping[str, Any], *, is_object: bool = False) -> None:
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    if isinstance(value, list):
        for item in value:
            _default(item, schema.get("items") or {})
    elif isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, below in properties.items():
            if key in _NOT_THE_SCHEMAS and is_object:
                continue
            if value.get(key) is None and not (key in value and below.get("nullable")):
                value.pop(key, None)
                if "default" in below:
                    value[key] = deepcopy(below["default"])
            if key in value:
                _default(value[key], below)
        if isinstance(others, dict):
            for key in value.keys() - properties.keys():
                _default(value[key], others)


def _faults(value: Any, schema: Mapping[str, Any], path: str, *, is_object: bool = False) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        if "enum" in schema and None not in schema["enum"]:
            yield Cause.unsupported(path, "null", schema["enum"])
        return
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    if wanted and not _is_of_type(value, wanted):
        found = _type_name(value)
        yield Cause("FieldValueTypeInvalid", path, _wrong_type(path, wanted, found))
        return
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        yield Cause.unsupported(path, _quoted(value), schema["enum"])
    match value:
        case bool() | None:
            pass
        case str():
            yield from _text_faults(value, schema, path)
        case int() | float():
            yield from _number_faults(value, schema, path)
        case list():
            yield from _list_faults(value, schema, path)
        case dict():
            yield from _map_faults(value, schema, path, is_object)
    yield from _combination_faults(value, schema, path)


def _text_faults(value: str, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    least, most, pattern = (schema.get(key) for key in ("minLength", "maxLength", "pattern"))
    if most is not None and len(value) > most:
        yield Cause("FieldValueTooLong", path, f"Too long: may not be more than {most} bytes")
    elif least is not None and len(value) < least:
        yield Cause.invalid(path, _quoted(value), f"{path} in body should be at least {least} chars long")
    elif pattern is not None and not re.search(pattern, value):
        yield Cause.invalid(path, _quoted(value), f"{path} in body should match '{pattern}'")
    if schema.get("format") == "date-time" and not _is_date_time(value):
        yield Cause("FieldValueTypeInvalid", path, _wrong_type(path, "date-time", value))
    if schema.get("format") == "date" and not _is_date(value):
        yield Cause("FieldValueTypeInvalid", path, _wrong_type(path, "date", value))


def _number_faults(value: float, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    least, most, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    shown = _quoted(value)
    if step is not None and value % step:
        yield Cause.invalid(path, shown, f"{path} in body should be a multiple of {step}")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield Cause.invalid(path, shown, f"{path} in body should be less than {most}")
        elif value > most:
            yield Cause.invalid(path, shown, f"{path} in body should be less than or equal to {most}")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield Cause.invalid(path, shown, f"{path} in body should be greater than {least}")
        elif value < least:
            yield Cause.invalid(path, shown, f"{path} in body should be greater than or equal to {least}")


def _list_faults(value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if most is not None and len(value) > most:
        yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield Cause.invalid(path, str(len(value)), f"{path} in body should have at least {least} items")
    for index, item in enumerate(value):
        yield from _faults(item, schema.get("items") or {}, f"{path}[{index}]")
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        keys = schema.get("x-kubernetes-list-map-keys")
        seen: list[Any] = []
        for index, item in enumerate(value):
            identity = item
            if keys and isinstance(item, dict):
                identity = {key: item[key] for key in sorted(keys) if key in item}
            if any(same(identity, each) for each in seen):
                yield Cause("FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {_quoted(identity)}")
            seen.append(identity)


def _map_faults(value: Mapping[str, Any], schema: Mapping[str, Any], path: str, is_object: bool) -> Iterator[Cause]:
    if schema.get("x-kubernetes-embedded-resource"):
        is_object = True
        yield from _embedded_faults(value, path)
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if most is not None and len(value) > most:
        yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield Cause.invalid(path, str(len(value)), f"{path} in body should have at least {least} properties")
    for key in schema.get("required") or ():
        if key not in value:
            yield Cause.required(_join(path, key))
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        if key in properties:
            if not (is_object and key in _NOT_THE_SCHEMAS):
                yield from _faults(item, properties[key], _join(path, key))
        elif isinstance(others, dict):
            yield from _faults(item, others, _join(path, key))


def _embedded_faults(value: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for field in ("apiVersion", "kind"):
        if not value.get(field):
            yield Cause.required(_join(path, field))
    if isinstance(metadata := value.get("metadata"), dict):
        for cause in labelling_causes(metadata):
            yield Cause(cause.reason, _join(path, cause.field), cause.message)


def _combination_faults(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for part in schema.get("allOf") or ():
        yield from _faults(value, part, path)
    for keyword in ("anyOf", "oneOf"):
        results = [list(_faults(value, part, path)) for part in schema.get(keyword) or ()]
        valid = sum(not result for result in results)
        if not results or valid == 1 or (valid and keyword == "anyOf"):
            continue
        if keyword == "anyOf":
            told = "must validate at least one schema (anyOf)"
        else:
            found = f"{valid} valid alternatives" if valid else "none valid"
            told = f"must validate one and only one schema (oneOf). Found {found}"
        yield _nameless(f'"{path}" {told}')
        if not valid:
            yield from min(results, key=len)
    if "not" in schema and not list(_faults(value, schema["not"], path)):
        yield _nameless(f'"{path}" must not validate the schema (not)')


def _nameless(text: str) -> Cause:
    return Cause("FieldValueInvalid", "<nil>", f'Invalid value: "": {text}')


def _wrong_type(path: str, wanted: str, found: str) -> str:
    return f"Invalid value: {_quoted(found)}: {path} in body must be of type {wanted}: {_quoted(found)}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_of_type(value: Any, wanted: str) -> bool:
    found = _type_name(value)
    if found == "number" and "integer" in wanted:
        return float(value).is_integer()
    return found in wanted.split(",") or (found == "integer" and wanted == "number")


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def _is_date(value: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value)) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def _is_date_time(value: str) -> bool:
    if not re.match(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d", value):
        return False
    try:
        return datetime.fromisoformat(value.upper()).tzinfo is not None
    except ValueError:
        return False
