"""What all model classes have in common; `classes` in this package makes the classes themselves at run time."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

import msgspec

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class _Hidden:
    """Stands in a repr for a value that must not end in a log."""

    def __repr__(self) -> str:
        return "<hidden>"


_HIDDEN = _Hidden()


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An immutable object of the API, or a part of one, with the attribute names of kubernetes_asyncio's models.

    Attributes that the server did not send are None. Lists are tuples, maps are `FrozenDict`, times are `datetime`.
    `ApiClient` takes it as a request body. It is not an instance of kubernetes_asyncio's class of the same name.

    The repr leaves out what is None, and never shows the values of a Secret; the annotation in which `kubectl apply`
    keeps a copy of the object, which for a Secret has them, too, is not shown for any object.

    Attributes:
        openapi_types: types by attribute, as kubernetes_asyncio writes them.
        attribute_map: wire names by attribute.
    """

    openapi_types: ClassVar[dict[str, str]] = {}
    attribute_map: ClassVar[dict[str, str]] = {}

    def to_dict(self) -> dict[str, Any]:
        """A plain, mutable copy, with keys as on the wire and without what the server did not send."""
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
        # There is nothing in it that could change. (For a copy to be changed there is `to_dict`.)
        return self


def refuse_write(self: Model, name: str, value: Any = None) -> NoReturn:
    """What setting or deleting an attribute of a model does.

    Raises:
        AttributeError: always, as for other frozen classes.
    """
    raise AttributeError(
        f"{type(self).__name__} belongs to a cached object: {name} cannot be changed; change a copy, from to_dict()"
    )


def _shown(model: str, name: str, value: Any) -> Any:
    if model == "V1Secret" and name in ("data", "string_data"):
        return dict.fromkeys(value, _HIDDEN)
    if name == "annotations" and _LAST_APPLIED in value:
        return {**value, _LAST_APPLIED: _HIDDEN}
    return value
