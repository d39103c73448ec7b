"""The objects of all resources. Every change passes through here, with its consequences.

A change is stored, sent to watches, and indexed by owners. The garbage collector and `housekeeping` get their work from
here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object, with_version
from aioinformer.testing.api.selectors import field_values
from aioinformer.testing.state.deletion import FOREGROUND, ORPHAN, Dependents, Place
from aioinformer.testing.state.storage import Change, ChangeType, Collection, Record, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.api.served import Registry, Served


class ObjectStore:
    """Find and change the objects of all collections.

    Attributes:
        on_cleanup_needed: called after a change that needs further steps.
        dependents: the index of owner references.
        garbage_candidates: the queue of the garbage collector.
        awaits_removals: whether objects hold back the deletion of their namespace or definition.
    """

    def __init__(self, registry: Registry, storage: Storage) -> None:
        self.registry = registry
        self.storage = storage
        self.changed: Callable[[str, Change], None] = lambda collection, change: None
        self.on_cleanup_needed: Callable[[], None] = lambda: None
        self.dependents = Dependents(storage)
        self.garbage_candidates: deque[Place] = deque()
        self.awaits_removals = False

    def collection(self, served: Served) -> Collection:
        """Return the objects of a resource."""
        return self.storage.collection(served.collection)

    def find(self, served: Served, namespace: str, name: str) -> Record | None:
        """Return an object; None if it does not exist."""
        return self.collection(served).get(key_of(namespace, name))

    def get(self, served: Served, namespace: str, name: str) -> Record:
        """Return an object."""
        record = self.find(served, namespace, name)
        if record is None:
            raise statuses.not_found(served.resource, name)
        return record

    def commit(
        self,
        served: Served,
        kind: ChangeType,
        obj: dict[str, Any],
        old: Record | None,
        version: int | None = None,
        encoded: bytes = b"",
    ) -> Record:
        """Store an object; without a version it gets the next one.

        Args:
            encoded: the body under the old resourceVersion, if the caller has encoded it already.
        """
        kept = served.to_stored(obj)
        metadata = kept["metadata"]
        if version is None:
            version = self.storage.next_version()
        self.storage.version = max(self.storage.version, version)
        metadata["resourceVersion"] = str(version)
        if encoded and old is not None and kept is obj:
            body = with_version(encoded, old.version, version)
        else:
            body = encode_object(kept, custom=served.custom)
        record = Record(
            metadata.get("namespace", ""),
            metadata["name"],
            version,
            metadata["uid"],
            body,
            metadata.get("labels") or {},
            field_values(kept, served.stored_fields) if served.stored_fields else (),
        )
        self.write(served, kind, record, old, metadata)
        return record

    def write(
        self, served: Served, kind: ChangeType, record: Record, old: Record | None, metadata: Mapping[str, Any]
    ) -> None:
        """Store an encoded object."""
        change = Change(record.version, kind, record, old)
        self.changed(served.collection, change)
        self.collection(served).record_change(change)
        self.dependents.note(Place(served.collection, record.key), metadata)

    def remove(self, served: Served, record: Record) -> Record:
        """Delete an object immediately, in spite of finalizers. Return its last state."""
        version = self.storage.next_version()
        last = record.under(version)
        change = Change(version, "DELETED", last, record)
        self.collection(served).record_change(change)
        place = Place(served.collection, record.key)
        owned = self.dependents.of(record.uid)
        self.dependents.forget(place)
        waiting = self._owners(record)
        self.garbage_candidates.extend((*owned, *waiting))
        if owned or waiting or self.awaits_removals:
            self.on_cleanup_needed()
        return last

    def add_garbage_candidate(self, served: Served, record: Record, metadata: Mapping[str, Any]) -> None:
        """Enqueue an object for the garbage collector if it has owners, or finalizers of the garbage collector."""
        settles = "deletionTimestamp" in metadata and not {ORPHAN, FOREGROUND}.isdisjoint(
            metadata.get("finalizers") or ()
        )
        if settles or metadata.get("ownerReferences"):
            self.garbage_candidates.append(Place(served.collection, record.key))
            self.on_cleanup_needed()

    def _owners(self, record: Record) -> list[Place]:
        """Return the keys of the owners that an object names."""
        if b'"ownerReferences"' not in record.body:
            return []
        places = []
        for owner in decode(record.body)["metadata"].get("ownerReferences") or ():
            kind = self.registry.find_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
            if kind is not None:
                key = key_of(record.namespace if kind.resource.namespaced else "", owner.get("name", ""))
                places.append(Place(kind.collection, key))
        return places


def key_of(namespace: str, name: str) -> str:
    """Return the key of an object in its collection."""
    return f"{namespace}/{name}" if namespace else name
