"""Deletion: immediate, or in two steps while finalizers or dependents hold it back.

A deletion of an object with finalizers is an update that sets `deletionTimestamp`; the update that removes the last
finalizer deletes the object. Namespaces are deleted when they are empty. A pod is always marked first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.state.strategies import default_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.object_store import ObjectStore
    from aioinformer.testing.state.storage import Record, Storage

_CRD = "customresourcedefinitions.apiextensions.k8s.io"
_CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
ORPHAN = "orphan"
"""The finalizer of an object whose dependents are orphaned before its deletion."""
FOREGROUND = "foregroundDeletion"
"""The finalizer of an object whose dependents are deleted before it."""
_MARK = b'"ownerReferences"'


def delete_record(
    store: ObjectStore, served: Served, record: Record, policy: str, now: str, *, dry_run: bool
) -> tuple[bytes, bool]:
    """Delete an object, or mark it for deletion. Preconditions are checked already.

    Args:
        store: the objects.
        served: the resource.
        record: the stored object.
        policy: what happens to its dependents: "", "Background", "Foreground" or "Orphan".
        now: the current time, as in objects.
        dry_run: store nothing.

    Returns:
        The last state of the object, and whether it is deleted.
    """
    obj = decode(served.body(record.body))
    metadata = obj["metadata"]
    finalizers = list(metadata.get("finalizers") or ())
    extra = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(policy or default_policy(served))
    is_definition, is_namespace, graceful = (
        served.resource.group_resource == name for name in (_CRD, "namespaces", "pods")
    )
    if is_definition:
        extra = _CRD_FINALIZER
    if extra and extra not in finalizers and "deletionTimestamp" not in metadata:
        finalizers.append(extra)
    if not finalizers and not is_namespace and not graceful:
        return (record if dry_run else store.remove(served, record)).body, True
    if "deletionTimestamp" in metadata:
        return record.body, False
    metadata["deletionTimestamp"] = now
    if is_namespace:
        obj.setdefault("status", {})["phase"] = "Terminating"
    elif not is_definition:
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    if dry_run:
        return encode_object(obj, custom=served.custom), False
    changed = store.commit(served, "MODIFIED", obj, record)
    if graceful and not finalizers:
        # Even without a grace period, watches see the marked pod before its deletion.
        store.remove(served, changed)
        return changed.body, True
    store.add_garbage_candidate(served, changed, metadata)
    if is_namespace or is_definition:
        store.on_cleanup_needed()
    return changed.body, False


class Place(NamedTuple):
    """The key of an object in a collection.

    Attributes:
        group_resource: "pods", "deployments.apps".
        key: "namespace/name", or the name of a cluster-scoped object.
    """

    group_resource: str
    key: str


class Dependents:
    """An index of owner references by the uid of the owner, updated by every write.

    Args:
        storage: the indexed objects; a restore rebuilds the index.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._restores = storage.restores
        self._places: dict[str, dict[Place, None]] = {}
        self._owners: dict[Place, tuple[str, ...]] = {}

    def of(self, uid: str) -> list[Place]:
        """Return the dependents of the owner with this uid, oldest first."""
        self._follow_restores()
        return list(self._places.get(uid, ()))

    def note(self, place: Place, metadata: Mapping[str, Any]) -> None:
        """Index a stored object."""
        self._follow_restores()
        self._put(place, tuple(str(owner.get("uid", "")) for owner in metadata.get("ownerReferences") or ()))

    def forget(self, place: Place) -> None:
        """Remove a deleted object."""
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
