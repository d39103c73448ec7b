"""Deletion: immediate, or in two steps while finalizers or dependents hold it back.

A deletion of an object with finalizers is an update that sets `deletionTimestamp`; the update that removes the last
finalizer deletes the object. Namespaces are deleted when they are empty. A pod is always marked first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.ownership.managers import Manager
from aioinformer.testing.state.strategies import default_policy

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster
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
        policy: what happens to its dependents: "", "Background", "Foreground" or "Orphan".

    Returns:
        The last state of the object, and whether it is deleted.
    """
    served = served.as_stored(record.body)
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


class _Owner(NamedTuple):
    """One owner of an object.

    Attributes:
        reference: the owner reference.
        exists: whether the owner exists with that uid.
        waits: whether the owner is marked for deletion and waits for its dependents.
    """

    reference: dict[str, Any]
    exists: bool
    waits: bool


class GarbageCollector:
    """Process garbage candidates, one object a step.

    Args:
        cluster: the state; `garbage_candidates` of its store is the queue.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._garbage_candidates: deque[Place] = cluster.store.garbage_candidates

    def step(self) -> bool:
        """Process one object; return False if the queue is empty."""
        if not self._garbage_candidates:
            return False
        place = self._garbage_candidates.popleft()
        served = self._served(place)
        if served is None:
            record = None
        else:
            record = self._cluster.store.collection(served).get(place.key)
        if served is not None and record is not None:
            try:
                self._look_at(served, record, decode(record.body)["metadata"])
            except StatusError as error:
                # A concurrent write has changed it and enqueued it again.
                if error.code not in (404, 409):
                    raise
        return True

    def _look_at(self, served: Served, record: Record, metadata: dict[str, Any]) -> None:
        finalizers = metadata.get("finalizers") or ()
        if "deletionTimestamp" not in metadata:
            self._look_for_owners(served, record, metadata)
        elif ORPHAN in finalizers:
            for place in self._cluster.store.dependents.of(record.uid):
                self._forget_owner(place, record.uid)
            self._drop_finalizer(served, record, ORPHAN)
        elif FOREGROUND in finalizers:
            owned = self._cluster.store.dependents.of(record.uid)
            self._garbage_candidates.extend(owned)
            if not any(self._blocks(place, record.uid) for place in owned):
                self._drop_finalizer(served, record, FOREGROUND)

    def _look_for_owners(self, served: Served, record: Record, metadata: dict[str, Any]) -> None:
        owners = [self._owner(record, each) for each in metadata.get("ownerReferences") or ()]
        solid = [each for each in owners if each.exists and not each.waits]
        if not owners or len(solid) == len(owners):
            return
        if solid:
            kept = [each.reference for each in solid]
            self._change(served, record, lambda metadata: metadata.update(ownerReferences=kept))
            return
        policy = "Background"
        if any(each.waits for each in owners) and self._cluster.store.dependents.of(record.uid):
            policy = "Foreground"
        self._cluster.delete(served, record.namespace, record.name, uid=record.uid, policy=policy)

    def _owner(self, record: Record, reference: dict[str, Any]) -> _Owner:
        kind = self._cluster.store.registry.find_kind(str(reference.get("apiVersion")), str(reference.get("kind")))
        if kind is None:
            # Unknown kind: the owner may exist, so nothing is deleted.
            return _Owner(reference, exists=True, waits=False)
        if kind.resource.namespaced:
            key = f"{record.namespace}/{reference.get('name')}"
        else:
            key = str(reference.get("name"))
        owner = self._cluster.store.collection(kind).get(key)
        if owner is None or owner.uid != reference.get("uid"):
            return _Owner(reference, exists=False, waits=False)
        metadata = decode(owner.body)["metadata"]
        waits = "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or ())
        return _Owner(reference, exists=True, waits=waits)

    def _blocks(self, place: Place, uid: str) -> bool:
        served = self._served(place)
        if served is None:
            record = None
        else:
            record = self._cluster.store.collection(served).get(place.key)
        if record is None:
            return False
        owners = decode(record.body)["metadata"].get("ownerReferences") or ()
        return any(each.get("uid") == uid and each.get("blockOwnerDeletion") for each in owners)

    def _forget_owner(self, place: Place, uid: str) -> None:
        served = self._served(place)
        if served is None:
            record = None
        else:
            record = self._cluster.store.collection(served).get(place.key)
        if served is None or record is None:
            return

        def forget(metadata: dict[str, Any]) -> None:
            owners = metadata.get("ownerReferences") or ()
            metadata["ownerReferences"] = [each for each in owners if each.get("uid") != uid]

        self._change(served, record, forget)

    def _drop_finalizer(self, served: Served, record: Record, finalizer: str) -> None:
        def drop(metadata: dict[str, Any]) -> None:
            metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != finalizer]

        self._change(served, record, drop)

    def _change(self, served: Served, record: Record, change: Callable[[dict[str, Any]], None]) -> None:
        served = served.as_stored(record.body)
        obj = decode(served.body(record.body))
        change(obj["metadata"])
        by = Manager("kube-controller-manager", "Update", served.resource.api_version)
        self._cluster.writer.update(served, record.namespace, record.name, obj, by=by)

    def _served(self, place: Place) -> Served | None:
        return self._cluster.store.registry.find_collection(place.group_resource)
