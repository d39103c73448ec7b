"""`ListWatchRecorder`: the figures of one reflector's lists and watches, the log of slow lists, and of progress."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aioinformer.logs import Trace, get_logger
from aioinformer.reflector.protocol.messages import (
    Accepted,
    Ended,
    Failed,
    Idled,
    Listed,
    PageEnded,
    Pending,
    Watched,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.metrics.counters import InformerCounters
    from aioinformer.reflector.protocol.messages import Answer, Send

_log = get_logger("aioinformer.reflector")

#: Lists that take longer than this number of seconds are logged.
SLOW_LIST: Final = 10.0
#: A watch without an event that lasts less than this number of seconds counts as short.
_SHORT_WATCH: Final = 1.0


class ListWatchRecorder:
    """Counts the lists and watches of one reflector, and logs slow lists, and every 10 s how far the first one is.

    Args:
        name: of the reflector.
        clock: of the event loop.
        counters: the counters to increment; None to count nothing.
    """

    __slots__ = (
        *("_clock", "_counters", "_events", "_list", "_list_reason", "_name", "_requested_watch", "_timer", "_total"),
        "_watch_since",
    )

    def __init__(self, name: str, clock: Callable[[], float], counters: InformerCounters | None) -> None:
        self._name = name
        self._clock = clock
        self._counters = counters
        self._list: Trace | None = None
        self._requested_watch = False
        #: Why the list in progress is necessary; "" without one.
        self._list_reason = ""
        self._watch_since: float | None = None
        self._events = 0
        #: How many objects the list in progress will have, as far as the server says so.
        self._total: int | None = None
        #: Logs the progress of the first list.
        self._timer: asyncio.TimerHandle | None = None

    @property
    def progress(self) -> str:
        """How far the list in progress is, for people; "" without one."""
        listing = self._list
        expected = self._total
        if listing is None:
            return ""
        objects = listing.objects
        seconds = listing.seconds
        rate = objects / seconds if seconds > 0 else 0.0
        total = ""
        left = ""
        if expected is not None:
            total = f" of {max(expected, objects)}"
            left = f", about {max(0, expected - objects) / rate:.0f} s left" if rate else ""
        return f"{objects}{total} objects after {seconds:.0f} s ({rate:.0f} a second{left})"

    def record_request(self, step: Send, reason: str = "first") -> None:
        """Record a request before it is sent.

        Args:
            step: the request.
            reason: why the last list was necessary.
        """
        self._end_watch()
        self._requested_watch = step.options.watch
        if step.initial and self._list_reason != reason:
            self._list_reason = reason
            if self._counters is not None:
                self._counters.relists[reason] += 1
        if step.initial and self._list is None:
            kind = "streaming list" if step.options.watch else "list"
            self._list = Trace(_log, f"{self._name}: {kind}", self._clock)
            if reason == "first":
                self._timer = asyncio.get_running_loop().call_later(SLOW_LIST, self._log_progress)
        elif step.initial and not step.options.continue_token:
            assert self._list is not None
            self._list.step("started again")
            self._list.objects = 0
            self._total = None

    def record_answer(self, answer: Answer) -> None:
        """Record an answer before the protocol receives it."""
        match answer:
            case Watched(events) if self._watch_since is not None:
                self._events += (count := len(events))
                if self._counters is not None:
                    self._counters.watched += count
            case Accepted() | Pending() if self._requested_watch and self._list is None and self._watch_since is None:
                self._watch_since = self._clock()
            case Failed() | Ended():
                self._end_watch()
                self._fail_list()
            case Listed(items) if self._list is not None:
                self._list.count(len(items))
            case Watched(events) if self._list is not None:
                self._list.count(len(events))
            case PageEnded() if self._list is not None:
                self._list.count(pages=1)
                self._total = None if answer.remaining is None else self._list.objects + answer.remaining
            case Idled():  # ends a list, but not a watch: the next request ends it
                self._fail_list()

    def record_list(self, objects: int, *, streamed: bool) -> None:
        """Record a complete list. If it was streamed, its stream continues as a watch."""
        if self._list is not None:
            self._list.step(f"{objects} objects listed")
        if self._counters is not None:
            self._counters.listed += objects
        if streamed:
            self._watch_since = self._clock()

    def record_queued(self) -> None:
        """Record that a complete list is in the queue."""
        self._list_reason = ""
        if self._list is not None:
            self._list.step("queued")
            self._end_list()

    def _fail_list(self) -> None:
        if self._list is not None:
            self._list.step("failed")
            self._end_list()

    def close(self) -> None:
        """End the log of the progress: the reflector ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _end_list(self) -> None:
        if self._list is None:
            return
        self._list.log_if_long(SLOW_LIST)
        if self._counters is not None:
            self._counters.lists.observe(self._list.seconds)
        self._list = None
        self._total = None
        if self._timer is not None:
            self._timer.cancel()

    def _log_progress(self) -> None:
        _log.info("%s: the first list has %s", self._name, self.progress)
        self._timer = asyncio.get_running_loop().call_later(SLOW_LIST, self._log_progress)

    def _end_watch(self) -> None:
        since = self._watch_since
        self._watch_since = None
        events = self._events
        self._events = 0
        if since is None or self._counters is None:
            return
        seconds = self._clock() - since
        self._counters.watches.observe(seconds)
        self._counters.short_watches += seconds < _SHORT_WATCH and not events
