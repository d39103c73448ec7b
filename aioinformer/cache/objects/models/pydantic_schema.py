"""Fields of pydantic's models, and parameters and results of FastAPI's endpoints, may have the types of the API.

pydantic asks a class for its schema. This module is imported then, so that only programs with pydantic need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import core_schema

from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable


#: The class, in the metadata of its schema, for definitions that state its fields.
API_TYPE: Final = "aioinformer_type"


def schema_of(kind: type[Any], decode: Callable[[Mapping[str, Any]], Any]) -> core_schema.CoreSchema:
    """Return the schema of a class with `to_dict()`: instances stay as they are, and mappings are decoded.

    In JSON, an object has the keys of the API.

    Args:
        decode: returns an instance for a mapping, or raises `DecodeError`.
    """

    def validated(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"expected {kind.__name__}, or a mapping with the keys of its JSON")
        try:
            return decode(value)
        except DecodeError as error:
            reason = str(error)
        raise ValueError(reason)  # not in the `except` block: the error would be the context, and show the object

    serialization = core_schema.plain_serializer_function_ser_schema(_plain, when_used="json")
    return core_schema.no_info_plain_validator_function(
        validated, serialization=serialization, metadata={API_TYPE: kind}
    )


def _plain(obj: Any) -> Any:
    return obj.to_dict()  # which need not be that of the class: the metadata of a cached object has its own


def json_schema_of(kind: type[Any], description: str) -> dict[str, Any]:
    """Return the JSON schema of a class, for OpenAPI documents: an object, without its properties."""
    return {"type": "object", "title": kind.__name__, "description": description}
