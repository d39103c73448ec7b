"""The shapes of kubernetes_asyncio's models, from a generated file: attributes, their types and their wire names.

The file says of each attribute its type, as the name of a scalar or of a model, in brackets for a list
(`[V1Container]`) and in braces for a map from strings (`{str}`). The wire name follows after a space where it is not
the attribute in camel case. Only the models asked for are taken apart.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from typing import NamedTuple

import msgspec


class Attribute(NamedTuple):
    """One attribute of a model.

    Attributes:
        name: as kubernetes_asyncio calls it, `node_name`.
        wire: as JSON has it, `nodeName`.
        type: as kubernetes_asyncio writes it, `list[V1Container]`, `dict(str, str)`.
        notation: the type as the file has it.
    """

    name: str
    wire: str
    type: str
    notation: str


@cache
def _shapes() -> dict[str, msgspec.Raw]:
    text = pkgutil.get_data(__name__, "shapes.json")
    assert text is not None, "the package was installed without its data"
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


_decode_shape = msgspec.json.Decoder(dict[str, str]).decode


def has_model(model: str) -> bool:
    """Whether there is a model of this name."""
    return model in _shapes()


def attributes_of(model: str) -> list[Attribute]:
    """The attributes of a model, in the order in which kubernetes_asyncio has them.

    Raises:
        KeyError: there is no model of this name.
    """
    attributes = []
    for name, text in _decode_shape(_shapes()[model]).items():
        notation, _, wire = text.partition(" ")
        attributes.append(Attribute(name, wire or _camel_case(name), _spelt_out(notation), notation))
    return attributes


def _spelt_out(notation: str) -> str:
    if notation[0] == "[":
        return f"list[{_spelt_out(notation[1:-1])}]"
    if notation[0] == "{":
        return f"dict(str, {_spelt_out(notation[1:-1])})"
    return notation


def _camel_case(name: str) -> str:
    head, *tail = name.removeprefix("_").split("_")
    return head + "".join(map(str.capitalize, tail)) if tail else head
