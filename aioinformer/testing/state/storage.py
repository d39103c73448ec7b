"""Storage: each object once, as bytes, and the history of changes.

The rules:

* One counter for the whole server. Every change takes the next number, which becomes the resourceVersion of its object.
  So any two changes are ordered, and a list, a watch and a continue token mean the same state by the same number.
* An object is encoded once per version. Lists, watches and pages send slices of the same bytes. Only the write that
  makes the next version decodes them again.
* Each collection keeps its recent changes in order, with the record before and the record after. This is enough for
  watches from any retained version, and for the state at any retained version, by undoing changes from the current one.
* Versions below the floor of the history have expired (410). `compact()` raises the floor for the whole server, and a
  collection raises its own when it exceeds its share of changes.
* Everything is synchronous and belongs to one event loop. A record never changes, so it may be sent at any later time.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from aioinformer.testing.api.encoding import with_version

if TYPE_CHECKING:
    from collections.abc import Callable

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True, eq=False, weakref_slot=True)
class Record:
    """One version of one object. It never changes after it was stored.

    Attributes:
        body: compact JSON with `kind` and `apiVersion`.
        fields: values of the selectable fields of the resource, in the order of its definition.
        partial: cache of the metadata-only form, filled on first use.
    """

    namespace: str
    name: str
    version: int
    uid: str
    body: bytes
    labels: Mapping[str, str]
    fields: tuple[str, ...]
    partial: bytes | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def under(self, version: int) -> Record:
        """Return the same object under another version."""
        body = with_version(self.body, self.version, version)
        return Record(self.namespace, self.name, version, self.uid, body, self.labels, self.fields)


@dataclass(slots=True, eq=False)
class Change:
    """One entry of a collection's history.

    Attributes:
        version: of the change; equal to that of `record`.
        type: the event type for an unfiltered watch.
        record: the object after the change; for a deletion its last state under the version of the deletion.
        previous: the object before the change, None for a creation.
    """

    version: int
    type: ChangeType
    record: Record
    previous: Record | None
    _left: Record | None = None

    @property
    def left(self) -> Record | None:
        """The object before the change under its version: what a watch sends whose selection it leaves."""
        if self._left is None and self.previous is not None:
            self._left = self.previous.under(self.version)
        return self._left


class Collection:
    """All objects of one resource, in all of its API versions.

    Attributes:
        floor: the oldest version from which a watch can start.
        closed: the resource is no longer served; watches end.
    """

    def __init__(self, *, floor: int, history: int) -> None:
        self.floor = floor
        self.closed = False
        self._history = history
        self._records: dict[str, Record] = {}
        self._keys: list[str] = []
        self._changes: deque[Change] = deque()
        self._dropped = 0
        self._snapshots: dict[int, tuple[list[str], dict[str, Record]]] = {}
        self._listeners: set[Callable[[], None]] = set()

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str) -> Record | None:
        return self._records.get(key)

    def records(self, namespace: str = "", *, start: str = "", version: int | None = None) -> list[Record]:
        """Return the objects at one version, in the order of their keys.

        Args:
            namespace: "" for all.
            start: the first key to return.
            version: a retained version, or None for the current one.
        """
        keys = self._keys
        records = self._records
        if version is not None and self._changes and self._changes[-1].version > version:
            keys, records = self._state_at(version)
        low = bisect_left(keys, f"{namespace}/") if namespace else 0
        high = bisect_left(keys, f"{namespace}0") if namespace else len(keys)
        if start:
            low = max(low, bisect_left(keys, start))
        return [records[key] for key in islice(keys, low, high)]

    def record_change(self, change: Change) -> None:
        """Apply a change and wake the watches. Versions must ascend."""
        key = change.record.key
        if change.type == "DELETED":
            del self._records[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if change.previous is None:
                insort(self._keys, key)
            self._records[key] = change.record
        self._changes.append(change)
        if len(self._changes) > self._history:
            self.floor = self._changes.popleft().version
            self._dropped += 1
        self.wake()

    def compact(self, version: int) -> None:
        """Forget all changes up to and including a version."""
        self.floor = max(self.floor, version)
        self._snapshots = {kept: state for kept, state in self._snapshots.items() if kept >= version}
        while self._changes and self._changes[0].version <= version:
            self._changes.popleft()
            self._dropped += 1

    def reset(self, records: Mapping[str, Record], floor: int) -> None:
        """Replace all objects and drop the history. The caller must end the watches."""
        self._records = dict(records)
        self._keys = sorted(self._records)
        # One more than there were, so that a watch sees that its position has left the history.
        self._dropped += len(self._changes) + 1
        self._changes.clear()
        self._snapshots.clear()
        self.floor = floor
        self.wake()

    def state(self, version: int) -> dict[str, Record]:
        """Return all objects by key at a retained version."""
        return dict(self._state_at(version)[1])

    # The position of a watch is the number of all changes, ever, before its next one.

    @property
    def position(self) -> int:
        """The position after the newest change."""
        return self._dropped + len(self._changes)

    def position_after(self, version: int) -> int:
        """Return the position of the first change that is newer than `version`."""
        index = len(self._changes)
        for change in reversed(self._changes):
            if change.version <= version:
                break
            index -= 1
        return self._dropped + index

    def changes(self, position: int, limit: int) -> list[Change] | None:
        """Return up to `limit` changes from a position on, or None if they have left the history."""
        if position < self._dropped:
            return None
        start = position - self._dropped
        behind = len(self._changes) - start
        if behind <= 0:
            return []
        if behind < start:
            # Watches are nearly always close to the end, and a deque is walked from the nearer end.
            newest = list(islice(reversed(self._changes), behind))
            newest.reverse()
            return newest[:limit]
        return list(islice(self._changes, start, start + limit))

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call a function after each change, until `unsubscribe`."""
        self._listeners.add(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        """Do not call a function of `subscribe` any more; do nothing if it is called no longer."""
        self._listeners.discard(wake)

    def wake(self) -> None:
        for wake in self._listeners:
            wake()

    def close(self) -> None:
        """End all watches: the resource is no longer served."""
        self.closed = True
        self.wake()

    def _state_at(self, version: int) -> tuple[list[str], dict[str, Record]]:
        known = self._snapshots.get(version)
        if known is None:
            records = dict(self._records)
            for change in reversed(self._changes):
                if change.version <= version:
                    break
                if change.previous is None:
                    records.pop(change.record.key, None)
                else:
                    records[change.record.key] = change.previous
            known = sorted(records), records
            # The pages of a list are requested one after the other: a few states serve all concurrent lists.
            while len(self._snapshots) >= 4:
                del self._snapshots[next(iter(self._snapshots))]
            self._snapshots[version] = known
        return known


@dataclass(frozen=True, slots=True)
class Backup:
    """The complete state of a server at one version.

    Attributes:
        collections: by group resource, records by key.
    """

    version: int
    collections: Mapping[str, Mapping[str, Record]]


class Storage:
    """All collections under one version counter.

    Attributes:
        version: of the last change.
        restores: the number of restores.
    """

    def __init__(self, *, history: int) -> None:
        self.version = 1
        self.restores = 0
        self._history = history
        self._floor = 0
        self._collections: dict[str, Collection] = {}
        self._waiters: set[asyncio.Future[None]] = set()

    def collection(self, group_resource: str) -> Collection:
        """Return the collection of a resource; it is created on first use."""
        found = self._collections.get(group_resource)
        if found is None:
            found = Collection(floor=self._floor, history=self._history)
            self._collections[group_resource] = found
        return found

    def items(self) -> list[tuple[str, Collection]]:
        return list(self._collections.items())

    def drop(self, group_resource: str) -> None:
        """End a collection and its watches. The next collection of this name starts empty."""
        collection = self._collections.pop(group_resource, None)
        if collection is not None:
            collection.close()

    def next_version(self) -> int:
        self.version += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        return self.version

    async def wait_for_change(self) -> None:
        """Wait until the version counter has changed."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def compact(self, version: int | None = None) -> int:
        """Forget the history up to a version, by default the current one; return that version."""
        version = self.version if version is None else min(version, self.version)
        self._floor = max(self._floor, version)
        for collection in self._collections.values():
            collection.compact(version)
        return version

    def backup(self, version: int | None = None) -> Backup:
        """Return a copy of the current state, or of the state at a version that every collection still retains.

        Raises:
            ValueError: the version has left the history, or is in the future.
        """
        version = self.version if version is None else version
        oldest = max((collection.floor for collection in self._collections.values()), default=0)
        if not oldest <= version <= self.version:
            raise ValueError(f"version must be between {oldest} and {self.version}, not {version}")
        states = {name: collection.state(version) for name, collection in self._collections.items()}
        return Backup(version, states)

    def restore(self, backup: Backup) -> None:
        """Go back to a backup, version counter included."""
        self.version = backup.version
        self.restores += 1
        for name in {*self._collections, *backup.collections}:
            self.collection(name).reset(backup.collections.get(name, {}), backup.version)
