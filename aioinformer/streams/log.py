"""The log of changes that all readers of a cache share: the latest change of each object, in order.

```
sequence    1    2    3    4    5    6    7
            a    b    -    c    -    b    a deleted        "-": replaced by a later change of the same object
                      ▲ a reader is a position: it has everything up to 3, and reads 4, 6 and 7
```

A change moves its object to the end. So unread changes of one object are one, a reader needs no queue, and what a slow
reader has not read costs nothing. A deletion stays in the log, and so do the earlier labels of an object whose labels
changed: a reader is sent a `delete` only for an object that was in its selection at its position. Both are limited by
bytes. The oldest are dropped first, and `floor` rises to their sequence: a reader below it must begin anew.

A reader that begins has seen nothing, although the log has old changes. Its `start` is the sequence at that time: what
had left the selection by then is not named to it, and no position before it is compared with the floor.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import msgspec

from aioinformer.streams.selection import Selection

#: What a deletion and an earlier state take in memory, besides the names and labels.
_OVERHEAD: Final = 400
#: So many places in the log, at most, are visited by one read.
_VISITED: Final = 2048
#: Encoded views of so many bytes together end a read.
_BYTES: Final = 1 << 16
#: The log is compacted when at least so many places, and half of all, are empty.
_EMPTY: Final = 512


class Labels(msgspec.Struct, gc=False):
    """The labels of an object from one change on.

    Attributes:
        since: the sequence of the change.
        labels: their JSON; None if the object did not exist.
        before: the earlier ones, as far as they are kept.
    """

    since: int
    labels: bytes | None
    before: Labels | None = None


class Entry(msgspec.Struct, gc=False, eq=False):
    """The latest change of an object.

    Attributes:
        key: of the object in the cache.
        namespace: "" for cluster-scoped objects.
        sequence: of the latest change.
        changed: the sequence of the latest change of the value.
        value: the view of the object; None if it is deleted.
        labels: now and earlier.
    """

    key: str
    namespace: str
    sequence: int
    changed: int
    value: Any
    labels: Labels

    def labels_at(self, sequence: int) -> bytes | None:
        """Return the JSON of the labels at an earlier time; None if the object did not exist."""
        state: Labels | None = self.labels
        while state is not None and state.since > sequence:
            state = state.before
        return None if state is None else state.labels


class Position(NamedTuple):
    """How far a reader has read.

    Attributes:
        sequence: everything up to it has been delivered.
        start: the sequence when the reader began with nothing.
    """

    sequence: int
    start: int

    @property
    def seen(self) -> int:
        """The sequence up to which the selection of the reader must be known, to tell what has left it."""
        return max(self.sequence, self.start)


class Changed(NamedTuple):
    """A change, as one selection sees it.

    Attributes:
        sequence: everything up to it has been delivered when it has.
        key: of the object.
        namespace: "" for cluster-scoped objects.
        value: the view; None if the object does not exist any more, or has left the selection.
    """

    sequence: int
    key: str
    namespace: str
    value: Any


class Read(NamedTuple):
    """A part of the log, as one selection sees it.

    Attributes:
        changes: in their order.
        position: of the reader after them.
        complete: whether it is the end of the log.
    """

    changes: list[Changed]
    position: Position
    complete: bool


class ChangeLog:
    """The latest change of each object in order, with deletions up to a limit.

    Args:
        limit: for deletions and earlier labels, in bytes.

    Attributes:
        sequence: of the latest change.
        floor: a reader that has not read up to here must begin anew.
        kept: the bytes of deletions and earlier labels.
    """

    def __init__(self, limit: int) -> None:
        self.sequence = 0
        self.floor = 0
        self.kept = 0
        self._limit = limit
        self._latest: dict[str, Entry] = {}
        self._places: list[Entry | None] = []
        self._sequences = array("Q")
        self._empty = 0
        #: What can be dropped, oldest first: the sequence of the change, its entry, and the bytes.
        self._old: deque[tuple[int, Entry, int]] = deque()

    def keys(self) -> list[str]:
        """Return the keys of all objects, deleted ones included."""
        return list(self._latest)

    def put(self, key: str, namespace: str, labels: bytes, value: Any) -> bool:
        """Record an object; return whether that is a change.

        Args:
            key: of the object.
            namespace: "" for cluster-scoped objects.
            labels: their JSON.
            value: its view. An equal one is no change, unless the labels differ.
        """
        entry = self._latest.get(key)
        if entry is None:
            self.sequence += 1
            entry = Entry(key, namespace, self.sequence, self.sequence, value, Labels(self.sequence, labels))
            self._latest[key] = entry
            self._append(entry)
            return True
        same = entry.value is not None and bool(entry.value == value)
        if same and entry.labels.labels == labels:
            return False
        self._move(entry)
        if not same:
            entry.value = value
            entry.changed = self.sequence
        if entry.labels.labels != labels:
            self._relabel(entry, labels)
        return True

    def delete(self, key: str) -> bool:
        """Record that an object does not exist, or has no view; return whether that is a change."""
        entry = self._latest.get(key)
        if entry is None or entry.value is None:
            return False
        self._move(entry)
        entry.value = None
        entry.changed = self.sequence
        self._relabel(entry, None)
        return True

    def has(self, position: Position) -> bool:
        """Return whether the log has everything that follows a position."""
        return self.floor <= position.seen and position.sequence <= self.sequence

    def read(self, position: Position, selection: Selection, most: int) -> Read:
        """Return what follows a position for a selection.

        Args:
            position: for which `has` is true.
            selection: of the reader.
            most: so many changes, at most.
        """
        changes: list[Changed] = []
        sequence, start = position
        size = 0
        seen = position.seen
        exact = sequence >= start
        first = bisect_left(self._sequences, sequence + 1)
        last = min(first + _VISITED, len(self._places))
        place = first
        while place < last and len(changes) < most and size < _BYTES:
            entry = self._places[place]
            place += 1
            if entry is None:
                continue
            selected = selection.selects(entry.namespace, entry.labels.labels)
            if selected and not (exact and entry.changed <= sequence):
                value = entry.value
            elif selected == selection.selects(entry.namespace, entry.labels_at(seen)):
                continue
            else:
                value = entry.value if selected else None
            changes.append(Changed(entry.sequence, entry.key, entry.namespace, value))
            size += len(value) if type(value) is bytes else 0
        complete = place == len(self._places)
        reached = self.sequence if complete else self._sequences[place - 1]
        return Read(changes, Position(reached, start if reached < start else 0), complete)

    def leaving(self, position: Position, before: Selection, after: Selection) -> Iterator[Changed]:
        """Yield the objects that a reader has and that are in none of its namespaces any more.

        Args:
            position: of the reader. Later changes are not considered, so the iteration may be interrupted.
            before: the selection up to now.
            after: the selection from now on.
        """
        seen = position.seen
        for entry in list(self._latest.values()):
            labels = entry.labels_at(seen)
            if before.selects(entry.namespace, labels) and not after.selects(entry.namespace, labels):
                yield Changed(position.sequence, entry.key, entry.namespace, None)

    def _append(self, entry: Entry) -> None:
        self._places.append(entry)
        self._sequences.append(entry.sequence)

    def _move(self, entry: Entry) -> None:
        """Give the entry the next sequence, and move it to the end."""
        self._places[bisect_left(self._sequences, entry.sequence)] = None
        self._empty += 1
        self.sequence += 1
        entry.sequence = self.sequence
        self._append(entry)
        if self._empty >= _EMPTY and self._empty > len(self._places) // 2:
            self._compact()

    def _compact(self) -> None:
        self._places = [entry for entry in self._places if entry is not None]
        self._sequences = array("Q", [cast("Entry", entry).sequence for entry in self._places])
        self._empty = 0

    def _relabel(self, entry: Entry, labels: bytes | None) -> None:
        """Set the labels from the current sequence on; the earlier ones, or the deletion, are kept within the limit."""
        former = entry.labels
        entry.labels = Labels(self.sequence, labels, former)
        size = _OVERHEAD + len(entry.key) + len(former.labels or b"")
        self._old.append((self.sequence, entry, size))
        self.kept += size
        while self.kept > self._limit:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        sequence, entry, size = self._old.popleft()
        self.kept -= size
        self.floor = sequence
        state: Labels | None = entry.labels
        while state is not None and state.since > sequence:
            state = state.before
        if state is not None:
            state.before = None
        if entry.value is None and entry.sequence == sequence:
            del self._latest[entry.key]
            self._places[bisect_left(self._sequences, sequence)] = None
            self._empty += 1
