"""References from the primary's objects to others, by name: an index of the primary's cache maps them back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.cache.objects.fields import parse_path
from aioinformer.controller.inputs.content import decode, json_of, split, value_at
from aioinformer.controller.inputs.keys import key_of, keys_in
from aioinformer.errors import UsageError
from aioinformer.functions import function_name, plain_function

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource


class References:
    """Maps objects to the primary's objects that name them, by an index that is maintained with the primary's cache.

    Args:
        by: the path of a field of the primary, such as "spec.secretName"; or a function of a primary object. The value
            is the name of an object in the namespace of the primary, or "namespace/name"; several; or None or "".

    Raises:
        UsageError: the path does not parse, or the function is a coroutine function.
    """

    def __init__(self, by: str | Callable[[Any], Any]) -> None:
        self.by = by
        if isinstance(by, str):
            parse_path(by)
        else:
            synchronous(by, "References")


class ReferenceIndex(msgspec.Struct, frozen=True):
    """The index function of references: the keys of the objects that a primary object names.

    Attributes:
        by: as for `References`.
        resource: of the named objects.
    """

    by: Any
    resource: Resource[Any]

    @property
    def name(self) -> str:
        """The name of the index: different ones for different functions."""
        by = self.by if isinstance(self.by, str) else f"{function_name(self.by)} ({id(self.by):#x})"
        return f"references to {self.resource.gvr} by {by}"

    def __call__(self, primary: Any) -> list[str]:
        if isinstance(self.by, str):
            found = value_at(split(json_of(primary)), parse_path(self.by))
            value = None if found is None else decode(found)
        else:
            value = self.by(primary)
        return list(map(str, keys_in(value, self.resource, key_of(primary).namespace, self.name)))


def synchronous(function: Any, what: str) -> Any:
    """Return the function unchanged.

    Raises:
        UsageError: it is not a function, or its result would have to be awaited.
    """
    called = getattr(type(function), "__call__", None)  # noqa: B004 - of an object that is called like a function
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(called):
        raise UsageError(f"{what}: expected a plain function, not an asynchronous one: its result would not be awaited")
    return plain_function(function, what)
