"""Values as Go's programs have them inside: with all their fields, by their names in Go.

The API quotes some values, and the differences between some, in this form.
"""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shape = Mapping[str, Any]
    """By name in Go: the zero value; the shape of a struct, in a tuple if it is pointed to, in a list if it is many."""

_ACRONYM = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]+$|[A-Z]")
#: Where the name in JSON does not follow from that in Go.
_NAMED_OTHERWISE = {
    "CephFS": "cephfs",
    "DataDiskURI": "diskURI",
    "DiscoveryCHAPAuth": "chapAuthDiscovery",
    "SessionCHAPAuth": "chapAuthSession",
    "StorageOS": "storageos",
    "WWIDs": "wwids",
}


def go_struct(value: Mapping[str, Any] | None, shape: Shape) -> dict[str, Any]:
    """A JSON object as a struct.

    Args:
        value: None for one that has nothing set.
        shape: its fields in their order.
    """
    value = value or {}
    return {name: _field(value.get(json_name(name)), zero) for name, zero in shape.items()}


def json_name(go_name: str) -> str:
    """How a field is called in JSON: "APIGroup" is "apiGroup", "NFS" is "nfs"."""
    return _NAMED_OTHERWISE.get(go_name) or _ACRONYM.sub(lambda found: found[0].lower(), go_name, count=1)


def difference(old: Any, new: Any) -> str:
    """What changed between two values, line by line."""
    before, after = ([f"{line}\n" for line in _written(each).split("\n")] for each in (old, new))
    # The names of files are left out, and so are the lines that would tell them.
    return "".join(list(difflib.unified_diff(before, after))[2:])


def _written(value: Any) -> str:
    """As Go writes JSON, which may be part of a web page."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _field(value: Any, zero: Any) -> Any:
    match zero:
        case tuple():
            return None if value is None else go_struct(value, zero[0])
        case [dict() as element]:
            return None if value is None else [go_struct(each, element) for each in value]
        case dict():
            return go_struct(value, zero)
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        # A map has no order of its own, and is told sorted.
        return dict(sorted(value.items()))
    return zero if value is None else value
