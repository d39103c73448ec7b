"""The log of changes that all readers of a cache share: the latest change of each object, in order.

```
sequence    1    2    3    4    5    6    7
            a    b    -    c    -    b    a deleted        "-": replaced by a later change of the same object
                      ▲ a reader is a position: it has everything up to 3, and reads 4, 6 and 7
```

A change moves its object to the end. So unread changes of one object are one, a reader needs no queue, and what a slow
reader has not read costs nothing. A deletion stays in the log, and so do the earlier labels of an object whose labels
changed: a reader is sent a `delete` only for an object that was in its selection when it may have been told of it. Both
are limited by bytes. The oldest are dropped first, and `floor` rises to their sequence: a reader whose knowledge is
older must begin anew.

A reader that has read to the end knows the state at that time. One that has read a part does not know the state of any
time: it knows some objects as they were read, and others as at the last end, its `base`. So a position has both.
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

    def was_in(self, selection: Selection, position: Position) -> bool:
        """Return whether the object was selected when a reader at a position may have been told of it."""
        state: Labels | None = self.labels
        while state is not None:
            if state.since <= position.until and selection.selects(self.namespace, state.labels):
                return True
            if state.since <= position.base:
                return False
            state = state.before
        return False


class Position(NamedTuple):
    """How far a reader has read.

    Attributes:
        sequence: everything up to it has been delivered.
        base: the reader knows the state at this sequence, but for what it was told after it. If the reader began later
            than at `sequence`, with nothing, it knows no earlier state.
        until: up to this sequence, the reader may know later states, too. If it is `sequence`, it knows that state.
    """

    sequence: int
    base: int
    until: int

    @classmethod
    def end(cls, sequence: int) -> Position:
        """Return the position of a reader that has read to the end."""
        return cls(sequence, sequence, sequence)

    @classmethod
    def begin(cls, sequence: int) -> Position:
        """Return the position of a reader that begins with nothing, when the log ends at a sequence."""
        return cls(0, sequence, sequence)

    def after(self, sequence: int, now: int) -> Position:
        """Return the position of a reader that has read on up to a sequence, and not to the end, which is now."""
        return Position(sequence, self.base, now)


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
        self._relabel(entry, None)
        return True

    def has(self, position: Position) -> bool:
        """Return whether the log has everything that follows a position."""
        return self.floor <= position.base <= self.sequence and max(position.sequence, position.until) <= self.sequence

    def read(self, position: Position, selection: Selection, most: int) -> Read:
        """Return what follows a position for a selection.

        Args:
            position: for which `has` is true.
            selection: of the reader.
            most: so many changes, at most.
        """
        changes: list[Changed] = []
        sequence = position.sequence
        exact = position.until <= sequence
        size = 0
        place = bisect_left(self._sequences, sequence + 1)
        last = min(place + _VISITED, len(self._places))
        while place < last and len(changes) < most and size < _BYTES:
            entry = self._places[place]
            place += 1
            if entry is None:
                continue
            selected = selection.selects(entry.namespace, entry.labels.labels)
            if selected:
                if exact and entry.changed <= sequence and entry.was_in(selection, position):
                    continue
            elif not entry.was_in(selection, position):
                continue
            value = entry.value if selected else None
            changes.append(Changed(entry.sequence, entry.key, entry.namespace, value))
            size += len(value) if type(value) is bytes else 0
        if place == len(self._places):
            return Read(changes, Position.end(self.sequence), True)
        return Read(changes, position.after(self._sequences[place - 1], self.sequence), False)

    def leaving(self, position: Position, before: Selection, after: Selection) -> Iterator[Changed]:
        """Yield the objects that a reader has and that are in none of its namespaces any more.

        Args:
            position: of the reader. Later changes are not considered, so the iteration may be interrupted.
            before: the selection up to now.
            after: the selection from now on.
        """
        for entry in list(self._latest.values()):
            if entry.was_in(before, position) and not entry.was_in(after, position):
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
