"""Defaults and validation of custom resources by their structural schema.

Nulls come first: what a client sends is decoded, and a null that is not allowed counts as missing. A server-side apply
merges values without decoding them, so there such a null is a fault. Then a missing field gets its default, and the
fields in it get theirs. Then the values are validated. All faults are reported at once, with kube-openapi's messages,
in the order of the object. Rules in CEL are evaluated elsewhere.

The schema does not apply to the metadata of an object. Embedded objects must have `apiVersion` and `kind`; their
metadata is validated as well.
"""

from __future__ import annotations

import math
from copy import deepcopy
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import labelling_causes
from aioinformer.testing.patches.json_patches import same
from aioinformer.testing.schemas.text_formats import is_of_format, is_text_format, schema_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SIZES = {"int32": 31, "int64": 63, "": 63}
_LEAST = -(2**63)
_MOST = 2**63 - 1
_LARGEST_INTEGER = 2**53 - 1
# Go writes larger numbers with an exponent.
_WITHOUT_EXPONENT = 1e21
_LARGEST_FLOAT = 3.4028234663852886e38
_OBJECT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def wrong_type(path: str, wanted: str, found: Any) -> Cause:
    """Return the cause for a value of the wrong type or format."""
    return Cause("FieldValueTypeInvalid", path, f"Invalid value: {quote(found)}: must be of type {wanted}")


def type_causes(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the type of a value."""
    wanted = wanted_types(schema)
    found = _type_name(value)
    fits = (
        not wanted
        or found in wanted
        or (found == "integer" and "number" in wanted)
        or (found == "number" and "integer" in wanted and _is_integer(value))
        # kube-apiserver compares no list with the type of a text that has a format.
        or (found == "array" and wanted == ["string"] and is_text_format(schema.get("format", "")))
    )
    if not fits:
        yield wrong_type(path, ",".join(wanted), value)


def number_causes(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the size and the bounds of a number."""
    shown = quote(value)
    kind = schema.get("type", "")
    format_ = schema.get("format", "")
    if not _fits_size(value, kind, format_):
        yield Cause.invalid("<nil>", shown, f"{path} must be of type {kind} with format {format_ or 'int64'}")
    least, most, step = (schema.get(key) for key in ("minimum", "maximum", "multipleOf"))
    for what, bound in (("MultipleOf", step), ("Maximum boundary", most), ("Minimum boundary", least)):
        if bound is not None and not _fits_size(float(bound), kind, format_):
            text = f"{what} value must be of type {kind} with format {format_ or 'int64'} in {path}"
            yield Cause.invalid("<nil>", '""', text)
    if step and not _is_integer(value / step):
        yield Cause.invalid(path, shown, f"should be a multiple of {step}")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        yield Cause.invalid(path, shown, f"should be at least {least}, or more if that is excluded")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        yield Cause.invalid(path, shown, f"should be at most {most}, or less if that is excluded")


def wanted_types(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows; empty for all."""
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def go_number(value: Any) -> Any:
    """Return the value as Go reads it: integers beyond 64 bits become floats."""
    return float(value) if type(value) is int and not _LEAST <= value <= _MOST else value


def is_one_of(value: Any, allowed: Sequence[Any]) -> bool:
    """Return whether a value is in the enum. Floats are truncated when compared with integers."""
    if isinstance(value, float) and math.isfinite(value):
        return any(same(int(value) if type(each) is int else value, each) for each in allowed)
    return any(same(value, each) for each in allowed)


def _fits_size(value: Any, kind: str, format_: str) -> bool:
    if kind == "integer" and format_ in _SIZES:
        return float(value).is_integer() and -(2 ** _SIZES[format_]) <= value < 2 ** _SIZES[format_]
    return format_ not in ("float", "float32") or abs(value) <= _LARGEST_FLOAT


def _is_integer(value: Any) -> bool:
    return math.isfinite(value) and abs(value) <= _LARGEST_INTEGER and float(value).is_integer()


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


def write_integers(value: Any) -> Any:
    """Return a value whose integral numbers are written without a fraction; lists and mappings are changed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = write_integers(inner)
    elif isinstance(value, list):
        value[:] = map(write_integers, value)
    elif isinstance(number := go_number(value), float) and number.is_integer() and abs(number) < _WITHOUT_EXPONENT:
        # The shortest digits that identify the float, padded with zeros.
        return int(Decimal(repr(number)))
    return value


def drop_nulls(obj: dict[str, Any], schema: Mapping[str, Any]) -> None:
    """Drop the nulls that a schema does not allow, unless a default takes their place.

    Args:
        obj: a custom resource; is changed.
    """
    _drop_nulls(obj, schema, is_object=True)


def default_fields(obj: dict[str, Any], schema: Mapping[str, Any]) -> None:
    """Fill in the defaults of a schema, also where a null is not allowed.

    Args:
        obj: a custom resource; is changed.
    """
    _default(obj, schema, is_object=True)


def schema_causes(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Cause]:
    """Return everything in an object that its schema does not allow."""
    return list(_faults(obj, schema, "", is_object=True))


def value_causes(value: Any, schema: Mapping[str, Any]) -> list[Cause]:
    """Return everything in a value that a schema does not allow."""
    return list(_faults(value, schema, ""))


def _drop_nulls(value: Any, schema: Mapping[str, Any], *, is_object: bool = False) -> None:
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    if isinstance(value, list):
        for item in value:
            _drop_nulls(item, schema.get("items") or {})
    elif isinstance(value, dict):
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        for key, inner in list(value.items()):
            if is_object and key in _OBJECT_FIELDS:
                continue
            below = properties.get(key, others)
            if not isinstance(below, dict):
                continue
            if inner is not None:
                _drop_nulls(inner, below)
            elif not below.get("nullable") and "default" not in below:
                del value[key]


def _default(value: Any, schema: Mapping[str, Any], *, is_object: bool = False) -> None:
    is_object = is_object or bool(schema.get("x-kubernetes-embedded-resource"))
    if isinstance(value, list):
        for item in value:
            _default(item, schema.get("items") or {})
    elif isinstance(value, dict):
        properties = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        for key, below in properties.items():
            if key in _OBJECT_FIELDS and is_object:
                continue
            unset = key not in value or (value[key] is None and not below.get("nullable"))
            if unset and "default" in below:
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
    value = go_number(value)
    yield from type_causes(value, schema, path)
    yield from _combination_faults(value, schema, path)
    if isinstance(value, str):
        yield from _text_faults(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from number_causes(value, schema, path)
    elif isinstance(value, list):
        yield from _list_faults(value, schema, path)
    if "enum" in schema and not is_one_of(value, schema["enum"]):
        yield Cause.unsupported(path, quote(value), schema["enum"])
    if isinstance(value, dict):
        yield from _map_faults(value, schema, path, is_object)


def _text_faults(value: str, schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    least, most, pattern = (schema.get(key) for key in ("minLength", "maxLength", "pattern"))
    if most is not None and len(value) > most:
        yield Cause.too_long(path, most)
    elif least is not None and len(value) < least:
        yield Cause.invalid(path, quote(value), f"{path} in body should be at least {least} chars long")
    elif pattern is not None and not schema_pattern(pattern).search(value):
        yield Cause.invalid(path, quote(value), f"{path} in body should match '{pattern}'")
    format_ = schema.get("format", "")
    # kube-apiserver drops formats of texts from the schemas of other types.
    if schema.get("type") == "string" and not is_of_format(value, format_):
        yield wrong_type(path, format_, value)


def _list_faults(value: list[Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    least = schema.get("minItems")
    most = schema.get("maxItems")
    if most is not None and len(value) > most:
        yield Cause.too_many(path, len(value), most)
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
                yield Cause("FieldValueDuplicate", f"{path}[{index}]", f"Duplicate value: {quote(identity)}")
            seen.append(identity)


def _map_faults(value: Mapping[str, Any], schema: Mapping[str, Any], path: str, is_object: bool) -> Iterator[Cause]:
    if schema.get("x-kubernetes-embedded-resource"):
        is_object = True
        yield from _embedded_faults(value, path)
    least = schema.get("minProperties")
    most = schema.get("maxProperties")
    if most is not None and len(value) > most:
        yield Cause.too_many(path, len(value), most)
    if least is not None and len(value) < least:
        yield Cause.invalid(path, str(len(value)), f"{path} in body should have at least {least} properties")
    for key in schema.get("required") or ():
        if key not in value:
            yield Cause.required(_join(path, key))
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    for key, item in value.items():
        if key in properties:
            if not (is_object and key in _OBJECT_FIELDS):
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
            why = "must validate at least one schema (anyOf)"
        else:
            found = f"{valid} valid alternatives" if valid else "none valid"
            why = f"must validate one and only one schema (oneOf). Found {found}"
        yield _fieldless_cause(f'"{path}" {why}')
        if not valid:
            yield from min(results, key=len)
    if "not" in schema and not list(_faults(value, schema["not"], path)):
        yield _fieldless_cause(f'"{path}" must not validate the schema (not)')


def _fieldless_cause(text: str) -> Cause:
    return Cause("FieldValueInvalid", "<nil>", f'Invalid value: "": {text}')


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
