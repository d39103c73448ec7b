"""Ownership of fields, as `metadata.managedFields` states it, and patches that move fields to an apply.

An apply removes the fields that its manager has applied before and does not state any more. It leaves alone what the
same manager has created, replaced, patched or edited: that is recorded apart, as an update. So a program that changes
from updates to applies moves these entries first, or its former fields stay for ever.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.client.changes.patches import document_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Entry = dict[str, Any]

#: The most bytes of a manager's name that are part of the name of its creations, which may have 128.
_LONGEST: Final = 100


def managed_fields_upgrade(
    obj: Any, managers: Collection[str], to: str, *, subresource: str = ""
) -> dict[str, Any] | None:
    """Return the merge patch that makes fields which some managers have updated applied fields of a manager.

    After it, an apply of `to` removes those of the fields that it does not state. The object does not change otherwise.
    The patch has the version of the object as a precondition: no entry of another writer is lost. It is client-go's
    `UpgradeManagedFieldsPatch`, but for entries of several versions of the API: all of them are moved.

        patch = managed_fields_upgrade(deployment, ["operator", "kubectl-edit"], "operator")

    `ResourceClient.upgrade_managed_fields` reads the live object, sends this patch, and repeats both after a conflict.

    Args:
        obj: a whole object, as the server has sent it.
        managers: whose updates to move. The entries of others are left as they are.
        to: the field manager of the applies.
        subresource: move what was updated through this subresource, such as "status"; "" for the object itself.

    Returns:
        None if none of the managers has updated anything.

    Raises:
        UsageError: it is not an object, or has no JSON form.
    """
    metadata = document_of(obj).get("metadata") or {}
    names = dict.fromkeys(managers)
    found = [entry for name in names for entry in entries_of(metadata, name, "Update", subresource=subresource)]
    return _moved(metadata, found, to, subresource)


def creation_moved(cached: Any, manager: str) -> dict[str, Any] | None:
    """Return the merge patch that makes the fields of an object's creation applied ones of a manager.

    None if there are none. The patch has the version as a precondition: an entry of another writer is never lost.
    """
    metadata = document_of(cached).get("metadata") or {}
    return _moved(metadata, creations_of(metadata, manager), manager, "")


def _moved(metadata: _Entry, updates: list[_Entry], manager: str, subresource: str) -> dict[str, Any] | None:
    updates = [each for each in updates if _is_readable(each)]
    if not updates:
        return None
    applied = [each for each in entries_of(metadata, manager, "Apply", subresource=subresource) if _is_readable(each)]
    merged = [*applied, *updates]
    fields = reduce(union, (each["fieldsV1"] for each in merged))
    moved = {**merged[0], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return with_entries(metadata, [moved, *(each for each in metadata["managedFields"] if each not in merged)])


def with_entries(metadata: _Entry, entries: list[_Entry]) -> dict[str, Any]:
    """Return the merge patch that replaces the entries of exactly this version of an object."""
    return {"metadata": {"resourceVersion": metadata.get("resourceVersion"), "managedFields": entries}}


def owned_fields(obj: Any, manager: str) -> list[dict[str, Any]]:
    """Return the sets of fields that are recorded for a manager, by any write of an object outside its subresources."""
    metadata = document_of(obj).get("metadata") or {}
    found = [*entries_of(metadata, manager, "Apply", "Update"), *creations_of(metadata, manager)]
    return [entry["fieldsV1"] for entry in found if isinstance(entry.get("fieldsV1"), dict)]


def has_key(fields: Mapping[str, Any], key: Any) -> bool:
    """Return whether the recorded fields of a list that is merged by key contain the element with this key."""
    return any(name.startswith("k:") and decoded_key(name) == key for name in fields)


def entries_of(metadata: Mapping[str, Any], manager: str, *operations: str, subresource: str = "") -> Iterator[_Entry]:
    """Yield the entries of a manager, of some operations."""
    for entry in metadata.get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") in operations
            and (entry.get("subresource") or "") == subresource
        ):
            yield entry


def creations_of(metadata: Mapping[str, Any], manager: str) -> list[_Entry]:
    """Return the entries of what a manager has created with `apply_new`, and not applied since."""
    names = {entry.get("manager") or "": None for entry in metadata.get("managedFields") or ()}
    creators = [name for name in names if name.startswith(creator_of(manager))]
    return [entry for name in creators for entry in entries_of(metadata, name, "Update")]


def creator_of(manager: str) -> str:
    """Return the beginning of the names under which a manager creates objects that it applies later."""
    return f"{manager.encode()[:_LONGEST].decode(errors='ignore')}:created-"


def writes_as(manager: str, name: str) -> bool:
    """Return whether a field manager is that of the applies of `manager`, or one of its creations."""
    return name == manager or name.startswith(creator_of(manager))


def union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of both of two sets."""
    return {name: union(one.get(name, {}), other.get(name, {})) for name in (*one, *other)}


def decoded_key(name: str) -> Any:
    """Return the JSON in the name of an element, `k:{"port":80}` or `v:"a"`; None if there is none."""
    try:
        return msgspec.json.decode(name[2:])
    except msgspec.DecodeError:
        return None


def _is_readable(entry: Mapping[str, Any]) -> bool:
    return entry.get("fieldsType", "FieldsV1") == "FieldsV1" and isinstance(entry.get("fieldsV1"), dict)
