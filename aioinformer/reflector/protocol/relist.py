"""The list in progress: the objects of its pages or of its stream, and the request for the next page.

Deletions are not computed here. A complete list replaces what the queue and the cache contain:
`DeltaFIFO._deleting_missing` and `CacheUpdates.replace_all` delete what is missing in it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from aioinformer.cache.objects.record import UndecodablePlaceholder
from aioinformer.errors import ApiError, DecodeError
from aioinformer.queue.listed_objects import ListedObjects
from aioinformer.reflector.protocol.changes import Quarantine, deleted_key, skip
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, ForeignObject, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.options import ListOptions, ReflectorOptions


#: Up to this number of objects, `streaming_list="auto"` streams. On kube-apiserver, pages of 500 take as long then,
#: and 0.4 to 0.7 of the time for 5,000 to 20,000 objects.
_STREAMED: Final = 1000
#: A streaming list that brings fewer objects and fewer bytes than these within its patience is given up.
STREAM_OBJECTS: Final = 100
STREAM_BYTES: Final = 1024 * 1024


class StreamProgress:
    """Decide whether a streaming list goes on. It may lack the bookmark that ends it, so it must bring something.

    A list that brings fewer than 100 objects and less than 1 MiB within the patience is given up, and one that brings
    more never is. Only objects that are new to the list count, and the bytes that bring them: in a busy collection,
    changes of known objects come without end.

    Args:
        patience: in seconds.
        now: when the response began.
    """

    __slots__ = ("_bytes", "_listed_bytes", "_objects", "_patience", "ends_at")

    def __init__(self, patience: float, now: float) -> None:
        self._patience = patience
        self._listed_bytes = 0
        self._begin(now)

    def _begin(self, now: float) -> None:
        #: When the list is given up unless it brings more.
        self.ends_at = now + self._patience
        self._objects = 0
        self._bytes = 0

    def count(self, objects: int, listed_bytes: int, now: float, *, partly: bool = False) -> bool:
        """Count what has come; return whether the list goes on.

        Args:
            objects: how many new objects there are.
            listed_bytes: how many bytes of the list have been read so far.
            partly: the bytes since the last call belong to an object that is incomplete.
        """
        if objects or partly:
            self._objects += objects
            self._bytes += listed_bytes - self._listed_bytes
        self._listed_bytes = listed_bytes
        if self._objects >= STREAM_OBJECTS or self._bytes >= STREAM_BYTES:
            self._begin(now)
        return now < self.ends_at


class InitialEvents(msgspec.Struct):
    """The result of reading initial events of a streaming list.

    Attributes:
        rest: the events after the initial events.
        new: how many objects there were that the list had not contained before.
        version: of the list, once it is complete.
        ordinary_bookmark: another bookmark came before the end. A server that streams lists does not send it.
        failure: the error event that ended the stream.
    """

    rest: list[WatchEvent] = msgspec.field(default_factory=list)
    new: int = 0
    complete: bool = False
    version: str = ""
    ordinary_bookmark: bool = False
    failure: ApiError | DecodeError | None = None


class Relist:
    """Collect the objects of a list, and make the requests for its pages.

    An undecodable object must not look deleted: its cached version stays. If its name cannot be decoded either, it may
    be any object that the list does not contain, so all of these stay.
    """

    __slots__ = (
        "_log",
        "_options",
        "_page_has_items",
        "_page_has_new",
        "_paged",
        "_quarantine",
        "_records",
        "_size",
        "_token",
    )

    def __init__(self, options: ReflectorOptions, quarantine: Quarantine, log: Callable[[str], None]) -> None:
        self._options = options
        self._quarantine = quarantine
        self._log = log
        #: None while there is nothing: most of the time, a reflector watches.
        self._records: ListedObjects[Record] | None = None
        self._token = ""
        self._paged = True
        #: The objects of the last list; infinite before the first.
        self._size = inf
        #: Whether the page in progress has brought an item, and one that the pages before it did not contain.
        self._page_has_items = False
        self._page_has_new = False

    def __bool__(self) -> bool:
        return bool(self._records)

    def __repr__(self) -> str:
        return f"{len(self._records or ())} objects listed{', between pages' if self._token else ''}"

    def begin(self, *, paged: bool = True) -> None:
        """Begin a list, in pages or in one body. Objects of a list that was not completed are discarded."""
        self._records = None
        self._quarantine.begin_list()
        self._token = ""
        self._paged = paged

    @property
    def streams(self) -> bool:
        """Whether the options request a streaming list for a collection of this size."""
        option = self._options.streaming_list
        return self._size <= _STREAMED if option == "auto" else option

    def end(self) -> ListedObjects[Record]:
        """Complete the list and return its objects by key. They are not copied: that would block the event loop."""
        records = self._collected()
        self._records = None
        self._size = len(records)
        self._quarantine.end_list(records)
        return records

    # Objects.

    def _collected(self) -> ListedObjects[Record]:
        if self._records is None:
            self._records = ListedObjects()
        return self._records

    def add_items(self, items: Collection[Record | DecodeError]) -> bool:
        """Add items of a page. Return whether any of them is new to the list."""
        progress = self._add_all(items)
        self._page_has_items = self._page_has_items or bool(items)
        self._page_has_new = self._page_has_new or progress or any(isinstance(item, DecodeError) for item in items)
        return progress

    def add_initial_events(self, events: list[WatchEvent]) -> InitialEvents:
        """Add the objects of a streaming list, at most up to its end."""
        result = InitialEvents()
        for position, event in enumerate(events, 1):
            if isinstance(event.error, ForeignObject):
                self._quarantine.count_foreign(event.error, self._log)
            elif event.type in (ADDED, MODIFIED):
                item = event.error if event.record is None else event.record
                if item is not None and not isinstance(item, ApiError) and self._add(item):
                    result.new += 1
            elif event.type == DELETED and (key := deleted_key(event)):
                self._remove(key)
            elif event.type in (ERROR, DELETED) and event.error is not None:
                result.failure = event.error
                break
            elif event.type == BOOKMARK and event.initial_events_end:
                result.complete = True
                result.version = event.version
                result.rest = events[position:]
                break
            elif event.type == BOOKMARK and event.error is None:
                # KEP-3157: no bookmark comes before the one that ends the initial events.
                result.ordinary_bookmark = True
                break
        return result

    def _add(self, item: Record | DecodeError) -> bool:
        """Add an object, or a placeholder if it cannot be decoded. Return whether it is new to the list."""
        records = self._collected()
        if isinstance(item, DecodeError):
            records.setdefault(item.key, UndecodablePlaceholder.of(item.key))
            return skip(self._quarantine, item, self._log)
        new = records.put(item.key, item)
        if self._quarantine.is_tracking:
            self._quarantine.release(item.key)
        return new

    def _add_all(self, items: Collection[Record | DecodeError]) -> bool:
        if self._quarantine.is_tracking or any(issubclass(kind, DecodeError) for kind in set(map(type, items))):
            new_items = [self._add(item) for item in items]  # a list: `any` must not stop at the first new item
            return any(new_items)
        put = self._collected().put
        new = False
        for item in items:
            new = put(item.key, item) or new  # type: ignore[arg-type] # none of them is an error
        return new

    def _remove(self, key: str) -> None:
        """Remove an object that was deleted during the list."""
        if self._records is not None:
            self._records.pop(key, None)
        self._quarantine.release(key, gone=True)

    # Pages.

    @property
    def between_pages(self) -> bool:
        """Whether a page is complete and another follows."""
        return bool(self._token)

    def request(self, version: str | None) -> ListOptions:
        """Return the request for the page that is due.

        Args:
            version: up to which the collection has been read, "" for none; None if the request must not name one.
        """
        if self._token:
            return self._options.next_page(self._token)
        return self._options.first_page(version, paged=self._paged)

    def next_page(self, token: str) -> ListOptions | None:
        """Return the request for the page after the one in progress, given its token; None if the token is repeated."""
        return self._options.next_page(token) if token != self._token else None

    def begin_page(self) -> None:
        """Begin a page."""
        self._page_has_items = False
        self._page_has_new = False

    def is_page_empty(self) -> bool:
        """Return whether the page has brought no item."""
        return not self._page_has_items

    def is_repeating(self, token: str) -> bool:
        """Return whether the server repeats pages: the token for the next page, or all items, came before."""
        return token == self._token or (self._page_has_items and not self._page_has_new)

    def end_page(self, token: str) -> None:
        """Complete the page, given the token of the next one."""
        self._token = token
