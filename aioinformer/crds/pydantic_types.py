"""The JSON Schema of a pydantic model, with the markers of its fields. Imported for such models only."""

from __future__ import annotations

from typing import Any, Final, get_args, get_origin

from msgspec import Meta
from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from aioinformer.cache.objects.models.model import Model
from aioinformer.cache.objects.models.pydantic_schema import API_TYPE
from aioinformer.crds.descriptions import class_description
from aioinformer.crds.markers import EMBEDDED, UNKNOWN, class_markers, merged, with_markers
from aioinformer.crds.types import DECIMAL, REFUSED, Schema, schema_of
from aioinformer.errors import UsageError

#: What bounds a decimal, in pydantic's schema.
_BOUNDS: Final = ("ge", "gt", "le", "lt", "multiple_of", "max_digits", "decimal_places")
#: Seconds that a timedelta can be.
_LONGEST: Final = 86_399_999_913_600
_SECRET: Final = "a secret does not belong in a resource, which others may read; refer to a Secret by its name"


def pydantic_schema(cls: type[Any]) -> Schema:
    """Return the JSON Schema of a pydantic model.

    Raises:
        UsageError: pydantic has none for a field.
    """
    try:
        found: Schema = cls.model_json_schema(by_alias=True, schema_generator=_Generator)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise UsageError(f"{cls.__name__}: pydantic has no JSON Schema for it: {error.message}") from error
    return found


class _Generator(GenerateJsonSchema):
    """Makes the schemas of what the models write, as far as pydantic's own schemas do not say it."""

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        kind = (schema.get("metadata") or {}).get(API_TYPE)
        return super().generate_inner(schema) if kind is None else _of_api_type(kind)

    def model_schema(self, schema: Any) -> dict[str, Any]:
        cls = schema["cls"]
        if schema.get("root_model"):
            return {REFUSED: f"{cls.__name__} is a RootModel, which has no fields; write the type of its root instead"}
        found = super().model_schema(schema)
        found["title"] = cls.__name__
        names = {name: field.validation_alias or field.alias or name for name, field in cls.model_fields.items()}
        properties = found.setdefault("properties", {})
        for name, field in cls.model_fields.items():
            json_name = names[name]
            if not isinstance(json_name, str):
                properties[name] = {REFUSED: "a field of a resource has one JSON name; give it a plain alias"}
            elif list(names.values()).count(json_name) > 1:
                properties[json_name] = {REFUSED: "two fields have this JSON name; give one another alias"}
            elif _has_secret(field.annotation):
                properties[json_name] = {REFUSED: _SECRET}
            else:
                markers = [each for each in field.metadata if isinstance(each, Meta)]
                properties[json_name] = with_markers(properties[json_name], markers)
        if text := class_description(cls):
            found["description"] = text
        return with_markers(found, class_markers(cls))

    def bytes_schema(self, schema: Any) -> dict[str, Any]:
        forms = {self._config.ser_json_bytes, self._config.val_json_bytes}
        if len(forms) > 1:
            return {REFUSED: "ser_json_bytes and val_json_bytes differ: the model cannot read what it writes"}
        if "min_length" in schema or "max_length" in schema:
            return {REFUSED: "a schema cannot limit the length of bytes, which are a text; add a rule"}
        formats = {"base64": "base64url", "hex": "hex"}
        return {"type": "string", "format": formats.get(forms.pop(), "")}

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        if self._config.ser_json_timedelta == "float":
            return {"type": "number", "minimum": -_LONGEST, "maximum": _LONGEST}
        return super().timedelta_schema(schema)

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        if schema.get("tz_constraint") == "naive":
            return {REFUSED: "times have a time zone in Kubernetes; use AwareDatetime or datetime"}
        return super().datetime_schema(schema)

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        if bounds := [name for name in _BOUNDS if schema.get(name) is not None]:
            return {REFUSED: f"a schema cannot say {bounds[0]} of a Decimal, which is a text; add a rule"}
        return dict(DECIMAL)


def _of_api_type(kind: type[Any]) -> Schema:
    """Return the schema of a type of `aioinformer.models`, without references."""
    if not issubclass(kind, Model):  # a whole kind
        return {"type": "object", EMBEDDED: True, UNKNOWN: True}
    whole = schema_of(kind)
    found: Schema = _inlined(whole, whole["$defs"], ())
    return found


def _inlined(schema: Any, definitions: dict[str, Schema], around: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, definitions, around) for each in schema]
    if not isinstance(schema, dict):
        return schema
    target = schema.get("$ref")
    if not isinstance(target, str):  # a property may have the name, too
        return {name: _inlined(each, definitions, around) for name, each in schema.items() if name != "$defs"}
    found = {name: each for name, each in schema.items() if name not in ("$ref", "$defs")}
    if target in around:
        title = definitions[target]["title"]
        return {REFUSED: f"{title} contains itself, which a schema cannot say; make the field dict[str, Any]"}
    return merged(_inlined(definitions[target], definitions, (*around, target)), found)


def _has_secret(annotation: Any) -> bool:
    """Return whether a type is one of pydantic's secrets, or has one among its arguments."""
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and hasattr(kind, "get_secret_value"):
        return not issubclass(kind, BaseModel)
    return any(map(_has_secret, get_args(annotation)))
