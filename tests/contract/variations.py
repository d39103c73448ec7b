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

    from tests.contract.talk import Talk

    Changes = Mapping[str, Any]

GONE = object()
Object = dict[str, Any]


def manifest(fields: Mapping[str, Any], name: str = "a") -> Object:
    """An object of these fields; of its metadata only those that matter to the row have to be among them."""
    return {**fields, "metadata": {"name": name} | fields.get("metadata", {})}


def but(obj: Mapping[str, Any], changes: Changes) -> Object:
    """A copy with other values.

    Args:
        changes: by path, "spec.ports.0.name"; parents that are missing are made, and GONE takes something away.
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


async def told(talk: Talk, where: str, objects: Iterable[Mapping[str, Any]]) -> list[int]:
    """Asks for each of several objects to be made, none of which is kept, and returns the statuses."""
    answers = [await talk("POST", f"{where}?dryRun=All", manifest(each)) for each in objects]
    return [answer.status for answer in answers]


async def changed(talk: Talk, where: str, old: Mapping[str, Any], new: Iterable[Mapping[str, Any]]) -> list[int]:
    """Makes an object, asks for it to be replaced by each of several others, and returns the statuses."""
    made = await talk.made(where, manifest(old))
    name = made["metadata"]["name"]
    answers = [await talk("PUT", f"{where}/{name}?dryRun=All", manifest(each, name)) for each in new]
    return [answer.status for answer in answers]


@asynccontextmanager
async def standing(talk: Talk, where: str, obj: Mapping[str, Any]) -> AsyncIterator[tuple[str, Object]]:
    """An object for the length of a block: its path, and the metadata that replace it in its present version.

    It has the namespace's name, so that there may be one beside others where no namespace keeps them apart.
    """
    made = await talk.made(where, manifest(obj, talk.namespace))
    path = f"{where}/{talk.namespace}"
    try:
        yield path, {"metadata": {"name": talk.namespace, "resourceVersion": made["metadata"]["resourceVersion"]}}
    finally:
        await talk("DELETE", path, kept=False)


async def statuses(talk: Talk, where: str, obj: Mapping[str, Any], variants: Iterable[Changes]) -> set[int]:
    """How variants of an object are answered when somebody asks whether they could be created."""
    return set(await told(talk, where, [but(obj, changes) for changes in variants]))
