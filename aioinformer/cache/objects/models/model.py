"""The base class of all models; `classes` in this package builds the models at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An immutable API object, or a part of one, with the attribute names of kubernetes_asyncio's models.

    Attributes that the server did not send are None. Lists are tuples, maps are `FrozenDict`, times are `datetime`.
    `ApiClient` accepts it as a request body. It is not an instance of kubernetes_asyncio's class of the same name.

    `__name__` is the name in the API, "PodSpec"; `__qualname__` is that of kubernetes_asyncio's model, "V1PodSpec".

    The repr names the attributes that are not None, and shows no values, since parts of objects appear in logs:
    `<PodSpec: containers, node_name>`. `to_dict()` shows the values.

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
        present = [name for name in self.openapi_types if getattr(self, name) is not None]
        if present:
            return f"<{type(self).__name__}: {', '.join(present)}>"
        return f"<{type(self).__name__}>"

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the members of the JSON, so that `dict(spec)` is `spec.to_dict()`, as for pydantic's models."""
        return iter(self.to_dict().items())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from aioinformer.cache.objects.models.pydantic_schema import schema_of

        return schema_of(cls, cls._of)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        from aioinformer.cache.objects.models.pydantic_schema import json_schema_of

        return json_schema_of(cls, "A part of the Kubernetes API.")

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Self:
        """Return the model of a mapping with the keys of its JSON.

        Raises:
            DecodeError: it does not fit the model.
        """
        from aioinformer.cache.objects.encoding import encoded
        from aioinformer.cache.objects.models.decoding import decoder_for

        return cast("Self", decoder_for(cls.__qualname__)(encoded(document)))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable; to_dict() makes a mutable copy


def refuse_write(self: Model, name: str, value: Any = None) -> NoReturn:
    """Refuse to set or delete an attribute: `__setattr__` and `__delattr__` of all models.

    Raises:
        AttributeError: always, as for other frozen classes.
    """
    raise AttributeError(
        f"{type(self).__name__} belongs to a cached object: {name} cannot be changed; change a copy, from to_dict()"
    )
