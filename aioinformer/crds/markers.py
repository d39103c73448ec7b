"""What an annotation adds to the schema of a field or of a class: CEL rules, list types, and types of Kubernetes.

Each is a `msgspec.Meta`, which msgspec hands over, and pydantic leaves to the reader.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from msgspec import Meta

from aioinformer.errors import OptionError

C = TypeVar("C", bound="type[Any]")

RULES: Final = "x-kubernetes-validations"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"

_CLASS_RULES: Final = "__schema_rules__"

#: A list of values that occur once; the members are owned one by one.
LIST_SET: Final = Meta(extra_json_schema={LIST_TYPE: "set"})
#: A list that one field manager owns as a whole.
LIST_ATOMIC: Final = Meta(extra_json_schema={LIST_TYPE: "atomic"})
#: An object or a map that one field manager owns as a whole.
MAP_ATOMIC: Final = Meta(extra_json_schema={MAP_TYPE: "atomic"})
#: The server keeps fields that the class does not have.
KEEP_UNKNOWN: Final = Meta(extra_json_schema={UNKNOWN: True})

#: An integer of 32 bits, `Annotated[int, INT32]`: the server refuses others, the class does not.
INT32: Final = Meta(extra_json_schema={"format": "int32"})
#: An integer of 64 bits.
INT64: Final = Meta(extra_json_schema={"format": "int64"})

#: A number, or a text such as "25%".
IntOrString: TypeAlias = int | str


class _ForPydantic:
    """What an annotation adds to pydantic's schema of a type, wherever the type occurs."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), **self._members}


_EMBEDDED_OBJECT: Final = {EMBEDDED: True, UNKNOWN: True}
#: Another whole object, with `apiVersion`, `kind` and `metadata`, which the server checks.
EmbeddedObject: TypeAlias = Annotated[
    dict[str, Any], Meta(extra_json_schema=_EMBEDDED_OBJECT), _ForPydantic(_EMBEDDED_OBJECT)
]


def rule(
    expression: str,
    *,
    message: str = "",
    message_expression: str = "",
    reason: str = "",
    field_path: str = "",
    optional_old_self: bool = False,
) -> Meta:
    """Return a CEL rule for a field, `Annotated[int, rule("self >= oldSelf")]`, or for `rules`.

    The API server evaluates it at each write; the class does not.

    Args:
        expression: true for valid values; `self` is the value. A rule with `oldSelf` is evaluated for changes only.
        message: what the user reads; the server quotes the expression without one.
        message_expression: CEL that returns the message.
        reason: "FieldValueInvalid" (the server's default), "FieldValueForbidden", "FieldValueRequired" or
            "FieldValueDuplicate".
        field_path: the field that the error names, relative to the value, such as ".maximum".
        optional_old_self: evaluate a rule with `oldSelf` for new values, too; `oldSelf` is then an optional.

    Raises:
        OptionError: the expression is empty, or spans lines and has no message.
    """
    if not expression.strip():
        raise OptionError("rule(): the expression is empty")
    if "\n" in expression.strip() and not message:
        raise OptionError(f"rule({expression!r}): an expression of several lines needs a message")
    found: dict[str, Any] = {"rule": expression, "message": message, "messageExpression": message_expression}
    found |= {"reason": reason, "fieldPath": field_path, "optionalOldSelf": optional_old_self}
    return Meta(extra_json_schema={RULES: [{name: value for name, value in found.items() if value}]})


def rules(*markers: Meta) -> Callable[[C], C]:
    """Return a decorator that adds markers to each value of a class: rules, `MAP_ATOMIC`, `KEEP_UNKNOWN`.

    @rules(rule("self.minimum <= self.maximum", message="minimum must not exceed maximum"))
    class Limits(msgspec.Struct, frozen=True): ...
    """

    def mark(cls: C) -> C:
        setattr(cls, _CLASS_RULES, markers)
        return cls

    return mark


def list_map(*keys: str) -> Meta:
    """Return the marker of a list whose members are identified by fields, as containers are by their name.

    Args:
        keys: JSON names of these fields; required, or with a default, and no objects.

    Raises:
        OptionError: there is no key.
    """
    if not keys:
        raise OptionError('list_map(): name the fields that identify a member: list_map("name")')
    return Meta(extra_json_schema={LIST_TYPE: "map", LIST_KEYS: list(keys)})


def class_markers(cls: type[Any]) -> list[Meta]:
    """Return the markers of a class and of its bases, those of bases first."""
    return [marker for base in reversed(cls.__mro__) for marker in vars(base).get(_CLASS_RULES, ())]


def with_markers(schema: dict[str, Any], markers: list[Meta]) -> dict[str, Any]:
    """Return a schema with what markers say."""
    return reduce(merged, (marker.extra_json_schema or {} for marker in markers), schema)


def merged(schema: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the keywords of another one, which win; the rules of both apply."""
    found = schema | more
    if RULES in schema and RULES in more:
        found[RULES] = [*schema[RULES], *more[RULES]]
    return found
