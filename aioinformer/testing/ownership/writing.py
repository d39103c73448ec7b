"""Track field ownership of writes. Types come from the schemas of the kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.go_structs import go_json
from aioinformer.testing.ownership.managers import (
    after_update,
    read_owners,
    write_owners,
)
from aioinformer.testing.schemas.field_checks import kind_type
from aioinformer.testing.schemas.typed_fields import FieldType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Manager, Owners
    from aioinformer.testing.schemas.field_paths import FieldSet

NO_TYPE = FieldType({}, {})
_RESET: list[dict[str, Any]] = [{}]


def track(served: Served, old: Mapping[str, Any] | None, obj: dict[str, Any], by: Manager, now: str) -> None:
    """Set the owners of the fields of an object that is about to be stored.

    Args:
        served: the resource.
        old: the object that it replaces, if any.
        obj: the object to store; its `managedFields` are those of the client.
        by: the writer.
        now: as the API writes times.
    """
    now = noted_time(by, now)
    asked = obj["metadata"].get("managedFields")
    if asked == _RESET:
        owners = None
    else:
        sent = None if by.subresource else read_owners(obj["metadata"])
        owners = sent or (read_owners(old["metadata"]) if old is not None else None)
    type_ = kind_type(served) or NO_TYPE
    if old is None:
        owners = owners or {}
        # A new built-in object starts as the zero value of a Go type, which has some fields.
        old = {} if served.custom else go_json({"kind": obj["kind"], "apiVersion": obj["apiVersion"]})
    ignored = ignored_fields(served, by)
    write_owners(obj["metadata"], after_update(old, obj, type_, owners, by, now, ignored))


def note_owners(obj: dict[str, Any], owners: Owners) -> None:
    """Set the owners of an object if they are known already."""
    write_owners(obj["metadata"], owners)


def noted_time(by: Manager, now: str) -> str:
    """Return the time to record for a write; "" for scales, which have no time."""
    return "" if by.subresource == "scale" else now


def ignored_fields(served: Served, by: Manager) -> FieldSet:
    """Return the fields that this kind of write cannot change."""
    if by.subresource == "status":
        return frozenset({("f:spec",)})
    return frozenset({("f:status",)}) if "status" in served.subresources else frozenset()
