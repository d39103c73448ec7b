"""Bugs that a careless change might introduce; the simulation must find each of them.

A planted bug replaces a function or method of the package for the length of a context. It depends on internals of the
package; if one of them no longer exists, planting fails.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from aioinformer import DeletedFinalStateUnknown
from aioinformer.cache.objects.record import decode_record
from aioinformer.handlers.notifications import DeleteNotification
from aioinformer.reflector.protocol.messages import PageEnded
from aioinformer.reflector.protocol.state import Stage
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.resources.versions import is_older

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from aioinformer.reflector.protocol.messages import Answer


@dataclass(frozen=True, slots=True)
class Planted:
    """One bug: a replacement of a function or method, whose first argument is the original."""

    name: str
    about: str
    place: str
    replacement: Callable[..., Any]

    def plant(self) -> AbstractContextManager[Any]:
        """Plant the bug for the length of a block."""
        original = resolve_name(self.place)
        return patch(self.place, lambda *arguments, **options: self.replacement(original, *arguments, **options))


PLANTED: list[Planted] = []


def planted(about: str, place: str) -> Callable[[Callable[..., Any]], None]:
    """Declare a bug; the name of the replacement is that of the bug."""

    def take(replacement: Callable[..., Any]) -> None:
        PLANTED.append(Planted(replacement.__name__.replace("_", " "), about, f"aioinformer.{place}", replacement))

    return take


# The queues.


@planted(
    "a relist does not queue deletions of missing keys (queue by key)", "queue.delta_fifo.DeltaFIFO._deleting_missing"
)
def lost_tombstone(original: Any, self: Any, unlisted: Any, version: str) -> Iterator[None]:
    known, self._known = self._known, None
    try:
        yield from original(self, unlisted, version)
    finally:
        self._known = known


@planted("the delta before a deletion is dropped, even if it is not a deletion", "queue.delta_fifo._dedup")
def wrong_deltas_deduplicated(original: Any, deltas: Any) -> None:
    if len(deltas) > 1:
        del deltas[-2]


@planted(
    "the consumer waits without checking whether deltas were queued while it was processing",
    "queue.fifo.Batch.__aenter__",
)
async def lost_wake_up(original: Any, self: Any) -> Any:
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


@planted(
    "the resourceVersion of a batch is reported before the batch is processed",
    "informer.process_loop.CacheController.__init__",
)
def version_advances_before_processing(original: Any, self: Any, config: Any) -> None:
    process = config.process

    def process_late(deltas: Any, is_in_initial_list: bool) -> None:
        config.on_version(config.queue.version)
        process(deltas, is_in_initial_list)

    config.process = process_late
    original(self, config)


@planted("the queue has synced as soon as the first list is queued", "queue.fifo.FIFO.has_synced")
def synced_too_early(original: Any, self: Any) -> Any:
    return self._populated


# The cache.


@planted("an index keeps the keys of deleted objects", "cache.indices.Index.remove")
def index_not_updated_on_delete(original: Any, self: Any, key: str, item: Any) -> None: ...


@planted("a list that replaces the cache in one step removes no object", "cache.bulk_change.BulkChange.delete")
def replace_does_not_remove(original: Any, self: Any, key: str) -> None: ...


@planted(
    "an object counts as unchanged if its resourceVersion is the same, even after a restore",
    "reflector.watch_events.RecordDecoder.from_list",
)
def versions_trusted_after_a_restore(original: Any, self: Any, raw: bytes) -> Any:
    record = self._decode(raw)
    cached = self._known(record.key)
    return cached if cached is not None and cached.same_version(record) else original(self, raw)


@planted(
    "a tombstone has no state, although handlers have received one",
    "informer.cache_updates.CacheUpdates._missed_delete",
)
def tombstone_without_the_last_state(original: Any, self: Any, key: str, old: Any) -> Any:
    return DeleteNotification(DeletedFinalStateUnknown(key, None))


@planted("reaching a resourceVersion also ends waits for a later one", "cache.waiters.covers")
def woken_for_any_version(original: Any, version: str, wanted: str) -> bool:
    return True


# Handlers.


@planted("a handler that raises is not called again", "handlers.listener.ProcessorListener._take")
def exception_ends_a_listener(original: Any, self: Any, error: BaseException) -> None:
    original(self, error)
    self.backlog.close()


@planted(
    "a late handler receives the cache as of its first call, in addition to the notifications since it was added",
    "cache.thread_safe_store.ThreadSafeStore.items",
)
def later_snapshot_for_a_late_handler(original: Any, self: Any) -> Any:
    class Later(list[Any]):
        def __iter__(later) -> Iterator[Any]:
            yield from list(self._items.values())

    return Later(self._items.values())


@planted(
    "a late handler receives notifications only from one turn of the loop after its snapshot on",
    "handlers.processor.SharedProcessor.add_listener",
)
def gap_after_the_snapshot(original: Any, self: Any, listener: Any) -> None:
    original(self, listener)
    if self._tasks is not None:
        self.listeners.remove(listener)
        asyncio.get_running_loop().call_later(0.001, self.listeners.append, listener)


@planted(
    "a handler counts as synced as soon as the informer has synced",
    "handlers.listener.ProcessorListener._check_synced",
)
def handler_synced_with_the_informer(original: Any, self: Any) -> None:
    if self._upstream_synced:
        self.synced.set()


@planted(
    "a removed handler still receives its pending notifications", "handlers.processor.SharedProcessor.remove_listener"
)
def delivered_after_removal(original: Any, self: Any, listener: Any) -> None:
    if listener in self.listeners:
        self.listeners.remove(listener)
        self._leaving.append(listener)


@planted(
    "the deletion of an object that no handler has received is delivered",
    "informer.cache_updates.CacheUpdates._delete",
)
def unknown_deletion_delivered(original: Any, self: Any, key: str, obj: Any) -> None:
    if self._store.item(key) is None and not isinstance(obj, DeletedFinalStateUnknown):
        self._distribute(DeleteNotification(self._to_view(obj)))
    original(self, key, obj)


# Lists and watches.


@planted("a deletion that arrives during a streaming list is dropped", "reflector.protocol.relist.Relist._remove")
def deletion_during_a_list_dropped(original: Any, self: Any, key: str) -> None: ...


@planted(
    "a list that is started again keeps the items of the previous attempt", "reflector.protocol.relist.Relist.begin"
)
def list_keeps_earlier_items(original: Any, self: Any, *, paged: bool = True) -> None:
    self._token, self._paged = "", paged


@planted("a bookmark is decoded as an object, and skipped because it has no name", "reflector.watch_decoder._bookmark")
def bookmark_taken_for_an_object(original: Any, raw: bytes) -> Any:
    return decode_watch_line(b'{"type":"MODIFIED","object":%b}' % raw, decode_record)


@planted("a bookmark with a lower resourceVersion sets the version back", "reflector.protocol.changes.is_older")
def older_version_taken(original: Any, version: str, than: str) -> bool:
    return False


_READ = "reflector.protocol.list_watch.ListWatchProtocol._read_watch_events"


@planted("a deletion with the resourceVersion of the object counts as a sign of a restored server", _READ)
def deletion_taken_for_a_restore(original: Any, self: Any, events: Any, now: float, conclusions: Any) -> None:
    version = self.version
    for event in events:
        deleted = event.record.resource_version if event.record is not None and event.type == "DELETED" else ""
        if is_older(deleted, version):
            self._on_lower_version(deleted, "list", now)
            return
    original(self, events, now, conclusions)


@planted(
    "after 410, the watch is opened again from the same resourceVersion",
    "reflector.protocol.list_watch.ListWatchProtocol._on_version_lost",
)
def expiry_ignored(original: Any, self: Any, error: Any, now: float) -> None:
    if self.state.stage in (Stage.WATCH, Stage.OPEN):
        self.state.fail(error, now, Stage.OPEN)
    else:
        original(self, error, now)


@planted("a list that is older than the cache is accepted", "resources.versions.Position.is_ahead_of")
def stale_list_accepted(original: Any, self: Any, version: str) -> bool:
    return False


@planted("a list that breaks off counts as complete", "reflector.response_reader.PageParser._parse_page")
def partial_list_accepted(original: Any, self: Any, chunk: bytes | None) -> Iterator[Answer]:
    if chunk is not None:
        yield from original(self, chunk)
    elif (meta := self._parser.head().metadata) is not None:
        yield PageEnded(meta.resource_version or "", meta.continue_ or "")


@planted("watches are opened again from the resourceVersion of the list", _READ)
def watch_from_an_old_version(original: Any, self: Any, *arguments: Any) -> None:
    before = self.version
    original(self, *arguments)
    self.state.position.version = before


@planted("if a chunk has a broken line, the last event before it is dropped", _READ)
def event_before_a_broken_line_lost(original: Any, self: Any, events: Any, *arguments: Any) -> None:
    original(self, events, *arguments)
    if len(events) > 2 and arguments[-1][-1].deltas:
        arguments[-1][-1].deltas.pop()


@planted("a silent connection is never given up", "reflector.response_reader.Responses._within")
def dead_connection_not_noticed(original: Any, self: Any, limit: float | None, wait: Any) -> Any:
    return original(self, None, wait)


# Request rates.


@planted("each failure costs the first delay again", "backoff.Backoff.at_rest")
def backoff_reset_at_once(original: Any, self: Any, now: float) -> bool:
    return True


@planted("Retry-After is ignored", "reflector.protocol.state.Pace.hold")
def retry_after_ignored(original: Any, self: Any, seconds: float, now: float) -> None: ...


@planted("the state stays healthy in spite of failures", "reflector.protocol.state.ProtocolState.show")
def silent_failure(original: Any, self: Any, phase: Any, reason: str) -> None:
    if self.phase.value != "watching":
        original(self, phase, reason)


# Shutdown.


@planted("the response that is read at the stop is not closed", "reflector.reflector.Reflector._close_response")
async def response_left_open(original: Any, self: Any) -> None:
    if self._shown[0].value != "stopped":
        await original(self)
