"""Who is owned by whom: an index of owner references, by the uid of the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.state.storage import Record, Storage

ORPHAN = "orphan"
"""The finalizer of an object whose dependents are to forget it."""
FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that waits for its dependents to go."""
_MARK = b'"ownerReferences"'


class Place(NamedTuple):
    """Where an object is.

    Attributes:
        group_resource: "pods", "deployments.apps".
        key: "namespace/name", or the name of what has no namespace.
    """

    group_resource: str
    key: str


class Dependents:
    """An index that is kept with every write.

    Args:
        storage: what is indexed; after a restore the index is made anew.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._restores = storage.restores
        self._places: dict[str, dict[Place, None]] = {}
        self._owners: dict[Place, tuple[str, ...]] = {}

    def of(self, uid: str) -> list[Place]:
        """What the object with this uid owns, in the order in which it came."""
        self._follow_restores()
        return list(self._places.get(uid, ()))

    def note(self, place: Place, metadata: Mapping[str, Any]) -> None:
        """An object is stored."""
        self._follow_restores()
        self._put(place, tuple(str(owner.get("uid", "")) for owner in metadata.get("ownerReferences") or ()))

    def forget(self, place: Place) -> None:
        """An object is gone."""
        self._follow_restores()
        self._put(place, ())

    def _put(self, place: Place, uids: tuple[str, ...]) -> None:
        former = self._owners.pop(place, ())
        for uid in former:
            if uid not in uids and (places := self._places.get(uid)) is not None:
                places.pop(place, None)
                if not places:
                    del self._places[uid]
        for uid in uids:
            self._places.setdefault(uid, {})[place] = None
        if uids:
            self._owners[place] = uids

    def _follow_restores(self) -> None:
        if self._restores == self._storage.restores:
            return
        self._restores = self._storage.restores
        self._places.clear()
        self._owners.clear()
        for group_resource, collection in self._storage.items():
            for record in _owned(collection.records()):
                self.note(Place(group_resource, record.key), decode(record.body)["metadata"])


def _owned(records: Iterable[Record]) -> Iterable[Record]:
    return (record for record in records if _MARK in record.body)
