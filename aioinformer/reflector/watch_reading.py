"""What the events of a watch say, taken for themselves; what follows from it, the protocol decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aioinformer.errors import ApiError, DecodeError
from aioinformer.queue.deltas import Delta, DeltaType
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.versions import is_older

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.relist import IncomingList, Quarantine

_DELTA_TYPES = {ADDED: DeltaType.ADDED, MODIFIED: DeltaType.UPDATED, DELETED: DeltaType.DELETED}


@dataclass(slots=True)
class Initial:
    """What events said that belong to a streaming list.

    Attributes:
        rest: the events after those.
        news: whether there was an object that the list had not shown before.
        complete: the list has ended.
        version: of the list, once it is complete.
        ordinary_bookmark: one came before the end, which no server does that streams lists.
        failure: the server ended the stream with this.
    """

    rest: list[WatchEvent] = field(default_factory=list)
    news: bool = False
    complete: bool = False
    version: str = ""
    ordinary_bookmark: bool = False
    failure: ApiError | DecodeError | None = None


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


class WatchReader:
    """Reads batches of events.

    Args:
        incoming: takes the objects of streaming lists.
        quarantine: the objects that do not decode.
        known: the cached record of a key, for objects whose last version does not decode.
        tell: takes a line for the log.
    """

    def __init__(
        self,
        incoming: IncomingList,
        quarantine: Quarantine,
        known: Callable[[str], Record | None],
        tell: Callable[[str], None],
    ) -> None:
        self._incoming = incoming
        self._quarantine = quarantine
        self._known = known
        self._tell = tell

    def initial(self, events: list[WatchEvent]) -> Initial:
        """Reads on in a streaming list, up to its end at most."""
        said = Initial()
        for position, event in enumerate(events, 1):
            if event.type in (ADDED, MODIFIED):
                item = event.error if event.record is None else event.record
                if item is not None and not isinstance(item, ApiError) and self._incoming.take(item):
                    said.news = True
            elif event.type == DELETED and (key := _deleted_key(event)):
                self._incoming.drop(key)
            elif event.type in (ERROR, DELETED) and event.error is not None:
                said.failure = event.error
                break
            elif event.type == BOOKMARK and event.initial_events_end:
                said.complete, said.version, said.rest = True, event.version, events[position:]
                break
            elif event.type == BOOKMARK and event.error is None:
                # KEP-3157: no bookmark comes before the one that ends the initial events.
                said.ordinary_bookmark = True
                break
        return said

    def ongoing(self, events: list[WatchEvent], reached: str, ordered: bool = True) -> Ongoing:
        """Read changes.

        Args:
            events: that came.
            reached: the version up to which all is known.
            ordered: versions have only grown so far; if not, they are not compared.
        """
        said = Ongoing([], reached, ordered)
        deltas = said.deltas
        quarantined = self._quarantine.remembers
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
            elif event.type == DELETED and (key := _deleted_key(event)):
                # A deletion whose last state cannot be shown: what was cached last is shown in its place.
                version = _unreadable_version(event)
                delta = Delta(DeltaType.DELETED, DeletedFinalStateUnknown(key, self._known(key)))
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
                if quarantined and self._quarantine.release(delta.object.key, gone=delta.type is DeltaType.DELETED):
                    said.quarantined = True
            elif event.type != BOOKMARK and self._pass_over(event):
                said.quarantined = quarantined = True
        said.version = reached
        return said

    def _pass_over(self, event: WatchEvent) -> bool:
        if isinstance(event.error, DecodeError):
            self._incoming.skip(event.error)
            return True
        self._tell(f"an event of unknown type {event.type[:40]!r} is skipped")
        return False


def _deleted_key(event: WatchEvent) -> str:
    """Whose deletion it is, as far as that could be read."""
    if event.record is not None:
        return event.record.key
    return event.error.key if isinstance(event.error, DecodeError) else ""


def _unreadable_version(event: WatchEvent) -> str:
    return event.error.version if isinstance(event.error, DecodeError) else ""
