"""Planted bugs in lists, watches, request rates, and shutdown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from aioinformer.backoff import Backoff
from aioinformer.cache.objects.record import decode_record
from aioinformer.reflector import watch_decoder
from aioinformer.reflector.alarm import Alarm
from aioinformer.reflector.protocol.list_watch import ListWatchProtocol
from aioinformer.reflector.protocol.messages import PageEnded
from aioinformer.reflector.protocol.relist import Relist
from aioinformer.reflector.protocol.state import Pace, ProtocolState, Stage
from aioinformer.reflector.reflector import Reflector
from aioinformer.reflector.response_reader import PageParser
from aioinformer.resources.versions import Position, is_older
from tests.system.simulation.planted import Planted, planting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from aioinformer.reflector.protocol.messages import Answer


PLANTED: list[Planted] = []
planted = partial(planting, PLANTED)

# Lists and watches.


@planted("a deletion that arrives during a streaming list is dropped")
def deletion_during_a_list_dropped() -> AbstractContextManager[Any]:
    return patch.object(Relist, "_remove", lambda self, key: None)


@planted("a list that is started again keeps the items of the previous attempt")
def list_keeps_earlier_items() -> AbstractContextManager[Any]:
    def begin(self: Any, *, paged: bool = True) -> None:
        self._token, self._paged = "", paged

    return patch.object(Relist, "begin", begin)


@planted("a bookmark is decoded as an object, and skipped because it has no name")
def bookmark_taken_for_an_object() -> AbstractContextManager[Any]:
    return patch(
        "aioinformer.reflector.watch_decoder._bookmark",
        lambda raw: watch_decoder.decode_watch_line(b'{"type":"MODIFIED","object":%b}' % raw, decode_record),
    )


@planted("a bookmark with a lower resourceVersion sets the version back")
def older_version_taken() -> AbstractContextManager[Any]:
    return patch("aioinformer.reflector.protocol.changes.is_older", lambda version, than: False)


@planted("a deletion with the resourceVersion of the object counts as a sign of a restored server")
def deletion_taken_for_a_restore() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._read_watch_events

    def ongoing(self: Any, events: Any, now: float, conclusions: Any) -> None:
        version = self.version
        for event in events:
            deleted = event.record.resource_version if event.record is not None and event.type == "DELETED" else ""
            if is_older(deleted, version):
                self._on_lower_version(deleted, "list", now)
                return
        original(self, events, now, conclusions)

    return patch.object(ListWatchProtocol, "_read_watch_events", ongoing)


@planted("after 410, the watch is opened again from the same resourceVersion")
def expiry_ignored() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._on_version_lost

    def version_lost(self: Any, error: Any, now: float) -> None:
        if self.state.stage in (Stage.WATCH, Stage.OPEN):
            self.state.fail(error, now, Stage.OPEN)
        else:
            original(self, error, now)

    return patch.object(ListWatchProtocol, "_on_version_lost", version_lost)


@planted("a list that is older than the cache is accepted")
def stale_list_accepted() -> AbstractContextManager[Any]:
    return patch.object(Position, "is_ahead_of", lambda self, version: False)


@planted("a list that breaks off counts as complete")
def partial_list_accepted() -> AbstractContextManager[Any]:
    original = PageParser._parse_page

    def digest(self: Any, chunk: bytes | None) -> Iterator[Answer]:
        if chunk is not None:
            yield from original(self, chunk)
        elif (meta := self._parser.head().metadata) is not None:
            yield PageEnded(meta.resource_version or "", meta.continue_ or "")

    return patch.object(PageParser, "_parse_page", digest)


@planted("watches are opened again from the resourceVersion of the list")
def watch_from_an_old_version() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._read_watch_events

    def ongoing(self: Any, *arguments: Any) -> None:
        before = self.version
        original(self, *arguments)
        self.state.position.version = before

    return patch.object(ListWatchProtocol, "_read_watch_events", ongoing)


@planted("if a chunk has a broken line, the last event before it is dropped")
def event_before_a_broken_line_lost() -> AbstractContextManager[Any]:
    original = ListWatchProtocol._read_watch_events

    def ongoing(self: Any, events: Any, *arguments: Any) -> None:
        original(self, events, *arguments)
        if len(events) > 2 and arguments[-1][-1].deltas:
            arguments[-1][-1].deltas.pop()

    return patch.object(ListWatchProtocol, "_read_watch_events", ongoing)


@planted("a silent connection is never given up")
def dead_connection_not_noticed() -> AbstractContextManager[Any]:
    original = Alarm.at
    return patch.object(Alarm, "at", lambda self, limit: original(self, None))


# Request rates.


@planted("each failure costs the first delay again")
def backoff_reset_at_once() -> AbstractContextManager[Any]:
    return patch.object(Backoff, "at_rest", lambda self, now: True)


@planted("Retry-After is ignored")
def retry_after_ignored() -> AbstractContextManager[Any]:
    return patch.object(Pace, "hold", lambda self, seconds, now: None)


@planted("the state stays healthy in spite of failures")
def silent_failure() -> AbstractContextManager[Any]:
    original = ProtocolState.show

    def show(self: Any, phase: Any, reason: str) -> None:
        if self.phase.value != "watching":
            original(self, phase, reason)

    return patch.object(ProtocolState, "show", show)


# Shutdown.


@planted("the response that is read at the stop is not closed")
def response_left_open() -> AbstractContextManager[Any]:
    original = Reflector._close_response

    async def close(self: Any) -> None:
        if self._shown[0].value != "stopped":
            await original(self)

    return patch.object(Reflector, "_close_response", close)
