"""Objects without the fields that a version does not have, as the API server prunes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aioinformer.crds.markers import EMBEDDED, UNKNOWN

if TYPE_CHECKING:
    from aioinformer.crds.types import Schema

#: The fields that each whole object has.
OF_OBJECTS: Final = ("apiVersion", "kind", "metadata")


def prune(value: Any, schema: Schema, *, is_object: bool = False) -> Any:
    """Return a copy of a value without the fields that its schema does not state or preserve.

    Args:
        is_object: whether it is a whole object, with `apiVersion`, `kind` and `metadata`.
    """
    if isinstance(value, list):
        items = schema.get("items")
        return [prune(each, items) if isinstance(items, dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    is_object = is_object or bool(schema.get(EMBEDDED))
    properties: Schema = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    found = {}
    for name, each in value.items():
        inner = properties.get(name) or more
        if is_object and name in OF_OBJECTS:
            found[name] = each
        elif isinstance(inner, dict):
            found[name] = prune(each, inner)
        elif inner or schema.get(UNKNOWN):
            found[name] = each
    return found
