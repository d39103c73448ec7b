"""Values in the form of Go structs: with all fields, by their Go names.

The API quotes some values, and some differences between values, in this form.
"""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shape = Mapping[str, Any]
    """By Go name: the zero value, or the shape of a struct (in a tuple for a pointer, in a list for a slice)."""

_ACRONYM = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]+$|[A-Z]")
#: Go names whose JSON name does not follow from the general rule.
_IRREGULAR_NAMES = {
    "CephFS": "cephfs",
    "DataDiskURI": "diskURI",
    "DiscoveryCHAPAuth": "chapAuthDiscovery",
    "SessionCHAPAuth": "chapAuthSession",
    "StorageOS": "storageos",
    "WWIDs": "wwids",
}


def go_struct(value: Mapping[str, Any] | None, shape: Shape) -> dict[str, Any]:
    """Return a JSON object as a struct.

    Args:
        value: the object; None is an empty one.
        shape: the fields of the struct in order.
    """
    value = value or {}
    return {name: _field(value.get(json_name(name)), zero) for name, zero in shape.items()}


def json_name(go_name: str) -> str:
    """Return the JSON name of a field: "APIGroup" becomes "apiGroup", "NFS" becomes "nfs"."""
    return _IRREGULAR_NAMES.get(go_name) or _ACRONYM.sub(lambda found: found[0].lower(), go_name, count=1)


def difference(old: Any, new: Any) -> str:
    """Return the unified diff of two values, line by line."""
    before, after = ([f"{line}\n" for line in _go_json(each).split("\n")] for each in (old, new))
    # Drop the two header lines with the file names.
    return "".join(list(difflib.unified_diff(before, after))[2:])


def _go_json(value: Any) -> str:
    """Return the value as Go's encoding/json writes it, with HTML characters escaped."""
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
        # Go prints maps sorted by key.
        return dict(sorted(value.items()))
    return zero if value is None else value
