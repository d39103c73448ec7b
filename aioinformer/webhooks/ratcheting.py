"""Updates of stored objects that the class refuses: which of them pass without the function.

A class may refuse objects that were stored before a bound became narrower. The API server forgives what an update does
not change (KEP-4008), so that such an object can be labelled, and can lose its finalizers. Here, the same holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.client.bodies import decode
from aioinformer.errors import DecodeError

if TYPE_CHECKING:
    from aioinformer.cache.objects.codec import ObjectType


def forgiven_fields(new: bytes, old: bytes, objects: ObjectType[Any], *, status_apart: bool) -> list[str]:
    """Return the fields for which a class refuses a new object, if the update that makes it is forgiven; else [].

    It is forgiven if the class refuses the stored object, too, both are equal outside of `metadata` and, for
    `status_apart`, `status`, and no refused field lies in a part that may differ.

    Args:
        new, old: the JSON of both objects.
        status_apart: whether the status is a subresource.
    """
    changing = ("metadata", "status") if status_apart else ("metadata",)
    changed = msgspec.json.decode(new)
    stored = msgspec.json.decode(old)
    if not (isinstance(changed, dict) and isinstance(stored, dict)):
        return []
    if not _refused(stored, changing, objects)[0]:
        return []
    apart = dict.fromkeys(changing)
    if _canonical({**changed, **apart}) != _canonical({**stored, **apart}):
        return []
    free = ["metadata"]
    if status_apart and _canonical(changed.get("status")) != _canonical(stored.get("status")):
        free.append("status")
    refused, fields = _refused(changed, changing, objects)
    # Fields that are not known may be anywhere.
    if refused and not any(_is_below(field, name) for field in fields for name in free):
        return fields
    return []


def _canonical(value: Any) -> bytes:
    # For Python, 1, 1.0 and True are equal.
    return msgspec.json.encode(value, order="sorted")


def _refused(document: dict[str, Any], first: tuple[str, ...], objects: ObjectType[Any]) -> tuple[bool, list[str]]:
    """Return whether a class refuses an object, and for which fields.

    A class of msgspec reads the members in their order, and names the first mistake. So a mistake elsewhere means that
    there is none in the members that come first.
    """
    ordered = {name: document[name] for name in first if name in document}
    try:
        decode(msgspec.json.encode({**ordered, **document}), objects)
    except DecodeError as error:
        return True, list(error.fields)
    return False, []


def _is_below(field: str, name: str) -> bool:
    return field == name or field.startswith((f"{name}.", f"{name}["))
