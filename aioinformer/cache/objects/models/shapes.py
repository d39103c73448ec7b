"""The shapes of kubernetes_asyncio's models, from a generated file: attributes, their types and their JSON names.

For each attribute, the file has the type: the name of a scalar or of a model, in brackets for a list (`[V1Container]`),
in braces for a map from strings (`{str}`). A list or map that the API requires is marked with `!`, a quantity with `#`.
If the JSON name is not the attribute in camel case, it follows after a space. Shapes are decoded on demand.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


_GROUP_VERSION = re.compile(r"^(?:[A-Z][a-z]+)?V\d+(?:(?:alpha|beta)\d+)?(?=[A-Z])")


class Attribute(NamedTuple):
    """One attribute of a model.

    Attributes:
        name: in kubernetes_asyncio, `node_name`.
        wire: in JSON, `nodeName`.
        type: in kubernetes_asyncio's notation, `list[V1Container]`, `dict(str, str)`.
        notation: the type in the file's notation.
        never_none: whether it is a list or map that the API requires. Servers may send null for an empty one.
        quantity: whether it is a quantity, or a list of them. In custom resources, it may be an integer.
    """

    name: str
    wire: str
    type: str
    notation: str
    never_none: bool = False
    quantity: bool = False


@cache
def _shapes() -> dict[str, msgspec.Raw]:
    loader: Any = __spec__.loader  # which may read from an archive
    text = loader.get_data(os.path.join(os.path.dirname(__file__), "shapes.json"))
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


_decode_shape = msgspec.json.Decoder(dict[str, str]).decode


def has_model(model: str) -> bool:
    """Return whether there is a model of this name."""
    return model in _shapes()


def attributes_of(model: str) -> list[Attribute]:
    """Return the attributes of a model, in kubernetes_asyncio's order.

    Raises:
        KeyError: there is no such model.
    """
    attributes = []
    for name, text in _decode_shape(_shapes()[model]).items():
        notation, _, wire = text.partition(" ")
        never_none = notation.endswith("!")
        notation = notation.removesuffix("!")
        quantity = notation.endswith("#")
        notation = notation.removesuffix("#")
        wire = wire or _camel_case(name)
        attributes.append(Attribute(name, wire, _spelt_out(notation), notation, never_none, quantity))
    return attributes


def notation_at(model: str, steps: Iterable[str]) -> str:
    """Return the type at a path of JSON names, in the file's notation; "" if the model has no such field."""
    notation = model
    for step in steps:
        if not has_model(notation):
            return ""
        notation = next((each.notation for each in attributes_of(notation) if each.wire == step), "")
    return notation


def kind_of(model: str) -> str:
    """Return the name of a model in the API, without group and version: "Event" for "CoreV1Event"."""
    return _GROUP_VERSION.sub("", model, count=1)


def _spelt_out(notation: str) -> str:
    if notation[0] == "[":
        return f"list[{_spelt_out(notation[1:-1])}]"
    if notation[0] == "{":
        return f"dict(str, {_spelt_out(notation[1:-1])})"
    return notation


def _camel_case(name: str) -> str:
    head, *tail = name.removeprefix("_").split("_")
    return head + "".join(map(str.capitalize, tail)) if tail else head
