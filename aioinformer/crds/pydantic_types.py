"""The JSON Schema of a pydantic model, with the markers of its fields. Imported for such models only."""

from __future__ import annotations

from typing import Any

from msgspec import Meta
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from aioinformer.crds.descriptions import class_description
from aioinformer.crds.markers import class_markers, with_markers
from aioinformer.crds.types import REFUSED, Schema
from aioinformer.errors import UsageError


def pydantic_schema(cls: type[Any]) -> Schema:
    """Return the JSON Schema of a pydantic model."""
    try:
        found: Schema = cls.model_json_schema(by_alias=True, schema_generator=_Generator)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise UsageError(f"{cls.__name__}: pydantic has no JSON Schema for it: {error.message}") from error
    return found


class _Generator(GenerateJsonSchema):
    def model_schema(self, schema: Any) -> dict[str, Any]:
        found = super().model_schema(schema)
        cls = schema["cls"]
        found["title"] = cls.__name__
        names = {name: field.validation_alias or field.alias or name for name, field in cls.model_fields.items()}
        properties = found.setdefault("properties", {})
        for name, field in cls.model_fields.items():
            json_name = names[name]
            if not isinstance(json_name, str):
                properties[name] = {REFUSED: "a field of a resource has one JSON name; give it a plain alias"}
            elif list(names.values()).count(json_name) > 1:
                properties[json_name] = {REFUSED: "two fields have this JSON name; give one another alias"}
            else:
                markers = [each for each in field.metadata if isinstance(each, Meta)]
                properties[json_name] = with_markers(properties[json_name], markers)
        if text := class_description(cls):
            found["description"] = text
        return with_markers(found, class_markers(cls))
