"""The JSON Schema of a pydantic model, with the markers of its fields. Imported for such models only."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Meta
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from aioinformer.crds.markers import class_markers, with_markers
from aioinformer.crds.types import OWN_FIELDS, Place, Schema


def pydantic_schema(cls: type[Any]) -> Schema:
    """Return the JSON Schema of a pydantic model.

    Raises:
        UsageError: pydantic has none for a field, or two fields have one JSON name.
    """
    try:
        found: Schema = cls.model_json_schema(by_alias=True, schema_generator=_Generator)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise Place(cls.__name__).refuse(f"pydantic has no JSON Schema for it: {error.message}") from error
    definitions = found.pop("$defs", {})
    if "$ref" in found:
        raise Place(cls.__name__).refuse("it contains itself, which a schema cannot say")
    properties = {name: each for name, each in found["properties"].items() if name not in OWN_FIELDS}
    required = [name for name in found.get("required", ()) if name not in OWN_FIELDS]
    return found | {"properties": properties, "required": required, "$defs": definitions}


class _Generator(GenerateJsonSchema):
    def model_schema(self, schema: Any) -> dict[str, Any]:
        found = super().model_schema(schema)
        cls = schema["cls"]
        found["title"] = cls.__name__
        names = {name: field.validation_alias or field.alias or name for name, field in cls.model_fields.items()}
        if twice := [str(name) for name, count in Counter(map(str, names.values())).items() if count > 1]:
            raise Place(cls.__name__, twice[0]).refuse("two fields have this JSON name; give one another alias")
        properties = found.get("properties", {})
        for name, field in cls.model_fields.items():
            json_name = names[name]
            if not isinstance(json_name, str):
                raise Place(cls.__name__, name).refuse("a field of a resource has one JSON name; give it a plain alias")
            markers = [each for each in field.metadata if isinstance(each, Meta)]
            properties[json_name] = with_markers(properties[json_name], markers)
        return with_markers(found, class_markers(cls))
