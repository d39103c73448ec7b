"""The changes that watch events contain, without what follows from them; and the objects that cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aioinformer.errors import ApiError, DecodeError
from aioinformer.queue.deltas import Delta, DeltaType
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, ForeignObject, WatchEvent
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.versions import is_older

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container

    from aioinformer.cache.objects.record import Record

_DELTA_TYPES: Final = {ADDED: DeltaType.ADDED, MODIFIED: DeltaType.UPDATED, DELETED: DeltaType.DELETED}
#: This number of undecodable objects is logged one by one.
_LOGGED: Final = 10
#: An object that decodes again is in the cache after at most this number of batches: those in progress and its own.
_BATCHES_UNTIL_CACHED: Final = 3


class Quarantine:
    """Track objects that were skipped, until a version of them decodes or a list shows that they are gone.

    The event loop changes it. Any thread may ask for reasons: each answer shows one state.

    While a list is in progress, the objects of the list before it still count. When the list is complete, its objects
    replace them. An object that decodes again reaches the cache later. Until it is there, `reason` still returns its
    reason, so that the object does not look deleted.

    Args:
        on_change: is called with the key of each object that is added, why, and its version; and with "" and "" for an
            object that is removed.

    Attributes:
        total: the number of objects skipped so far.
        nameless: how many of the tracked objects have no readable name. In a watch, each version counts.
        foreign: the number of events of another kind or namespace, until a watch brings none. They are not tracked.
        leaving: objects that decode again: key -> (the reason, the number of batches until they are in the cache).
    """

    __slots__ = ("_listed", "_listed_nameless", "_on_change", "_reasons", "foreign", "leaving", "nameless", "total")

    def __init__(self, on_change: Callable[[str, str, str], None] = lambda key, reason, version: None) -> None:
        self._on_change = on_change
        self.total = 0
        self.nameless = 0
        self.foreign = 0
        self._listed_nameless = 0
        self._reasons: dict[str, str] = {}
        #: The objects of the list in progress, None between lists.
        self._listed: dict[str, str] | None = None
        self.leaving: dict[str, tuple[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons) - ("" in self._reasons) + self.nameless

    @property
    def is_tracking(self) -> bool:
        """Whether `release` must be called for objects that decode."""
        return bool(self._reasons or self._listed or self.leaving)

    @property
    def tracked(self) -> int:
        """How many keys the list in progress has, or else the collection."""
        return len(self._reasons if self._listed is None else self._listed)

    def reasons(self) -> dict[str, str]:
        """Return a copy: key -> why the object cannot be decoded. The key "" stands for objects without a name."""
        return self._reasons.copy()

    def reason(self, key: str) -> str | None:
        """Return why the last version of an object is not in the cache; None if it is, or the object is gone."""
        reason = self._reasons.get(key)
        if reason is None and (leaving := self.leaving.get(key)) is not None:
            return leaving[0]
        return reason

    def add(self, error: DecodeError) -> bool:
        """Count an object that was skipped. Return whether it was not tracked before."""
        self.total += 1
        key = error.key
        reason = str(error).removeprefix(f"{error.key}: ")
        tracked = self._reasons if self._listed is None else self._listed
        new = key not in tracked
        if not key:
            self._count_nameless()
        tracked[key] = reason
        self._reasons[key] = reason
        self._on_change(key, reason, error.version)
        return new

    def _count_nameless(self) -> None:
        if self._listed is None:
            self.nameless += 1
        else:
            self._listed_nameless += 1
            self.nameless = max(self.nameless, self._listed_nameless)

    def count_foreign(self, error: ForeignObject, log: Callable[[str], None]) -> None:
        """Count an event of another kind or namespace. The first is logged, and then each number that has doubled."""
        self.total += 1
        self.foreign += 1
        if self.foreign & (self.foreign - 1) == 0:
            log(f"an event of another kind or namespace is skipped, number {self.foreign}: {error}")

    def release(self, key: str, *, gone: bool = False) -> bool:
        """Remove an object that decodes, or is gone. Return whether it was tracked."""
        if self._listed is not None:
            return self._listed.pop(key, None) is not None
        reason = self._reasons.get(key)
        if gone:
            self.leaving.pop(key, None)
        elif reason is not None:
            self.leaving[key] = reason, _BATCHES_UNTIL_CACHED
        if self._reasons.pop(key, None) is None:
            return False
        self._on_change(key, "", "")
        return True

    def begin_list(self) -> None:
        """Begin to collect the objects of a list."""
        self._listed = {}
        self._listed_nameless = 0

    def end_list(self, names: Container[str]) -> None:
        """Replace the tracked objects with those of the complete list."""
        listed = self._listed or {}
        self.leaving = {key: left for key, left in self.leaving.items() if key in names}
        for key, reason in self._reasons.items():
            if key and key not in listed and key in names:
                self.leaving[key] = reason, _BATCHES_UNTIL_CACHED
        left = self._reasons.keys() - listed.keys()
        self._reasons = listed
        self._listed = None
        self.nameless = self._listed_nameless
        for key in left:
            self._on_change(key, "", "")

    def clear(self) -> None:
        """Remove all objects: the informer no longer follows the collection."""
        self.begin_list()
        self.end_list(())
        self.foreign = 0

    def count_batch(self) -> None:
        """Count a batch that has been processed. Call it while `leaving` is not empty."""
        for key, (reason, batches) in list(self.leaving.items()):
            if batches > 1:
                self.leaving[key] = reason, batches - 1
            else:
                del self.leaving[key]

    def __str__(self) -> str:
        parts = [summary(self._reasons, len(self))] if self._reasons else []
        if self.foreign:
            # The exact number would change the state, which is logged, with each event.
            least = 1 << self.foreign.bit_length() - 1
            parts.append(f"at least {least} event{'s' if least > 1 else ''} of another kind or namespace skipped")
        return "; ".join(parts)


def summary(keys: Collection[str], number: int) -> str:
    """Return how many objects cannot be decoded, and the first keys: "2 objects cannot be decoded (ns/a, ns/b)".

    Args:
        keys: of the objects; "" for all without a readable name.
        number: of the objects.
    """
    named = sorted(key for key in keys if key)[:3]
    count = f"{number} object{'s' if number > 1 else ''} cannot be decoded"
    if named:
        count += f" ({', '.join(named)}{', …' if number > len(named) else ''})"
    if "" in keys:
        return f"{count}; a list with an object without a readable name deletes nothing"
    return count


def skip(quarantine: Quarantine, error: DecodeError, log: Callable[[str], None]) -> bool:
    """Quarantine an undecodable object; if it was not tracked before, log it. Return whether it was not.

    Of many objects, only the first few are logged.
    """
    new = quarantine.add(error)
    if new and quarantine.tracked <= _LOGGED:
        reason = str(error).removeprefix(f"{error.key}: ")
        log(f"{error.key or 'an object without a readable name'} is skipped: {reason}")
    elif new and quarantine.tracked == _LOGGED + 1:
        log("more objects are skipped, and not logged one by one: undecodable() lists them")
    return new


class WatchChanges(msgspec.Struct):
    """The changes that watch events contain.

    Attributes:
        version: of the last event that was read.
        ordered: no event except deletions and repetitions had a lower version than the events before it.
        older: the version of a bookmark with a lower version, which ends the reading; "" if there was none.
        failure: the error that ended the watch.
        quarantined: whether the quarantine has changed.
    """

    deltas: list[Delta[Record]]
    version: str
    ordered: bool = True
    older: str = ""
    failure: ApiError | DecodeError | None = None
    quarantined: bool = False


def read_changes(
    events: list[WatchEvent],
    reached: str,
    ordered: bool,
    quarantine: Quarantine,
    known: Callable[[str], Record | None],
    log: Callable[[str], None],
) -> WatchChanges:
    """Return the changes that events of an open watch contain.

    Args:
        reached: the version up to which the collection has been read.
        ordered: versions have only grown so far; otherwise, they are not compared.
    """
    changes = WatchChanges([], reached, ordered)
    deltas = changes.deltas
    tracking = quarantine.is_tracking
    for event in events:
        record = event.record
        delta = None
        if record is not None and event.error is None:
            version = record.resource_version
            delta = Delta(_DELTA_TYPES[event.type], record)
        elif event.type == BOOKMARK:
            version = event.version
        elif isinstance(event.error, ForeignObject):
            quarantine.count_foreign(event.error, log)
            changes.quarantined = True
            continue
        elif event.type == ERROR:
            changes.failure = event.error
            break
        elif event.type == DELETED and (key := deleted_key(event)):
            # The last state cannot be decoded: the tombstone has the cached state instead.
            version = _undecodable_version(event)
            delta = Delta(DeltaType.DELETED, DeletedFinalStateUnknown(key, known(key)))
        elif event.type == DELETED:
            changes.failure = event.error  # the key of the object cannot be read: a list shows the remaining objects
            break
        else:
            version = _undecodable_version(event)
        # Versions of equal length have the order of their text; `is_older` decides all other cases.
        if ordered and (version < reached or len(version) != len(reached)) and is_older(version, reached):
            if event.type == BOOKMARK:
                changes.older = version
                break
            if event.type == DELETED or (record is not None and _is_repeated(record, deltas, known)):
                version = ""  # not of this event: a watch from it would repeat known events
            else:
                changes.ordered = False
                ordered = False
        reached = version or reached
        if delta is not None:
            deltas.append(delta)
            if tracking and quarantine.release(delta.object.key, gone=delta.type is DeltaType.DELETED):
                changes.quarantined = True
        elif event.type != BOOKMARK and _skip_event(event, quarantine, log):
            changes.quarantined = True
            tracking = True
    changes.version = reached
    return changes


def _is_repeated(record: Record, deltas: list[Delta[Record]], known: Callable[[str], Record | None]) -> bool:
    """Return whether an event brings a version of its object that is cached, or was read just before."""
    key = record.key
    version = record.resource_version
    cached = known(key)
    if cached is not None and cached.resource_version == version:
        return True
    read = (each.object for each in deltas if each.object.key == key)
    return any(not isinstance(obj, DeletedFinalStateUnknown) and obj.resource_version == version for obj in read)


def deleted_key(event: WatchEvent) -> str:
    """Return the key of a deleted object; "" if it cannot be read."""
    if event.record is not None:
        return event.record.key
    return event.error.key if isinstance(event.error, DecodeError) else ""


def _skip_event(event: WatchEvent, quarantine: Quarantine, log: Callable[[str], None]) -> bool:
    """Quarantine the object of an event, or log an event of an unknown type. Return whether it has an object."""
    if isinstance(event.error, DecodeError):
        skip(quarantine, event.error, log)
        return True
    log(f"an event of unknown type {event.type[:40]!r} is skipped")
    return False


def _undecodable_version(event: WatchEvent) -> str:
    return event.error.version if isinstance(event.error, DecodeError) else ""
