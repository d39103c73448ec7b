"""The garbage collector.

It processes an object when its owner references change, when one of its owners is deleted or marked for deletion, and
when the object itself is marked and has one of the two finalizers:

* "orphan": remove its owner references from the dependents, then the finalizer.
* "foregroundDeletion": delete the dependents, and wait for those that block the deletion.

An object whose owners are all gone is deleted. If some are left, the references to the others are removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.ownership.managers import Manager
from aioinformer.testing.state.deletion import FOREGROUND, ORPHAN, Place

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record


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
        record = None if served is None else self._cluster.store.collection(served).get(place.key)
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
        key = f"{record.namespace}/{reference.get('name')}" if kind.resource.namespaced else str(reference.get("name"))
        owner = self._cluster.store.collection(kind).get(key)
        if owner is None or owner.uid != reference.get("uid"):
            return _Owner(reference, exists=False, waits=False)
        metadata = decode(owner.body)["metadata"]
        waits = "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or ())
        return _Owner(reference, exists=True, waits=waits)

    def _blocks(self, place: Place, uid: str) -> bool:
        served = self._served(place)
        record = None if served is None else self._cluster.store.collection(served).get(place.key)
        if record is None:
            return False
        owners = decode(record.body)["metadata"].get("ownerReferences") or ()
        return any(each.get("uid") == uid and each.get("blockOwnerDeletion") for each in owners)

    def _forget_owner(self, place: Place, uid: str) -> None:
        served = self._served(place)
        record = None if served is None else self._cluster.store.collection(served).get(place.key)
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
        obj = decode(served.body(record.body))
        change(obj["metadata"])
        by = Manager("kube-controller-manager", "Update", served.resource.api_version)
        self._cluster.writer.update(served, record.namespace, record.name, obj, by=by)

    def _served(self, place: Place) -> Served | None:
        return self._cluster.store.registry.find_collection(place.group_resource)
