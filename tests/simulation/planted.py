"""Mistakes that a careless change might make, one at a time: each must be found by the simulation.

A planted bug breaks the product itself, for as long as its context lasts. What it needs to know of the product's inside
is in its few lines; where a name is gone, planting fails loudly.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from aioinformer import watch_reading
from aioinformer.answers import AnswerReader
from aioinformer.backoff import Backoff
from aioinformer.bulk_change import BulkChange
from aioinformer.cache_controller import CacheController
from aioinformer.cache_updates import CacheUpdates
from aioinformer.deltas import DeletedFinalStateUnknown, Delta, DeltaType
from aioinformer.guarded_queue import GuardedQueue
from aioinformer.incoming_list import IncomingList
from aioinformer.indices import Index
from aioinformer.keyed_deltas import KeyedDeltas
from aioinformer.listener import ProcessorListener
from aioinformer.notifications import AddNotification, DeleteNotification
from aioinformer.ordered_deltas import OrderedDeltas
from aioinformer.pace import Pace
from aioinformer.processor import SharedProcessor
from aioinformer.protocol import ListWatchProtocol
from aioinformer.reflector import Reflector
from aioinformer.steps import PageEnded
from aioinformer.thread_safe_store import ThreadSafeStore
from aioinformer.wire import Intake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.steps import Answer


@dataclass(frozen=True, slots=True)
class Planted:
    """One bug.

    Attributes:
        name: of the bug.
        about: what is wrong with the product while it is planted.
        plant: breaks the product for as long as it lasts.
    """

    name: str
    about: str
    plant: Callable[[], AbstractContextManager[Any]]


PLANTED: list[Planted] = []


def planted(about: str) -> Callable[[Callable[[], AbstractContextManager[Any]]], None]:
    """Takes a bug into the table."""

    def take(plant: Callable[[], AbstractContextManager[Any]]) -> None:
        PLANTED.append(Planted(plant.__name__.replace("_", " "), about, plant))

    return take


# The queues.


@planted("a relist does not queue deletions of what it lacks (queue by key)")
def lost_tombstone() -> AbstractContextManager[Any]:
    original = KeyedDeltas.replacing

    def replacing(self: Any, objects: Any, version: str) -> Iterator[None]:
        known, self._known = self._known, None
        try:
            yield from original(self, objects, version)
        finally:
            self._known = known

    return patch.object(KeyedDeltas, "replacing", replacing)


@planted("any two deltas before a deletion are taken for a pair of deletions")
def dedup_of_the_wrong_pair() -> AbstractContextManager[Any]:
    def dedup(deltas: Any) -> None:
        if len(deltas) > 1:
            del deltas[-2]

    return patch("aioinformer.keyed_deltas._dedup", dedup)


@planted("the consumer waits without looking whether something came while it was at work")
def lost_wake_up() -> AbstractContextManager[Any]:
    async def until(self: Any, ready: Callable[[], Any]) -> None:
        await self._condition.wait()
        while not ready():
            await self._condition.wait()

    return patch.object(GuardedQueue, "_until", until)


@planted("the version of a batch is told before the batch is processed")
def version_taken_before_delivery() -> AbstractContextManager[Any]:
    original = CacheController._process

    def process(self: Any, deltas: Any, is_in_initial_list: bool) -> None:
        self._config.on_version(self._config.queue._state.version)
        original(self, deltas, is_in_initial_list)

    return patch.object(CacheController, "_process", process)


@planted("a resync queues what is cached as an update, behind what waits already (queue by key)")
def resync_over_a_pending_change() -> AbstractContextManager[Any]:
    def resyncing(self: Any) -> Iterator[None]:
        for key in self._known.all_keys():
            self._append(Delta(DeltaType.UPDATED, self._known.item(key)), key)
            yield

    return patch.object(KeyedDeltas, "resyncing", resyncing)


@planted("the queue says that it has synced as soon as the first list is in it")
def synced_too_early() -> AbstractContextManager[Any]:
    with_both = ExitStack()
    for state in (KeyedDeltas, OrderedDeltas):
        with_both.enter_context(patch.object(state, "has_synced", lambda self: self._populated))
    return with_both


# The cache.


@planted("an index keeps the keys of what was deleted")
def index_not_updated_on_delete() -> AbstractContextManager[Any]:
    return patch.object(Index, "remove", lambda self, key, item: None)


@planted("a list that replaces the cache in one step removes nothing")
def replace_does_not_remove() -> AbstractContextManager[Any]:
    return patch.object(BulkChange, "delete", lambda self, key: None)


@planted("a list that replaces the cache in one step forgets the indices of what changed")
def replace_does_not_index() -> AbstractContextManager[Any]:
    original = BulkChange.put

    def put(self: Any, key: str, item: Any) -> None:
        if self._items is not None:
            original(self, key, item)
        else:
            self._puts[key] = item, {index: index._values_of(key) for index in self._indices()}

    return patch.object(BulkChange, "put", put)


@planted("an object counts as unchanged if its version is the same, also after a restore")
def versions_trusted_after_a_restore() -> AbstractContextManager[Any]:
    original = Intake.listed
    return patch.object(Intake, "listed", lambda self, raw, *, compare=False: original(self, raw))


@planted("a tombstone shows what the queue knew, and not what was told last")
def tombstone_of_an_old_state() -> AbstractContextManager[Any]:
    def deleted(self: Any, key: str, obj: Any) -> None:
        old = self._cells.delete(key)
        if old is None:
            return
        if isinstance(obj, DeletedFinalStateUnknown):
            last = self._present(obj.obj) if obj.obj is not None else None
            self._distribute(DeleteNotification(DeletedFinalStateUnknown(key, last)))
        else:
            self._distribute(DeleteNotification(self._present(obj)))
        if key in self._waiters:
            self._waiters.changed(key, None)

    return patch.object(CacheUpdates, "_deleted", deleted)


@planted("waking those who wait for a version wakes those of later versions, too")
def woken_for_any_version() -> AbstractContextManager[Any]:
    return patch("aioinformer.waiters.covers", lambda version, wanted: True)


# Lists and watches.


@planted("a deletion that comes while a streaming list is on its way is dropped")
def deletion_during_a_list_dropped() -> AbstractContextManager[Any]:
    return patch.object(IncomingList, "drop", lambda self, key: None)


@planted("a list that begins anew keeps what the one before it had brought")
def list_begins_with_remains() -> AbstractContextManager[Any]:
    return patch.object(IncomingList, "begin", lambda self: None)


@planted("any bookmark is taken for the end of a streaming list")
def bookmark_ends_the_list() -> AbstractContextManager[Any]:
    original = watch_reading.WatchReader.initial

    def initial(self: Any, events: Any) -> Any:
        for event in events:
            event.initial_events_end = event.type == "BOOKMARK"
        return original(self, events)

    return patch.object(watch_reading.WatchReader, "initial", initial)


@planted("a bookmark of an older version moves the version back")
def older_version_taken() -> AbstractContextManager[Any]:
    return patch("aioinformer.watch_reading.version_number", lambda version: -1)


@planted("a 410 within a watch is handled as any broken connection: the same version again")
def gone_in_a_stream_ignored() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._version_lost

    def version_lost(self: Any, error: Exception, now: float) -> None:
        if self._stage.value == "watch":
            self._fail(error, now, type(self._stage).OPEN)
        else:
            original(self, error, now)  # type: ignore[arg-type]

    return patch.object(ListWatchProtocol, "_version_lost", version_lost)


@planted("a list that is older than what is cached is accepted")
def stale_list_accepted() -> AbstractContextManager[Any]:
    return patch("aioinformer.protocol.is_older", lambda version, than: False)


@planted("a list that breaks off counts as complete")
def half_a_list_accepted() -> AbstractContextManager[Any]:
    original = AnswerReader._digest_list

    def digest(self: Any, chunk: bytes | None) -> Iterator[Answer]:
        if chunk is not None:
            yield from original(self, chunk)
        elif (meta := self._parser.head().metadata) is not None:
            yield PageEnded(meta.resource_version, meta.continue_ or "")

    return patch.object(AnswerReader, "_digest_list", digest)


@planted("watches are opened again from the version of the list")
def watch_from_an_old_version() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._ongoing_events

    def ongoing(self: Any, *arguments: Any) -> None:
        before = self.version
        original(self, *arguments)
        self.version = before

    return patch.object(ListWatchProtocol, "_ongoing_events", ongoing)


@planted("of the events that came in one piece with a broken line, the last is dropped")
def event_before_a_broken_line_lost() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._ongoing_events

    def ongoing(self: Any, events: Any, *arguments: Any) -> None:
        original(self, events, *arguments)
        if len(events) > 2 and arguments[-1][-1].deltas:
            arguments[-1][-1].deltas.pop()

    return patch.object(ListWatchProtocol, "_ongoing_events", ongoing)


@planted("a connection from which nothing comes any more is never given up")
def dead_connection_not_noticed() -> AbstractContextManager[Any]:
    return patch("aioinformer.reflector.asyncio.timeout_at", lambda when: asyncio.timeout(None))


# Manners.


@planted("each failure costs the first delay again")
def backoff_reset_at_once() -> AbstractContextManager[Any]:
    return patch.object(Backoff, "at_rest", lambda self, now: True)


@planted("Retry-After is not heeded")
def retry_after_ignored() -> AbstractContextManager[Any]:
    return patch.object(Pace, "hold", lambda self, seconds, now: None)


@planted("the state stays healthy whatever fails")
def silent_failure() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._show

    def show(self: Any, phase: Any, reason: str) -> None:
        if self.phase.value != "watching":
            original(self, phase, reason)

    return patch.object(ListWatchProtocol, "_show", show)


# Handlers.


@planted("a handler that raises is not called any more")
def exception_ends_a_listener() -> AbstractContextManager[Any]:
    original = ProcessorListener._call

    async def call(self: Any, notification: Any) -> None:
        errors = self.errors
        await original(self, notification)
        if self.errors > errors:
            self._stopped = True

    return patch.object(ProcessorListener, "_call", call)


@planted("a late handler is told of the cache as it is when its turn comes, on top of what it is told anyway")
def joined_from_a_later_snapshot() -> AbstractContextManager[Any]:
    class Later(list[Any]):
        def __init__(self, store: Any) -> None:
            super().__init__(store._items.values())
            self._store = store

        def __iter__(self) -> Iterator[Any]:
            yield from list(self._store._items.values())

    return patch.object(ThreadSafeStore, "items", Later)


@planted("a late handler is on the list of those who are told one turn after it was told of the cache")
def gap_after_the_snapshot() -> AbstractContextManager[Any]:
    original = SharedProcessor.add_listener

    def add(self: Any, listener: Any) -> None:
        original(self, listener)
        if self._tasks is not None:
            self.listeners.remove(listener)
            asyncio.get_running_loop().call_later(0.001, self.listeners.append, listener)

    return patch.object(SharedProcessor, "add_listener", add)


@planted("a handler counts as synced when the informer is")
def handler_synced_with_the_informer() -> AbstractContextManager[Any]:
    def check(self: Any) -> None:
        if self._upstream_synced:
            self.synced.set()

    return patch.object(ProcessorListener, "_check_synced", check)


@planted("a handler that left is told what waited for it")
def told_after_leaving() -> AbstractContextManager[Any]:
    def remove(self: Any, listener: Any) -> None:
        if listener in self.listeners:
            self.listeners.remove(listener)
            self._leaving.append(listener)

    return patch.object(SharedProcessor, "remove_listener", remove)


@planted("the deletion of what nobody was told of is told")
def deletion_of_the_unknown() -> AbstractContextManager[Any]:
    original = CacheUpdates._deleted

    def deleted(self: Any, key: str, obj: Any) -> None:
        if self._cells.item(key) is None and not isinstance(obj, DeletedFinalStateUnknown):
            self._distribute(DeleteNotification(self._present(obj)))
        original(self, key, obj)

    return patch.object(CacheUpdates, "_deleted", deleted)


@planted("an update of what is new to the cache is told as an addition each time")
def addition_told_twice() -> AbstractContextManager[Any]:
    original = CacheUpdates._upserted

    def upserted(self: Any, record: Any, initial: bool) -> None:
        if initial and self._cells.item(record.key) is not None:
            self._cells.put(record.key, record)
            self._distribute(AddNotification(self._present(record), initial))
        else:
            original(self, record, initial)

    return patch.object(CacheUpdates, "_upserted", upserted)


# The end.


@planted("the answer that is being read at the end stays open")
def answer_left_open() -> AbstractContextManager[Any]:
    original = Reflector._let_go

    async def let_go(self: Any) -> None:
        if self._shown[0].value != "stopped":
            await original(self)

    return patch.object(Reflector, "_let_go", let_go)
