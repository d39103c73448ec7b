"""The list under way: its pages or the initial events of its stream, what they brought, and which page is next.

Deletions are not found here: a list that is complete replaces what the queue and the cache know
(`DeltaFIFO._deleting_missing`, or `CacheUpdates.replace_all` for the queue in order).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aioinformer.cache.objects.record import UndecodablePlaceholder
from aioinformer.errors import ApiError, DecodeError
from aioinformer.queue.listed_objects import ListedObjects
from aioinformer.reflector.protocol.changes import Quarantine, deleted_key, skip
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.options import ListOptions, ReflectorOptions


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


class Relist:
    """Gather the objects of one list, and ask for its pages.

    An object that does not decode must not look deleted: the cached one stays. An object that does not even show its
    name may be any that the list does not name: all of those stay.

    Args:
        options: how to list.
        quarantine: remembers objects that do not decode.
        tell: takes a line for the log.
    """

    def __init__(self, options: ReflectorOptions, quarantine: Quarantine, tell: Callable[[str], None]) -> None:
        self._options = options
        self._quarantine = quarantine
        self._tell = tell
        self._records: ListedObjects[Record] = ListedObjects()
        self._token = ""
        self._paged = True
        #: Whether the page under way has brought anything, and anything that the pages before it had not.
        self._items = self._news = False

    def __bool__(self) -> bool:
        return bool(self._records)

    def __repr__(self) -> str:
        return f"{len(self._records)} objects listed{', between pages' if self._token else ''}"

    def begin(self, *, paged: bool = True) -> None:
        """Begin a list, in pages or in one body: only what it brings counts."""
        self._records = ListedObjects()
        self._quarantine.begin()
        self._token, self._paged = "", paged

    def end(self) -> ListedObjects[Record]:
        """Complete the list; return its objects by key. They are not copied, since many would block the event loop."""
        records, self._records = self._records, ListedObjects()
        self._quarantine.end(records)
        return records

    # What it brings.

    def take_page(self, items: Collection[Record | DecodeError]) -> bool:
        """Take the items of a page; return whether the list had not brought all of them before."""
        progress = self._take_all(items)
        self._items = self._items or bool(items)
        self._news = self._news or progress or any(isinstance(item, DecodeError) for item in items)
        return progress

    def take_events(self, events: list[WatchEvent]) -> Initial:
        """Take the events of a streaming list, up to its end at most."""
        said = Initial()
        for position, event in enumerate(events, 1):
            if event.type in (ADDED, MODIFIED):
                item = event.error if event.record is None else event.record
                if item is not None and not isinstance(item, ApiError) and self._take(item):
                    said.news = True
            elif event.type == DELETED and (key := deleted_key(event)):
                self._drop(key)
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

    def _take(self, item: Record | DecodeError) -> bool:
        """Take an object, or the error in its place; return whether the list had not brought it before."""
        if isinstance(item, DecodeError):
            self._records.setdefault(item.key, UndecodablePlaceholder.of(item.key))
            return skip(self._quarantine, item, self._tell)
        new = self._records.put(item.key, item)
        if self._quarantine.remembers:
            self._quarantine.release(item.key)
        return new

    def _take_all(self, items: Collection[Record | DecodeError]) -> bool:
        if self._quarantine.remembers or any(issubclass(kind, DecodeError) for kind in set(map(type, items))):
            news = [self._take(item) for item in items]  # all of them, whatever the first is
            return any(news)
        put, new = self._records.put, False
        for item in items:
            new = put(item.key, item) or new  # type: ignore[arg-type] # none of them is an error
        return new

    def _drop(self, key: str) -> None:
        """Remove an object that was deleted while the list was on its way."""
        self._records.pop(key, None)
        self._quarantine.release(key, gone=True)

    # Its pages.

    @property
    def between_pages(self) -> bool:
        """Whether a page has come and another is to follow."""
        return bool(self._token)

    def request(self, version: str | None) -> ListOptions:
        """Return the request for the page that is due.

        Args:
            version: that is held already, "" if none is; None if none may be named.
        """
        if self._token:
            return self._options.next_page(self._token)
        return self._options.first_page(version, paged=self._paged)

    def ahead(self, token: str) -> ListOptions | None:
        """Return the request for the page after the one under way, given its token; None if in circles."""
        return self._options.next_page(token) if token != self._token else None

    def begin_page(self) -> None:
        """Note that a page is on its way."""
        self._items = self._news = False

    def is_empty(self) -> bool:
        """Whether the page has brought nothing."""
        return not self._items

    def is_circular(self, token: str) -> bool:
        """Whether the page, which names this token for the next one, shows that the server goes in circles."""
        return token == self._token or (self._items and not self._news)

    def turn(self, token: str) -> None:
        """Note that the page is complete, and the token of the next one."""
        self._token = token
