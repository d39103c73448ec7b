"""The list/watch protocol: it decides which request follows, given the answers of the server.

Rule 1. All decisions on the next request are made here, and there is nothing else here: no socket, no clock, no
        randomness, no await. `next_step()` returns what to do, `receive()` takes the answer; time is an argument.
Rule 2. The protocol never ends and never gives up. Every state has a next step, and accepts every answer.
Rule 3. The protocol never sends requests in a tight loop. Each failure costs a delay of one common backoff, and no
        request is sent before the time that the server named, which replaces the delay ten times. After a few kinds of
        errors, a request may follow immediately, but only once (`Pace`). No combination of them leads to more than
        three requests in two seconds.
Rule 4. No problem is hidden. An error that costs a delay is shown in `phase` and `reason` until a watch is open, or a
        list is complete if no watch is served. Errors without a delay are logged.
Rule 5. The end of a watch is not a failure, however it ends, if the watch brought an event that was new or lasted a
        second. Silence is not a failure either. In both cases, the watch is opened again from the last version. But a
        silence that the server does not explain makes the freshness of the cache doubtful (`watches`).
Rule 6. No streaming list lasts for ever without its end: one that brings too little is given up for pages
        (`StreamProgress`). If only streaming lists are refused as too many requests, one page is tried at times.

The stages:

```
        ┌──────────────────── the cache must be replaced (410, lower versions, broken lines) ────────────────────┐
        ▼                                                                                                        │
    DECIDE ──> STREAM ── initial-events-end ──> WATCH <── accepted ── OPEN <── watch ended, or failed and delay ─┤
      ▲ │        │ refused, ignored, slow         ▲                   │ ▲                                        │
      │ │        ▼                                └───────────────────┼─┼────────────────────────────────────────┤
      │ └──────> LIST ──────────── last page ─────────────────────────┼─┤                                        │
      └───────── delay (polling) <─────────────────── 405 ────────────┘ └── CHECK <── silent, server was lost ───┘
```

A failure in STREAM or LIST leads back to DECIDE after a delay. A stage is the purpose of the *next* step; `reading` is
true while the response to its request is being read (`ProtocolState`). CHECK lists a single object to get the server's
version, because a server that was restored from a backup is silent until it has passed the version of the watch.

Sources: API concepts ("Efficient detection of changes", "Streaming lists", "410 Gone", "Retrieving large results sets
in chunks"), KEP-3157; client-go's Reflector. The docs list the differences from client-go.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from aioinformer.errors import ApiError, DecodeError, Expired, ProcessingError, ResourceVersionTooLarge, TransportError
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.protocol.changes import read_changes
from aioinformer.reflector.protocol.messages import (
    Accepted,
    Answer,
    Changed,
    Conclusion,
    Elapsed,
    Ended,
    Failed,
    Idled,
    Listed,
    PageEnded,
    Pending,
    Read,
    Replaced,
    Send,
    Step,
    Wait,
    Watched,
)
from aioinformer.reflector.protocol.relist import Relist, StreamProgress
from aioinformer.reflector.protocol.state import ProtocolState, Stage
from aioinformer.reflector.protocol.watches import HEAD_PATIENCE, Watches
from aioinformer.reflector.watch_events import ADDED, BOOKMARK

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.options import ListOptions
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.state import Phase
    from aioinformer.reflector.watch_events import WatchEvent

#: Seconds after which a server that could not stream lists is requested to stream one again.
STREAMING_PROBE: Final = 600.0
#: After this number of streaming lists in a row that were refused with 429, and this number of seconds, a list in pages
#: is tried instead of the next one.
STREAMS_REFUSED: Final = 5
REFUSED_FOR: Final = 60.0


class ListWatchProtocol:
    """The protocol for one collection of one server.

    Args:
        random: returns numbers in [0, 1) that spread delays and timeouts of watches.
        known: returns the cached record of a key, for objects whose last version cannot be decoded.
        log: receives a line for the log on each unusual decision.
        report: receives each failure that ended a list or a watch.
        watchable: False if the resource is known to have no watch: it is listed repeatedly.

    Attributes:
        state: stage, position and phase.
    """

    __slots__ = (
        "_known",
        "_list_at",
        "_progress_at",
        "_refused",
        "_refused_at",
        "_relist",
        "_stream",
        "_streaming_from",
        "_watchable",
        "_watches",
        "options",
        "state",
    )

    def __init__(
        self,
        options: ReflectorOptions | None = None,
        *,
        random: Callable[[], float],
        known: Callable[[str], Record | None] = lambda key: None,
        log: Callable[[str], None] = lambda line: None,
        report: Callable[[Exception], None] = lambda error: None,
        watchable: bool = True,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.options = options or ReflectorOptions()
        self._watchable = watchable
        state = ProtocolState(self.options.backoff, random, log, report, quarantine)
        self.state = state
        self._watches = Watches(state, self.options, random)
        #: The list or streaming list in progress.
        self._relist = Relist(self.options, state.quarantine, log)
        self._known = known
        #: When the list in progress was requested, and when it brought a new object.
        self._list_at = 0.0
        self._progress_at = 0.0
        self._stream = StreamProgress(self.options.stream_patience, 0.0)
        self._streaming_from = 0.0
        #: How many streaming lists in a row were refused with 429, and when the first of them was.
        self._refused = 0
        self._refused_at = 0.0

    @property
    def phase(self) -> Phase:
        """The phase to show."""
        return self.state.phase

    @property
    def reason(self) -> str:
        """The reason for the phase."""
        return self.state.reason

    @property
    def version(self) -> str:
        """The version of the last list, event or bookmark, from which the next watch starts; "" before the first."""
        return self.state.position.version

    @property
    def retry_at(self) -> float | None:
        """When the next request may be sent after a failure; None without a failure. The time may be in the past."""
        return self.state.pace.not_before if self.state.pace.attempts else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state}, {self._relist}, {self._watches.record}>"

    # The next step.

    def next_step(self, now: float) -> Step:
        """Return what to do at `now`. Without an answer in between, another call returns the same step."""
        state = self.state
        if now < state.pace.not_before:
            return Wait(state.pace.not_before)
        if state.reading:
            if state.stage is Stage.WATCH:
                return self._watches.reading
            idle_timeout = self.options.idle_timeout
            if state.stage is Stage.STREAM:
                until = self._stream.ends_at
            else:
                until = self._progress_at + idle_timeout
            return Read(until, initial=True, silence=idle_timeout)
        if state.stage is Stage.DECIDE:
            self._decide(now)
        match state.stage:
            case Stage.STREAM:
                return Send(self._watches.request_stream(now), initial=True, patience=self.options.stream_patience)
            case Stage.LIST:
                return Send(self._relist.request(state.position.held), initial=True)
            case Stage.CHECK:
                return Send(self.options.probe())
            case _:
                return self._watches.request_watch(now)

    def _decide(self, now: float) -> None:
        self._list_at = now
        self._relist.begin()
        streams = self._relist.streams and self._watchable and now >= self._streaming_from
        if self._refused >= STREAMS_REFUSED and now - self._refused_at >= REFUSED_FOR:
            # While its watch cache is behind, a server refuses each streaming list, and answers plain lists.
            self._refused = 0
            self.state.prefer_list = True
            self.state.log(f"streaming lists have been refused for {now - self._refused_at:.0f} s: trying one in pages")
        self.state.enter(Stage.STREAM if streams and not self.state.prefer_list else Stage.LIST)
        self.state.prefer_list = False

    def next_page_request(self, token: str) -> ListOptions | None:
        """Return the request for the page after the current one, if any. It may be sent ahead of time."""
        listing = self.state.stage is Stage.LIST and self.state.reading
        return self._relist.next_page(token) if listing else None

    # Answers.

    def receive(self, answer: Answer, now: float) -> list[Conclusion]:
        """Process the answer to the last step, and return the conclusions."""
        match answer:
            case Watched(events, listed_bytes):
                return self._on_events(events, listed_bytes, now)
            case Listed(items):
                self._on_items(items, now)
            case PageEnded(version, token):
                return self._on_page_end(version, token, now)
            case Accepted():
                self._on_accepted(now)
            case Pending():
                self._on_pending(now)
            case Ended():
                self._on_end(now)
            case Failed(error):
                # A stream that begins well and then breaks may pass a proxy that cannot stream: pages are next.
                self.state.prefer_list = self.state.reading and self.state.stage is Stage.STREAM
                self._on_failure(error, now)
            case Idled(seconds):
                self._on_idle(seconds, now)
            case Elapsed(listed_bytes) if self.state.reading:
                self._on_elapsed(listed_bytes, now)
        return []

    def _on_accepted(self, now: float) -> None:
        self._watches.head_patience = HEAD_PATIENCE
        if self._watches.headless:
            self._watches.take_head()
            return
        if self.state.stage is Stage.OPEN:
            self._watches.take_head()
        self._start_reading(now)

    def _start_reading(self, now: float) -> None:
        self.state.reading = True
        self._progress_at = now
        self._stream = StreamProgress(self.options.stream_patience, now)
        self._relist.begin_page()
        self._watches.begin()
        if self.state.stage is Stage.OPEN:
            self._watches.follow()

    def _on_pending(self, now: float) -> None:
        if self.state.stage is Stage.STREAM:
            self._fall_back_to_pages(now, f"no answer came for {self.options.stream_patience:g} s")
        elif self.state.stage is Stage.OPEN:
            self._watches.headless = True
            self._start_reading(now)

    def _on_elapsed(self, listed_bytes: int, now: float) -> None:
        match self.state.stage:
            case Stage.STREAM:
                self._count_progress(0, listed_bytes, now, partly=True)
            case Stage.WATCH if self._watches.headless and now < self._watches.record.deadline:
                self._watches.on_late_head(now)
            case Stage.WATCH:  # a quiet watch that the server should have ended
                self._watches.on_end(now)
            case _:
                self._on_idle(self.options.idle_timeout, now)

    # Lists.

    def _on_items(self, items: list[Record | DecodeError], now: float) -> None:
        if self.state.stage is Stage.CHECK:
            return
        if self._relist.add_items(items):
            self._progress_at = now
        elif self.state.stage is Stage.LIST and now - self._progress_at >= self.options.idle_timeout:
            self._on_idle(self.options.idle_timeout, now)

    def _on_page_end(self, version: str, token: str, now: float) -> list[Conclusion]:
        self.state.reading = False
        if self.state.stage is Stage.CHECK:
            if self.state.position.is_ahead_of(version):
                self._on_lower_version(version, "list", now)
            else:
                self._watches.on_check_passed()
            return []
        if not token:
            return self._complete_list(version, Stage.OPEN, now)
        if self._relist.is_repeating(token):
            # The objects that this list did not reach must not look deleted.
            self.state.fail(DecodeError("the server repeats the same page of the list"), now, Stage.DECIDE)
        elif self._relist.is_page_empty():
            # API concepts, "limit": all objects of a page may have been filtered out. A faulty server may send empty
            # pages without end.
            self.state.pace.limit_burst(now)
        self._relist.end_page(token)
        return []

    def _complete_list(self, version: str, then: Stage, now: float) -> list[Conclusion]:
        position = self.state.position
        if not version and (position.versioned or then is Stage.WATCH):
            self.state.prefer_list = then is Stage.WATCH
            self.state.fail(DecodeError("the list has no resourceVersion"), now, Stage.DECIDE)
            return []
        if position.is_ahead_of(version) and not position.doubt:
            self._on_lower_version(version, "list", now)
            return []
        records = self._relist.end()
        self._refused = 0
        position.take_list(version)
        self._watches.reset_after_list(now if then is Stage.WATCH else self._list_at)
        if then is Stage.WATCH:
            self.state.end_doubt()  # the watch has brought the list
            self._watches.follow()
        elif self._watchable:
            self.state.enter(then)
        else:
            self._watches.poll(now, "the resource has no watch")
        return [Replaced(records, version)]

    # Watches.

    def _on_events(self, events: list[WatchEvent], listed_bytes: int, now: float) -> list[Conclusion]:
        conclusions: list[Conclusion] = []
        if self.state.stage is Stage.STREAM:
            events = self._read_initial_events(events, listed_bytes, now, conclusions)
        if self.state.stage is Stage.WATCH and events:
            self._read_watch_events(events, now, conclusions)
        return conclusions

    def _read_initial_events(
        self, events: list[WatchEvent], listed_bytes: int, now: float, conclusions: list[Conclusion]
    ) -> list[WatchEvent]:
        """Add events to the streaming list in progress. Return the events that do not belong to it."""
        initial = self._relist.add_initial_events(events)
        if initial.failure is not None:
            self._on_failure(initial.failure, now)
        elif initial.complete:
            conclusions += self._complete_list(initial.version, Stage.WATCH, now)
        elif initial.ordinary_bookmark:
            self._fall_back_to_pages(now, "an ordinary bookmark came first")
        else:
            self._count_progress(initial.new, listed_bytes, now)
        return initial.rest

    def _count_progress(self, objects: int, listed_bytes: int, now: float, *, partly: bool = False) -> None:
        if not self._stream.count(objects, listed_bytes, now, partly=partly):
            self._fall_back_to_pages(now, f"too few objects in {self.options.stream_patience:g} s")

    def _read_watch_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> None:
        position = self.state.position
        if self._watches.record.synthetic:
            events = self._read_synthetic_events(events, conclusions)
            if not events:
                return
        record = self._watches.record
        record.events += len(events)
        record.heard_at = now
        state = self.state
        if record.silent or state.doubt or events[-1].type == BOOKMARK:
            self._watches.hear(now, bookmark=events[-1].type == BOOKMARK)
        changes = read_changes(events, position.version, position.ordered, state.quarantine, self._known, state.log)
        position.version = changes.version
        position.ordered = changes.ordered
        if changes.quarantined:
            self.state.show_healthy()
        conclusions.append(Changed(changes.deltas, changes.version))
        if changes.older:
            self._on_lower_version(changes.older, "bookmark", now)
            return
        record.server_lost = False
        if changes.failure is not None:
            self._on_failure(changes.failure, now)

    def _read_synthetic_events(self, events: list[WatchEvent], conclusions: list[Conclusion]) -> list[WatchEvent]:
        """Read the ADDED events with which a watch without a version begins. Return the events after them.

        They show the existing objects in any order, so another watch cannot start from any of their versions.
        """
        synthetic = list(takewhile(lambda event: event.type == ADDED, events))
        state = self.state
        changes = read_changes(synthetic, state.position.version, False, state.quarantine, self._known, state.log)
        if changes.quarantined:
            self.state.show_healthy()
        conclusions.append(Changed(changes.deltas))
        record = self._watches.record
        record.events += len(synthetic)  # they do not end a silence: each watch without a version begins with them
        record.synthetic = len(synthetic) == len(events)
        return events[len(synthetic) :]

    def _fall_back_to_pages(self, now: float, reason: str) -> None:
        self.state.log(f"the server does not stream lists ({reason}): listing in pages")
        self._streaming_from = now + STREAMING_PROBE
        self.state.pace.limit_burst(now)
        self.state.enter(Stage.DECIDE)

    def _on_lower_version(self, version: str, evidence: str, now: float) -> None:
        """List without a version and accept any version: the server may have been restored from a backup."""
        error = DecodeError(f"the server's versions went back from {self.version} to {version}")
        self.state.position.rewind(evidence)
        self.state.list_reason = "restored"
        self.state.recover(error, now, Stage.DECIDE, kind="lower version", message=f"{error}: listing again")

    # Ends and failures.

    def _on_end(self, now: float) -> None:
        error = DecodeError("the list ended before it was complete")
        match self.state.stage:
            case Stage.WATCH:
                self._watches.on_end(now)
            case Stage.CHECK:
                self._watches.on_check_failed(error, now)
            case _ if self._watches.record.is_short(now):
                message = f"{error}: listing again"
                self.state.prefer_list = not self.state.recover(error, now, Stage.DECIDE, kind="short", message=message)
            case _:
                self.state.prefer_list = True
                self.state.fail(error, now, Stage.DECIDE)

    def _on_idle(self, seconds: float, now: float) -> None:
        error = DecodeError(f"no new object came for {seconds:g} s")
        match self.state.stage:
            case Stage.WATCH:
                self._watches.on_silence(seconds, now)
            case Stage.CHECK:
                self._watches.on_check_failed(error, now)
            case stage:
                self.state.prefer_list = stage is Stage.STREAM  # a stream whose end never comes would idle again
                self.state.fail(error, now, Stage.DECIDE)

    def _on_failure(self, error: ApiError | TransportError | DecodeError | ProcessingError, now: float) -> None:
        state = self.state
        watches = self._watches
        if isinstance(error, TransportError) or (isinstance(error, ApiError) and error.status >= 500):
            watches.record.server_lost = True
        if watches.headless and not (isinstance(error, TransportError) and error.sent):
            watches.on_open_refuted()
        watches.headless = False
        state.reading = False
        stage = state.stage
        if stage is Stage.WATCH and isinstance(error, TransportError):
            watches.on_end(now, cut=error)
            return
        if stage is Stage.WATCH:
            watches.count_end(now)
        if stage is Stage.CHECK:
            watches.on_check_failed(error, now)
        elif isinstance(error, Expired | ResourceVersionTooLarge):
            self._on_version_lost(error, now)
        elif isinstance(error, ProcessingError):  # received objects are missing in the cache: only a list shows which
            state.set_list_reason("unprocessed")
            state.fail(error, now, Stage.DECIDE)
        elif isinstance(error, ApiError) and stage is Stage.WATCH:
            watches.on_error_event(error, now)
        elif isinstance(error, ApiError) and stage is Stage.OPEN:
            watches.on_refusal(error, now)
        elif isinstance(error, ApiError) and stage is Stage.STREAM:
            self._on_stream_refused(error, now)
        elif isinstance(error, DecodeError) and stage in (Stage.WATCH, Stage.OPEN):
            watches.on_broken_line(error, now)
        else:
            state.fail(error, now, Stage.OPEN if stage is Stage.OPEN else Stage.DECIDE)

    def _on_version_lost(self, error: ApiError, now: float) -> None:
        """List again after 410, or if the server does not know the version yet. API concepts, "410 Gone"."""
        state = self.state
        if state.stage is Stage.LIST and self._relist.between_pages:
            # The snapshot expired between two pages. A list in one body cannot expire.
            self._relist.begin(paged=False)
            message = "the list expired between two pages: listing without pages"
            state.recover(error, now, Stage.LIST, kind="expired list", message=message)
            return
        state.position.lost = True
        state.set_list_reason("expired")
        if state.pace.at_rest(now):
            state.recover(error, now, Stage.DECIDE, kind="expired", message=f"{error}: listing again")
            return
        if state.pace.is_first("expired"):
            # The server answers again, after an outage. The shortest delay spreads the lists of many clients.
            state.pace.shorten_backoff()
        state.fail(error, now, Stage.DECIDE)

    def _on_stream_refused(self, error: ApiError, now: float) -> None:
        state = self.state
        if error.status in (400, 405, 422) and not self._relist:
            state.report(error)
            self._fall_back_to_pages(now, f"{error.status} {error.reason}".strip())
            state.honor_retry_after(error, now)
            return
        # Pages serve clients that may list but not watch, and clients behind a proxy that breaks streams.
        state.prefer_list = error.status not in (401, 404, 429)
        if error.status != 429:
            self._refused = 0
        else:
            self._refused_at = self._refused_at if self._refused else now
            self._refused += 1
        state.fail(error, now, Stage.DECIDE)
