"""How a decoder meets what has no class: values of any form, and maps. Both become immutable as they arrive.

msgspec makes plain data of them and then asks `freeze_hook` for the value to keep.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any

import msgspec

from aioinformer.cache.objects.frozen import FrozenDict, closed, freeze_decoded


class _AnyJSON(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return True


class JSONValue(metaclass=_AnyJSON):
    """The type of an attribute that may hold any JSON, such as int-or-string; every value passes as an instance."""


class MisplacedType(ValueError):
    """Inside a map: a value is not of the type that the model says.

    Attributes:
        path: where, seen from the map, in msgspec's notation.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


def freeze_hook(kind: type | GenericAlias, value: Any) -> Any:
    """The immutable value to keep; a hook for msgspec's decoders.

    Args:
        kind: `JSONValue`; `FrozenDict` for maps from strings to strings; or `FrozenDict[str, …]` for other maps.
        value: plain data that nobody else holds.

    Raises:
        MisplacedType: a map, or something in it, is of another type.
    """
    if kind is FrozenDict:
        if type(value) is not dict:
            raise MisplacedType(f"Expected `object`, got `{_name(value)}`", "$")
        for key, item in value.items():
            if type(item) is not str and item is not None:
                value[key] = _quantity(item)
        return closed(value)
    if kind is JSONValue:
        return freeze_decoded(value)
    arguments: Any = kind.__args__  # type: ignore[union-attr]  # the third case, an alias
    try:
        return closed(msgspec.convert(value, GenericAlias(dict, arguments), dec_hook=freeze_hook))
    except msgspec.ValidationError as error:
        raise MisplacedType(*where(error)) from None


def where(error: msgspec.ValidationError) -> tuple[str, str]:
    """What msgspec found wrong, and the whole path to it, through maps."""
    text, _, path = str(error).partition(" - at `")
    path = path.removesuffix("`") or "$"
    if isinstance(error.__cause__, MisplacedType):
        path += error.__cause__.path.removeprefix("$")
    return text, path


def _quantity(value: Any) -> str:
    # Of the maps of strings, those of quantities may be written with numbers (`cpu: 1`). A real server answers with
    # strings, a server made for tests may repeat what it was given. The client library takes it for a string, too.
    if type(value) in (int, float):
        return str(value)
    raise MisplacedType(f"Expected `str`, got `{_name(value)}`", "$[...]")


def _name(value: Any) -> str:
    return {dict: "object", list: "array", type(None): "null"}.get(type(value), type(value).__name__)
