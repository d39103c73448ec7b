"""What the events of a watch say, without regard to what follows from it; and which objects do not decode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aioinformer.errors import ApiError, DecodeError
from aioinformer.queue.deltas import Delta, DeltaType
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.versions import is_older

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container

    from aioinformer.cache.objects.record import Record

_DELTA_TYPES: Final = {ADDED: DeltaType.ADDED, MODIFIED: DeltaType.UPDATED, DELETED: DeltaType.DELETED}
#: An object that decodes again is in the cache after so many batches at most: those under way, and the one with it.
_BATCHES: Final = 3


class Quarantine:
    """Remembers objects that were skipped, until a version of them decodes or a list shows that they are gone.

    The event loop writes it. Any thread may ask for reasons: each answer comes from one state.

    While a list is under way, the objects of the list before still count: what the new one brings takes their place
    when it is complete. An object that decodes again is on its way to the cache; until it is there, `reason` still
    knows it, so that it does not look deleted.

    Attributes:
        total: how many were skipped so far, in all.
        nameless: how many of those that count have no readable name; in a watch each version counts.
        leaving: objects that decode again: why they did not, and the number of batches until they are in the cache.
    """

    def __init__(self) -> None:
        self.total = self.nameless = self._listed_nameless = 0
        self._reasons: dict[str, str] = {}
        #: What the list under way brings, None between lists.
        self._listed: dict[str, str] | None = None
        self.leaving: dict[str, tuple[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons) - ("" in self._reasons) + self.nameless

    @property
    def remembers(self) -> bool:
        """Whether `release` has something to do."""
        return bool(self._reasons or self._listed or self.leaving)

    def reasons(self) -> dict[str, str]:
        """Return a copy: key -> why the object does not decode. The key "" is that of objects without a name."""
        return self._reasons.copy()

    def reason(self, key: str) -> str | None:
        """Why an object is not in the cache in its last version; None if it is, or is gone."""
        reason = self._reasons.get(key)
        if reason is None and (leaving := self.leaving.get(key)) is not None:
            return leaving[0]
        return reason

    def add(self, error: DecodeError) -> bool:
        """Count one more that was skipped. Return whether it was not known to be broken before."""
        self.total += 1
        key, reason = error.key, str(error).removeprefix(f"{error.key}: ")
        known = self._reasons if self._listed is None else self._listed
        new = key not in known
        if not key:
            self._count_nameless()
        known[key] = self._reasons[key] = reason
        return new

    def _count_nameless(self) -> None:
        if self._listed is None:
            self.nameless += 1
        else:
            self._listed_nameless += 1
            self.nameless = max(self.nameless, self._listed_nameless)

    def release(self, key: str, *, gone: bool = False) -> bool:
        """Note that an object decodes, or is gone. Return whether it did not decode before."""
        if self._listed is not None:
            return self._listed.pop(key, None) is not None
        reason = self._reasons.get(key)
        if gone:
            self.leaving.pop(key, None)
        elif reason is not None:
            self.leaving[key] = reason, _BATCHES
        return self._reasons.pop(key, None) is not None

    def begin(self) -> None:
        """Note that a list begins."""
        self._listed, self._listed_nameless = {}, 0

    def end(self, names: Container[str]) -> None:
        """Note that the list is complete: what it brought is all that counts.

        Args:
            names: the keys of the objects in it.
        """
        listed = self._listed or {}
        self.leaving = {key: left for key, left in self.leaving.items() if key in names}
        for key, reason in self._reasons.items():
            if key and key not in listed and key in names:
                self.leaving[key] = reason, _BATCHES
        self._reasons, self._listed, self.nameless = listed, None, self._listed_nameless

    def clear(self) -> None:
        """Forget all: the collection is not followed any more."""
        self._reasons, self._listed, self.leaving, self.nameless = {}, None, {}, 0

    def settle(self) -> None:
        """Note that a batch is in the cache. To be called while `leaving`."""
        for key, (reason, batches) in list(self.leaving.items()):
            if batches > 1:
                self.leaving[key] = reason, batches - 1
            else:
                del self.leaving[key]

    def __str__(self) -> str:
        return summary(self._reasons, len(self))


def summary(keys: Collection[str], number: int) -> str:
    """Count the objects that do not decode, and name the first: "2 objects cannot be decoded (ns/a, ns/b)".

    Args:
        keys: of the objects; "" for all without a readable name.
        number: how many there are.
    """
    named = sorted(key for key in keys if key)[:3]
    count = f"{number} object{'s' if number > 1 else ''} cannot be decoded"
    if named:
        count += f" ({', '.join(named)}{', …' if number > len(named) else ''})"
    return f"{count}; a list with one whose name cannot be read deletes nothing" if "" in keys else count


def skip(quarantine: Quarantine, error: DecodeError, tell: Callable[[str], None]) -> bool:
    """Quarantine an object that does not decode, with a log line if it was not known to be broken; return that."""
    new = quarantine.add(error)
    if new:
        reason = str(error).removeprefix(f"{error.key}: ")
        tell(f"{error.key or 'an object without a readable name'} is skipped: {reason}")
    return new


@dataclass(slots=True)
class Ongoing:
    """What events said of changes.

    Attributes:
        deltas: the changes, in order.
        version: of the last event taken in.
        ordered: no event, deletions aside, had a lower version than what came before it.
        older: of a bookmark with a lower version, after which nothing is taken in; "" if there was none.
        failure: the server ended the watch with this.
        quarantined: whether an object joined or left those that do not decode.
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
    tell: Callable[[str], None],
) -> Ongoing:
    """Return what the events of an open watch say.

    Args:
        events: in their order.
        reached: the version up to which everything is known.
        ordered: versions have only grown so far; if not, they are not compared.
        quarantine: the objects that do not decode.
        known: the cached record of a key, for deletions whose object does not decode.
        tell: takes a line for the log.
    """
    said = Ongoing([], reached, ordered)
    deltas = said.deltas
    is_news = quarantine.remembers
    for event in events:
        record, delta = event.record, None
        if record is not None and event.error is None:
            version = record.resource_version
            delta = Delta(_DELTA_TYPES[event.type], record)
        elif event.type == BOOKMARK:
            version = event.version
        elif event.type == ERROR:
            said.failure = event.error
            break
        elif event.type == DELETED and (key := deleted_key(event)):
            # A deletion whose last state cannot be shown: what was cached last is shown in its place.
            version = _unreadable_version(event)
            delta = Delta(DeltaType.DELETED, DeletedFinalStateUnknown(key, known(key)))
        elif event.type == DELETED:
            said.failure = event.error  # whose it is cannot be read: a list shows what is left
            break
        else:
            version = _unreadable_version(event)
        # As texts of the same length they have the same order; all else is left to who knows what versions are.
        if ordered and (version < reached or len(version) != len(reached)) and is_older(version, reached):
            if event.type == BOOKMARK:
                said.older = version
                break
            if event.type == DELETED:
                version = ""  # of the object, and not of its deletion: to start there would repeat what is known
            else:
                said.ordered = ordered = False
        reached = version or reached
        if delta is not None:
            deltas.append(delta)
            if is_news and quarantine.release(delta.object.key, gone=delta.type is DeltaType.DELETED):
                said.quarantined = True
        elif event.type != BOOKMARK and _is_skipped(event, quarantine, tell):
            said.quarantined = is_news = True
    said.version = reached
    return said


def _is_skipped(event: WatchEvent, quarantine: Quarantine, tell: Callable[[str], None]) -> bool:
    if isinstance(event.error, DecodeError):
        skip(quarantine, event.error, tell)
        return True
    tell(f"an event of unknown type {event.type[:40]!r} is skipped")
    return False


def deleted_key(event: WatchEvent) -> str:
    """Whose deletion it is, as far as that could be read."""
    if event.record is not None:
        return event.record.key
    return event.error.key if isinstance(event.error, DecodeError) else ""


def _unreadable_version(event: WatchEvent) -> str:
    return event.error.version if isinstance(event.error, DecodeError) else ""
