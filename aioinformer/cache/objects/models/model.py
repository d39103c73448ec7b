"""The base class of all models; `classes` in this package builds the models at run time."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

import msgspec

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _Hidden:
    """Replaces a value in a repr that must not appear in a log."""

    def __repr__(self) -> str:
        return "<hidden>"


_HIDDEN = _Hidden()


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An immutable API object, or a part of one, with the attribute names of kubernetes_asyncio's models.

    Attributes that the server did not send are None. Lists are tuples, maps are `FrozenDict`, times are `datetime`.
    `ApiClient` accepts it as a request body. It is not an instance of kubernetes_asyncio's class of the same name.

    The repr omits attributes that are None, and never shows the values of a Secret. It hides the annotation in which
    `kubectl apply` stores a copy of the object, since for a Secret the copy contains the values.

    Attributes:
        openapi_types: attribute -> type, in kubernetes_asyncio's notation.
        attribute_map: attribute -> JSON name.
    """

    openapi_types: ClassVar[dict[str, str]] = {}
    attribute_map: ClassVar[dict[str, str]] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return a plain, mutable copy with the keys of the JSON, without attributes that the server did not send."""
        copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return copied

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = [(name, getattr(self, name)) for name in self.openapi_types]
        return [(name, _shown(type(self).__name__, name, value)) for name, value in values if value is not None]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable; to_dict() makes a mutable copy


def refuse_write(self: Model, name: str, value: Any = None) -> NoReturn:
    """Raise AttributeError: `__setattr__` and `__delattr__` of all models."""
    raise AttributeError(
        f"{type(self).__name__} belongs to a cached object: {name} cannot be changed; change a copy, from to_dict()"
    )


def _shown(model: str, name: str, value: Any) -> Any:
    if model == "V1Secret" and name in ("data", "string_data"):
        return dict.fromkeys(value, _HIDDEN)
    if name == "annotations" and _LAST_APPLIED in value:
        return {**value, _LAST_APPLIED: _HIDDEN}
    return value
