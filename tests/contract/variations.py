"""Right objects with something else in some places: what is wrong with them is all that a row is about."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.contract.talk import Talk

    Changes = Mapping[str, Any]

GONE = object()


def but(obj: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """A copy with other values.

    Args:
        changes: by path, "spec.ports.0.name"; parents that are missing are made, and GONE takes something away.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(obj))
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = changed
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is GONE:
            del place[last]
        elif isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    return changed


async def statuses(talk: Talk, path: str, obj: Mapping[str, Any], variants: Iterable[Changes]) -> set[int]:
    """How each variant of an object is answered when somebody asks whether it could be created."""
    answers = [await talk("POST", f"{path}?dryRun=All", but(obj, changes)) for changes in variants]
    return {answer.status for answer in answers}
