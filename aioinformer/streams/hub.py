"""The hub of one informer and one view: it keeps the log up to date, and wakes the readers.

```
informer ── keys of changed objects ──▶ pending ── view ──▶ log ◀── positions of readers
```

The informer calls the hub in the step that changes the cache, which only notes the keys. The views are made in slices
from the event loop, and only while a reader waits: a view is called once for each change, or once for several changes
of one object, and never in the way of the cache or of handlers. The hub has no task; a reader is a position, and a
future while it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from operator import attrgetter
from os import urandom
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from aioinformer.errors import USER_ERRORS
from aioinformer.functions import Timed, untimed
from aioinformer.handlers.notifications import UpdateNotification
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.resources.keys import DeletedFinalStateUnknown, deletion_handling_meta_namespace_key_func
from aioinformer.streams.log import Changed, ChangeLog, Position
from aioinformer.streams.selection import Selection

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record
    from aioinformer.cache.thread_safe_store import ThreadSafeStore
    from aioinformer.handlers.backlog import Batch
    from aioinformer.streams.views import ViewMaker

_log = get_logger("aioinformer.streams")

#: Bytes of deletions and earlier labels in a log, for readers that come back.
LIMIT: Final = 4 << 20
#: Seconds of views in one step of the event loop.
_SLICE: Final = 0.002
#: Seconds for which changes are collected after readers were woken, for each of them: it is about what a reader costs.
_PAUSE: Final = 25e-6
#: Seconds until views are made again after a failure.
_AGAIN: Final = 1.0
#: So many changes, at most, are in one part of the log that is delivered.
_BATCH: Final = 256
#: So many parts, at most, are kept for other readers.
_PARTS: Final = 64


class Source(Protocol):
    """The informer, as a hub needs it."""

    name: str

    @property
    def observers(self) -> list[Callable[[Batch[Any]], object]]: ...
    def has_synced(self) -> bool: ...
    def is_stopped(self) -> bool: ...


class Part(NamedTuple):
    """Changes that follow a position, shared by all readers of one selection at this position.

    Attributes:
        changes: in their order.
        position: after them.
        complete: whether the log has nothing more.
        forms: encoded forms of the changes, by name, for the code that sends them.
    """

    changes: list[Changed]
    position: Position
    complete: bool
    forms: dict[str, bytes]


class Hub:
    """Keeps the log of an informer's changes in one view, while there are readers.

    Args:
        source: the informer.
        store: its cache.
        to_view: record -> object for readers.
        maker: makes the views.
        timed: wraps the function of the views: it reports calls that block the event loop.

    Attributes:
        key: of the view, among the hubs of the informer.
        log: the changes.
        epoch: identifies the log: positions of another one mean nothing here.
        readers: the number of readers.
        behind: whether the log lacks what changed while there was no reader. A reader that begins waits for that.
    """

    def __init__(
        self,
        source: Source,
        store: ThreadSafeStore[Any],
        to_view: Callable[[Record], Any],
        maker: ViewMaker,
        timed: Timed = untimed,
    ) -> None:
        self.key: Hashable = None
        self.log = ChangeLog(LIMIT)
        self.epoch = urandom(8)
        self.readers = 0
        self._source = source
        self._store = store
        self._name = f"view {maker.name}"

        def make(record: Record) -> Any:
            return maker.make(record, to_view(record))

        self._make = timed(make, self._name, attrgetter("key"))
        self._loop = asyncio.get_running_loop()
        self._errors = RepeatedErrors(_log)
        self._waiters: set[asyncio.Future[None]] = set()
        self._sync_awaited = False
        #: Until then, changes are collected: so many readers were woken.
        self._pause_ends = 0.0
        self._pending: dict[str, None] = {}
        self._begun: Iterator[str] | None = None
        self._next: asyncio.Handle | None = None
        self._parts: dict[tuple[Selection, Position], Part] = {}
        self._parts_of = 0
        #: The sequence for which readers were woken.
        self._shown = 0
        self.recheck()
        self.catch_up()
        source.observers.append(self._saw)

    def close(self) -> None:
        """Leave the informer, and wake all readers."""
        observers = self._source.observers
        observers[:] = [each for each in observers if each != self._saw]
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._errors.close()
        self.wake()

    @property
    def ended(self) -> bool:
        """Whether the informer has stopped, and nothing will change any more."""
        return self._source.is_stopped()

    def settled(self) -> bool:
        """Return whether the log has everything that the cache has, and the cache has synced."""
        return not self._pending and self._begun is None and self._source.has_synced()

    def recheck(self) -> None:
        """Compare the log with the whole cache."""
        self._pending.update(dict.fromkeys(self._store.all_keys()))
        self._pending.update(dict.fromkeys(self.log.keys()))

    def catch_up(self) -> None:
        """Make the views of what has changed without a reader before readers begin."""
        self.behind = bool(self._pending) or self._begun is not None

    def part(self, position: Position, selection: Selection) -> Part:
        """Return what follows a position of the log for a selection. All readers that ask for the same share it."""
        if self._parts_of != self.log.sequence or len(self._parts) >= _PARTS:
            self._parts.clear()
            self._parts_of = self.log.sequence
        found = self._parts.get((selection, position))
        if found is None:
            found = Part(*self.log.read(position, selection, _BATCH), {})
            self._parts[selection, position] = found
        return found

    def make_views(self) -> None:
        """Make the views of changed objects, if that has not begun yet."""
        if self._next is None and (self._pending or self._begun is not None):
            self._next = self._loop.call_at(self._pause_ends, self._settle)

    def add_waiter(self, waiter: asyncio.Future[None], synced: bool) -> None:
        """Wake a reader when the log has changed, and unless it has synced, when the log is settled."""
        self._waiters.add(waiter)
        self._sync_awaited = self._sync_awaited or not synced
        self.make_views()

    def remove_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Forget a reader that waits no longer."""
        self._waiters.discard(waiter)

    def wake(self) -> None:
        """Wake all readers that wait."""
        waiters = self._waiters
        self._waiters = set()
        self._sync_awaited = False
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _saw(self, batch: Batch[Any]) -> None:
        """Note the keys of a batch of notifications."""
        pending = self._pending
        for notification in batch.notifications:
            if isinstance(notification, UpdateNotification):
                obj = notification.new
            else:
                obj = notification.obj
            try:
                pending[obj.key if type(obj) is DeletedFinalStateUnknown else _key_of(obj)] = None
            except Exception:  # of a user's model without metadata
                self.recheck()
                break
        if self._waiters:
            self.make_views()

    def _settle(self) -> None:
        """Do a slice of `_make_some`. If it fails, because memory runs out or the log raises, try again later."""
        self._next = None
        try:
            self._make_some()
        except USER_ERRORS as error:
            if self._next is None:
                self._next = self._loop.call_later(_AGAIN, self._settle)
            self.recheck()
            subject = f"{self._source.name}: {self._name}"
            self._errors.report(f"{subject}: readers", error, "%s: its readers wait; trying again", subject)

    def _make_some(self) -> None:
        """Make the views of the objects that had changed when this began, in slices, then wake the readers."""
        if self._begun is None:
            self._begun = iter(self._pending)
            self._pending = {}
        ends = perf_counter() + _SLICE
        for key in self._begun:
            self._update(key)
            if perf_counter() > ends:
                self._next = self._loop.call_soon(self._settle)
                return
        self._begun = None
        self.behind = False
        if self.log.sequence != self._shown or (self._sync_awaited and self.settled()):
            self._shown = self.log.sequence
            self._pause_ends = self._loop.time() + _PAUSE * len(self._waiters)
            self.wake()
        self.make_views()

    def _update(self, key: str) -> None:
        record = self._store.item(key)
        if record is None:
            self.log.delete(key)
            return
        try:
            value = self._make(record)
            if value is not None:
                self.log.put(key, record.namespace, bytes(record.labels), value)
                return
        except USER_ERRORS as error:
            subject = f"{self._source.name}: {self._name}"
            message = "%s raised for %s; readers see no such object until it changes"
            self._errors.report(subject, error, message, subject, key, key=key)
        self.log.delete(key)


_key_of = deletion_handling_meta_namespace_key_func
