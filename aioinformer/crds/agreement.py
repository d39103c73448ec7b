"""In which fields and types two structural schemas differ: what a write through one of them takes from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aioinformer.crds.markers import INT_OR_STRING, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.crds.types import Schema

ANY: Final = "any JSON"


class Disagreement(NamedTuple):
    """A field that two schemas state differently.

    Attributes:
        path: "spec.ports[].name".
        first: its type in the first one; "" if that has no such field, and does not preserve unknown ones.
        second: its type in the second one.
    """

    path: str
    first: str
    second: str


def type_of_schema(schema: Schema) -> str:
    """Return the type of the values of a schema."""
    return "int-or-string" if schema.get(INT_OR_STRING) else str(schema.get("type") or ANY)


def disagreements(first: Schema, second: Schema, path: str = "") -> Iterator[Disagreement]:
    """Yield each field that one of two schemas lacks and does not preserve, and each type that differs.

    Bounds, patterns and what is required may differ: no value is lost by them.
    """
    kinds = type_of_schema(first), type_of_schema(second)
    if kinds[0] != kinds[1]:
        yield Disagreement(path, *kinds)
    elif kinds[0] == "array":
        yield from disagreements(first.get("items") or {}, second.get("items") or {}, f"{path}[]")
    elif kinds[0] == "object":
        yield from _of_fields(first, second, path)


def _of_fields(first: Schema, second: Schema, path: str) -> Iterator[Disagreement]:
    for name in dict.fromkeys((*(first.get("properties") or {}), *(second.get("properties") or {}))):
        yield from _of_field(field_of(first, name), field_of(second, name), f"{path}.{name}".lstrip("."))
    maps = [schema.get("additionalProperties") for schema in (first, second)]
    if any(isinstance(each, dict) for each in maps):
        both = [
            each if isinstance(each, dict) else _unknown(schema)
            for each, schema in zip(maps, (first, second), strict=True)
        ]
        yield from _of_field(both[0], both[1], f"{path}{{}}")


def _of_field(first: Schema | None, second: Schema | None, path: str) -> Iterator[Disagreement]:
    if first is None or second is None:
        kinds = ("" if each is None else type_of_schema(each) for each in (first, second))
        yield Disagreement(path, *kinds)
    elif first is not _PRESERVED and second is not _PRESERVED:
        yield from disagreements(first, second, path)


#: Of a field that is not stated, and kept.
_PRESERVED: Final[Schema] = {UNKNOWN: True}


def field_of(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field of an object; None if the server drops it."""
    stated: Any = (schema.get("properties") or {}).get(name)
    if stated is None:
        stated = schema.get("additionalProperties")
    return stated if isinstance(stated, dict) and stated else _unknown(schema)


def _unknown(schema: Schema) -> Schema | None:
    if schema.get(UNKNOWN) or schema.get("additionalProperties"):
        return _PRESERVED
    return None
