"""Render the shapes of the models: the type of each attribute, and its wire name if that is unusual."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LIST = re.compile(r"^list\[(.+)\]$")
_MAP = re.compile(r"^dict\(str, (.+)\)$")


def render_shapes(
    models: Iterable[tuple[str, dict[str, str], dict[str, str]]],
    never_none: Mapping[str, set[str]],
    quantities: Mapping[str, set[str]],
) -> str:
    """Return the text of `shapes.json` in `aioinformer/cache/objects/models`; `shapes.py` there explains it.

    Args:
        models: name, attribute types and wire names of each model.
        never_none: the lists and maps of each model that the API requires.
        quantities: the quantities of each model, and its lists of quantities.
    """
    lines = []
    for name, types, wire_names in models:
        shape = {}
        for attribute, kind in types.items():
            wire = wire_names[attribute]
            mark = "!" if attribute in never_none.get(name, ()) else ""
            amount = "#" if attribute in quantities.get(name, ()) else ""
            shape[attribute] = _compact(kind) + amount + mark + ("" if wire == _usual(attribute) else f" {wire}")
        lines.append(f"{json.dumps(name)}:{json.dumps(shape, separators=(',', ':'))}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(kind: str) -> str:
    if match := _LIST.match(kind):
        return f"[{_compact(match[1])}]"
    if match := _MAP.match(kind):
        return f"{{{_compact(match[1])}}}"
    if not kind.isidentifier():
        raise ValueError(f"cannot parse the type {kind!r} of a model attribute")
    return kind


def _usual(attribute: str) -> str:
    head, *tail = attribute.removeprefix("_").split("_")
    return head + "".join(part.capitalize() for part in tail)
