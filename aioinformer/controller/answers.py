"""`StatusAnswers`: what the answers of a server have shown about the statuses that `set_status` writes."""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aioinformer.logs import without_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources.resource import Resource

#: For how many objects, and for how many seconds, to remember what the server has stored instead of what was sent.
_OBJECTS: Final = 4096
_SECONDS: Final = 600.0


class StoredOtherwise(NamedTuple):
    """What a server has stored of one generation of an object, where it differs from what was sent.

    Attributes:
        generation: of the object.
        until: when this expires.
        members: path -> what was sent, and what the server has stored instead, None for nothing.
    """

    generation: int | None
    until: float
    members: dict[tuple[str, ...], tuple[Any, Any]]

    def __repr__(self) -> str:
        return without_values(self)


class StatusAnswers:
    """What the answers of one server have shown: of resources, and of the objects written last.

    A run of a manager has one. Without it, a member that the server does not store as it was sent would be sent in each
    run. What is known of an object holds for its generation, for ten minutes, and for the objects written last.

    Attributes:
        served: gvr -> the resource as discovery has shown it. The next answer says whether the status is still a
            subresource.
    """

    def __init__(self) -> None:
        self.served: dict[str, Resource[Any]] = {}
        self._objects: OrderedDict[str, StoredOtherwise] = OrderedDict()

    def of(self, metadata: Mapping[str, Any]) -> StoredOtherwise:
        """Return what is known of this generation of an object."""
        generation = metadata.get("generation")
        found = self._objects.get(metadata.get("uid") or "")
        if found is None or found.generation != generation or found.until < monotonic():
            return StoredOtherwise(generation, monotonic() + _SECONDS, {})
        return found

    def note(self, metadata: Mapping[str, Any], members: Mapping[tuple[str, ...], tuple[Any, Any]]) -> None:
        """Note members that the server has stored otherwise, with the metadata of its answer."""
        known = self.of(metadata)
        uid = metadata["uid"]
        self._objects[uid] = known._replace(members={**known.members, **members})
        self._objects.move_to_end(uid)
        if len(self._objects) > _OBJECTS:
            self._objects.popitem(last=False)
