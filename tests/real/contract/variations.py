"""Send several valid or invalid objects in one row, and return the statuses.

Objects are either written out, with no more metadata than they need, or they are one valid object with changes in some
places: a row is only about what is invalid in them.
"""

from __future__ import annotations

import copy
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from tests.real.contract.conversation import Conversation

    Changes = Mapping[str, Any]

GONE = object()
Object = dict[str, Any]


def manifest(fields: Mapping[str, Any], name: str = "a") -> Object:
    """Return an object with these fields and a name."""
    return {**fields, "metadata": {"name": name} | fields.get("metadata", {})}


def with_changes(obj: Mapping[str, Any], changes: Changes) -> Object:
    """Return a copy with changes.

    Args:
        obj: the object to copy.
        changes: values by path, such as "spec.ports.0.name"; missing parents are created, and GONE removes a field.
    """
    copied: Object = copy.deepcopy(dict(obj))
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = copied
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is GONE:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return copied


async def dry_run_creates(api: Conversation, where: str, objects: Iterable[Mapping[str, Any]]) -> list[int]:
    """Create each of several objects in a dry run, and return the statuses."""
    answers = [await api("POST", f"{where}?dryRun=All", manifest(each)) for each in objects]
    return [answer.status for answer in answers]


async def dry_run_updates(
    api: Conversation, where: str, old: Mapping[str, Any], new: Iterable[Mapping[str, Any]]
) -> list[int]:
    """Create an object, replace it by each of several others in a dry run, and return the statuses."""
    made = await api.create(where, manifest(old))
    name = made["metadata"]["name"]
    answers = [await api("PUT", f"{where}/{name}?dryRun=All", manifest(each, name)) for each in new]
    return [answer.status for answer in answers]


@asynccontextmanager
async def existing(api: Conversation, where: str, obj: Mapping[str, Any]) -> AsyncIterator[tuple[str, Object]]:
    """Create an object for the length of a block; yield its path, and metadata for an update of it.

    It has the name of the row's namespace, so that cluster-scoped objects of several rows do not collide.
    """
    made = await api.create(where, manifest(obj, api.namespace))
    path = f"{where}/{api.namespace}"
    try:
        yield path, {"metadata": {"name": api.namespace, "resourceVersion": made["metadata"]["resourceVersion"]}}
    finally:
        await api("DELETE", path, recorded=False)


async def variant_statuses(
    api: Conversation, where: str, obj: Mapping[str, Any], variants: Iterable[Changes]
) -> set[int]:
    """Create variants of an object in dry runs, and return their statuses."""
    return set(await dry_run_creates(api, where, [with_changes(obj, changes) for changes in variants]))
