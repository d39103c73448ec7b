"""What the server remembers: every object once, as bytes, and the changes that led there.

The rules:

* One counter for the whole server. Every change takes the next number and gives it to the object it made; so any two
  changes are ordered, and a list, a watch and a continue token mean the same thing by the same number.
* An object is encoded once per version. Lists, watches and pages all send slices of the same bytes; nobody decodes
  them again but the write that makes the next version.
* Each collection keeps its recent changes in order, with the record before and the record after. From these follow
  watches from any retained version, and the state at any retained version, by undoing changes from the present one.
* History has a floor. Versions below it are gone (410): it is raised by `compact()` for the whole server, and by a
  collection that keeps more than its share of changes.
* All of it is synchronous and belongs to one event loop. A record is never changed, so whoever holds a list of records
  may send them for as long as it likes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from aioinformer.testing.api.encoding import with_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True, eq=False)
class Record:
    """One version of one object. Never changed after it was stored.

    Attributes:
        namespace: "" for cluster-scoped objects.
        name: of the object.
        version: the resource version.
        uid: of the object.
        body: compact JSON with `kind` and `apiVersion`.
        labels: for selectors.
        fields: values of the fields that the resource can be selected by, in the order of its definition.
        partial: cache of the metadata-only form, filled by who needs it.
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
        """The same object under another version."""
        body = with_version(self.body, self.version, version)
        return Record(self.namespace, self.name, version, self.uid, body, self.labels, self.fields)


@dataclass(slots=True, eq=False)
class Change:
    """One entry of a collection's history.

    Attributes:
        version: of the change; equal to that of `record`.
        type: what an unfiltered watch is told.
        record: the object after the change; for a deletion its last state under the version of the deletion.
        previous: the object before the change, None for a creation.
    """

    version: int
    type: ChangeType
    record: Record
    previous: Record | None


class Collection:
    """All objects of one resource, whatever the API version they are asked for in.

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
        """The objects of one moment, in the order of their keys.

        Args:
            namespace: "" for all.
            start: only this key and those beyond it.
            version: a retained version, or None for now.
        """
        keys, records = self._keys, self._records
        if version is not None and self._changes and self._changes[-1].version > version:
            keys, records = self._state_at(version)
        low = bisect_left(keys, f"{namespace}/") if namespace else 0
        high = bisect_left(keys, f"{namespace}0") if namespace else len(keys)
        if start:
            low = max(low, bisect_left(keys, start))
        return [records[key] for key in islice(keys, low, high)]

    def record_change(self, change: Change) -> None:
        """Applies a change and wakes the watches; versions must ascend."""
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
        """Forgets all changes up to and including a version."""
        self.floor = max(self.floor, version)
        self._snapshots = {kept: state for kept, state in self._snapshots.items() if kept >= version}
        while self._changes and self._changes[0].version <= version:
            self._changes.popleft()
            self._dropped += 1

    def reset(self, records: Mapping[str, Record], floor: int) -> None:
        """Replaces everything; the history is gone and watches must be ended by the caller."""
        self._records = dict(records)
        self._keys = sorted(self._records)
        # One more than there were: whoever follows the changes is to see that they do not lead here.
        self._dropped += len(self._changes) + 1
        self._changes.clear()
        self._snapshots.clear()
        self.floor = floor

    def state(self, version: int) -> dict[str, Record]:
        """All objects by key at a retained version."""
        return dict(self._state_at(version)[1])

    # Watches keep a position: the number of changes that ever happened before the next one they want.

    @property
    def position(self) -> int:
        """The position behind the newest change."""
        return self._dropped + len(self._changes)

    def position_after(self, version: int) -> int:
        """The position of the first change that is newer than `version`."""
        index = len(self._changes)
        for change in reversed(self._changes):
            if change.version <= version:
                break
            index -= 1
        return self._dropped + index

    def changes(self, position: int, limit: int) -> list[Change] | None:
        """Up to `limit` changes from a position on, or None if they have left the history."""
        if position < self._dropped:
            return None
        start = position - self._dropped
        behind = len(self._changes) - start
        if behind <= 0:
            return []
        if behind < start:
            # A watch is nearly always close to the end, and a deque is walked from the end that is nearer.
            newest = list(islice(reversed(self._changes), behind))
            newest.reverse()
            return newest[:limit]
        return list(islice(self._changes, start, start + limit))

    def subscribe(self, wake: Callable[[], None]) -> None:
        self._listeners.add(wake)

    def unsubscribe(self, wake: Callable[[], None]) -> None:
        self._listeners.discard(wake)

    def wake(self) -> None:
        for wake in self._listeners:
            wake()

    def close(self) -> None:
        """The resource is no longer served."""
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
            # Pages of a list come one after the other: a few states are enough for the lists that are under way.
            while len(self._snapshots) >= 4:
                del self._snapshots[next(iter(self._snapshots))]
            self._snapshots[version] = known
        return known


@dataclass(frozen=True, slots=True)
class Backup:
    """Everything a server held at one moment.

    Attributes:
        version: of the server at that moment.
        collections: by group resource, records by key.
    """

    version: int
    collections: Mapping[str, Mapping[str, Record]]


class Storage:
    """The collections under one version counter.

    Args:
        history: changes that each collection keeps.

    Attributes:
        version: of the last change.
        restores: how often it went back to a backup.
        restored: called with the backup that it went back to.
    """

    def __init__(self, *, history: int) -> None:
        self.version = 1
        self.restores = 0
        self.restored: Callable[[Backup], None] = lambda backup: None
        self._history = history
        self._floor = 0
        self._collections: dict[str, Collection] = {}
        self._waiters: set[asyncio.Future[None]] = set()

    def collection(self, group_resource: str) -> Collection:
        """The collection of a resource; made when it is first asked for."""
        found = self._collections.get(group_resource)
        if found is None:
            found = Collection(floor=self._floor, history=self._history)
            self._collections[group_resource] = found
        return found

    def items(self) -> list[tuple[str, Collection]]:
        return list(self._collections.items())

    def drop(self, group_resource: str) -> None:
        """Ends a collection; its watches end, and the next one under this name starts empty."""
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
        """Returns when the version counter has moved on."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)

    def compact(self, version: int | None = None) -> int:
        """Forgets history up to a version (now, by default) and returns that version."""
        version = self.version if version is None else min(version, self.version)
        self._floor = max(self._floor, version)
        for collection in self._collections.values():
            collection.compact(version)
        return version

    def backup(self, version: int | None = None) -> Backup:
        """A copy of the state now, or at a version that every collection still retains.

        Raises:
            ValueError: the version has left the history, or has not come yet.
        """
        version = self.version if version is None else version
        oldest = max((collection.floor for collection in self._collections.values()), default=0)
        if not oldest <= version <= self.version:
            raise ValueError(f"version must be between {oldest} and {self.version}, not {version}")
        states = {name: collection.state(version) for name, collection in self._collections.items()}
        return Backup(version, states)

    def restore(self, backup: Backup) -> None:
        """Goes back to a backup, version counter included."""
        self.version = backup.version
        self.restores += 1
        for name in {*self._collections, *backup.collections}:
            self.collection(name).reset(backup.collections.get(name, {}), backup.version)
        self.restored(backup)
