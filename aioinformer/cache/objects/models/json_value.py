"""Decode values without a class: any JSON, and maps. Both become immutable.

msgspec decodes them into plain data, and calls `freeze_hook` for the final value.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any

import msgspec

from aioinformer.cache.objects.frozen import FrozenDict, closed, freeze_decoded
from aioinformer.resources.quantities import Quantity, quantity_of


class _AnyJSON(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return True


class JSONValue(metaclass=_AnyJSON):
    """The type of an attribute of any JSON value, such as int-or-string. Every value is an instance of it."""


class MisplacedType(ValueError):
    """A value inside a map is not of the model's type.

    Attributes:
        path: of the value, from the map, in msgspec's notation.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


def freeze_hook(kind: type | GenericAlias, value: Any) -> Any:
    """Return the immutable form of a decoded value; a `dec_hook` for msgspec's decoders.

    Args:
        kind: `JSONValue`; `Quantity`; `FrozenDict` for maps from strings to strings; or `FrozenDict[str, …]` for other
            maps.
        value: plain data, which is changed in place.

    Raises:
        MisplacedType: the value, or one inside it, is of another type.
        NotImplementedError: there is no such kind.
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
    if kind is Quantity:
        return quantity_of(value)
    if not isinstance(kind, GenericAlias) or kind.__origin__ is not FrozenDict:
        raise NotImplementedError(f"{kind!r} cannot be made of JSON")  # a type of a user's model
    try:
        return closed(msgspec.convert(value, GenericAlias(dict, kind.__args__), dec_hook=freeze_hook))
    except msgspec.ValidationError as error:
        raise MisplacedType(*where(error)) from None


def where(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return msgspec's message and the complete path, which includes maps."""
    text, _, path = str(error).partition(" - at `")
    path = path.removesuffix("`") or "$"
    if isinstance(error.__cause__, MisplacedType):
        path += error.__cause__.path.removeprefix("$")
    return text, path


def _quantity(value: Any) -> str:
    # Maps of quantities may be written with numbers (`cpu: 1`). API servers convert these to strings; servers for tests
    # may not. kubernetes_asyncio reads them as strings, too.
    if type(value) in (int, float):
        return str(value)
    raise MisplacedType(f"Expected `str`, got `{_name(value)}`", "$[...]")


def _name(value: Any) -> str:
    return {dict: "object", list: "array", type(None): "null"}.get(type(value), type(value).__name__)
