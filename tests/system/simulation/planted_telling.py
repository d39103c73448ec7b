"""Planted bugs between the queue and the handlers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from aioinformer.cache.bulk_change import BulkChange
from aioinformer.cache.indices import Index
from aioinformer.cache.thread_safe_store import ThreadSafeStore
from aioinformer.handlers.listener import ProcessorListener
from aioinformer.handlers.notifications import DeleteNotification
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.informer.controller import CacheController
from aioinformer.queue.delta_fifo import DeltaFIFO
from aioinformer.queue.fifo import FIFO, Batch
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.resources.keys import DeletedFinalStateUnknown
from tests.system.simulation.planted import Planted, planting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


PLANTED: list[Planted] = []
planted = partial(planting, PLANTED)

# The queues.


@planted("a relist does not queue deletions of missing keys (queue by key)")
def lost_tombstone() -> AbstractContextManager[Any]:
    original = DeltaFIFO._deleting_missing

    def replaced(self: Any, unlisted: Any, version: str) -> Iterator[None]:
        known, self._known = self._known, None
        try:
            yield from original(self, unlisted, version)
        finally:
            self._known = known

    return patch.object(DeltaFIFO, "_deleting_missing", replaced)


@planted("the delta before a deletion is dropped, even if it is not a deletion")
def wrong_deltas_deduplicated() -> AbstractContextManager[Any]:
    def dedup(deltas: Any) -> None:
        if len(deltas) > 1:
            del deltas[-2]

    return patch("aioinformer.queue.delta_fifo._dedup", dedup)


@planted("the consumer waits without checking whether deltas were queued while it was processing")
def lost_wake_up() -> AbstractContextManager[Any]:
    async def enter(self: Any) -> Any:
        queue = self._queue
        await queue._condition.acquire()
        try:
            await queue._condition.wait()
            while not (queue._line or queue._news):
                await queue._condition.wait()
        except BaseException:
            queue._condition.release()
            raise
        self.size = len(queue)
        return self

    return patch.object(Batch, "__aenter__", enter)


@planted("the resourceVersion of a batch is reported before the batch is processed")
def version_advances_before_processing() -> AbstractContextManager[Any]:
    original = CacheController.__init__

    def init(self: Any, config: Any) -> None:
        process = config.process

        def process_late(deltas: Any, is_in_initial_list: bool) -> None:
            config.on_version(config.queue._version)
            process(deltas, is_in_initial_list)

        config.process = process_late
        original(self, config)

    return patch.object(CacheController, "__init__", init)


@planted("the queue has synced as soon as the first list is queued")
def synced_too_early() -> AbstractContextManager[Any]:
    return patch.object(FIFO, "has_synced", lambda self: self._populated)


# The cache.


@planted("an index keeps the keys of deleted objects")
def index_not_updated_on_delete() -> AbstractContextManager[Any]:
    return patch.object(Index, "remove", lambda self, key, item: None)


@planted("a list that replaces the cache in one step removes no object")
def replace_does_not_remove() -> AbstractContextManager[Any]:
    return patch.object(BulkChange, "delete", lambda self, key: None)


@planted("an object counts as unchanged if its resourceVersion is the same, even after a restore")
def versions_trusted_after_a_restore() -> AbstractContextManager[Any]:
    original = RecordDecoder.from_list

    def listed(self: Any, raw: bytes) -> Any:
        record = self._decode(raw)
        cached = self._known(record.key)
        return cached if cached is not None and cached.same_version(record) else original(self, raw)

    return patch.object(RecordDecoder, "from_list", listed)


@planted("a tombstone has the state that the queue knew instead of the last delivered one")
def tombstone_of_an_old_state() -> AbstractContextManager[Any]:
    def deleted(self: Any, key: str, obj: Any) -> None:
        old = self._store.delete(key)
        if old is None:
            return
        if isinstance(obj, DeletedFinalStateUnknown):
            last = self._to_view(obj.obj) if obj.obj is not None else None
            self._distribute(DeleteNotification(DeletedFinalStateUnknown(key, last)))
        else:
            self._distribute(DeleteNotification(self._to_view(obj)))
        if key in self._waiters:
            self._waiters.changed(key, None)

    return patch.object(CacheUpdates, "_delete", deleted)


@planted("reaching a resourceVersion also ends waits for a later one")
def woken_for_any_version() -> AbstractContextManager[Any]:
    return patch("aioinformer.cache.waiters.covers", lambda version, wanted: True)


# Handlers.


@planted("a handler that raises is not called again")
def exception_ends_a_listener() -> AbstractContextManager[Any]:
    def count(self: Any, errors: int) -> None:
        self.__dict__["errors"] = errors
        self._stopped = errors > 0

    counting = property(lambda self: self.__dict__["errors"], count)
    return patch.object(ProcessorListener, "errors", counting, create=True)


@planted("a late handler receives the cache as of its first call, in addition to the notifications since it was added")
def later_snapshot_for_a_late_handler() -> AbstractContextManager[Any]:
    class Later(list[Any]):
        def __init__(self, store: Any) -> None:
            super().__init__(store._items.values())
            self._store = store

        def __iter__(self) -> Iterator[Any]:
            yield from list(self._store._items.values())

    return patch.object(ThreadSafeStore, "items", lambda self: Later(self))


@planted("a late handler receives notifications only from one turn of the loop after its snapshot on")
def gap_after_the_snapshot() -> AbstractContextManager[Any]:
    original = SharedProcessor.add_listener

    def add(self: Any, listener: Any) -> None:
        original(self, listener)
        if self._tasks is not None:
            self.listeners.remove(listener)
            asyncio.get_running_loop().call_later(0.001, self.listeners.append, listener)

    return patch.object(SharedProcessor, "add_listener", add)


@planted("a handler counts as synced as soon as the informer has synced")
def handler_synced_with_the_informer() -> AbstractContextManager[Any]:
    def check(self: Any) -> None:
        if self._upstream_synced:
            self.synced.set()

    return patch.object(ProcessorListener, "_check_synced", check)


@planted("a removed handler still receives its pending notifications")
def delivered_after_removal() -> AbstractContextManager[Any]:
    def remove(self: Any, listener: Any) -> None:
        if listener in self.listeners:
            self.listeners.remove(listener)
            self._leaving.append(listener)

    return patch.object(SharedProcessor, "remove_listener", remove)


@planted("the deletion of an object that no handler has received is delivered")
def unknown_deletion_delivered() -> AbstractContextManager[Any]:
    original = CacheUpdates._delete

    def deleted(self: Any, key: str, obj: Any) -> None:
        if self._store.item(key) is None and not isinstance(obj, DeletedFinalStateUnknown):
            self._distribute(DeleteNotification(self._to_view(obj)))
        original(self, key, obj)

    return patch.object(CacheUpdates, "_delete", deleted)
