"""The list/watch protocol: what to ask the server next, and what its answers mean.

Rule 1. Whatever decides what to ask next lives here, and nothing else does: no socket, no clock, no chance, no await.
        `next_step()` says what to do, `receive()` takes what came of it; time is an argument.
Rule 2. It never ends and never gives up. There is a next step in every state, for every answer in every state.
Rule 3. It is never hot. A failure costs a delay of the one backoff, and nothing is sent before the time that the
        server named. A few kinds of errors may be followed by a request at once *one time* (`pace`); and no
        combination of them makes more than three requests in two seconds.
Rule 4. It is never silent. Whatever costs a delay shows in `phase` and `reason` until the opposite is proven: a watch
        that is open, or a list where no watch is served. Errors that cost no delay are log lines.
Rule 5. The end of a watch is no failure, however it ends, if the watch brought anything new or lasted a second; nor is
        silence. Both only mean that the watch is opened again from the last version (`watches`).

The stages:

```
        ┌────────────────── the cache is no basis any more (410, lower versions, broken lines) ──────────────────┐
        ▼                                                                                                        │
    DECIDE ──> STREAM ── initial-events-end ──> WATCH <── accepted ── OPEN <── watch ended, or failed and delay ─┤
      ▲ │        │ refused, ignored               ▲                   │ ▲                                        │
      │ │        ▼                                └───────────────────┼─┼────────────────────────────────────────┤
      │ └──────> LIST ──────────── last page ─────────────────────────┼─┤                                        │
      └───────── delay (polling) <─────────────────── 405 ────────────┘ └── CHECK <── silent, server was lost ───┘
```

A failure in STREAM or LIST leads back to DECIDE, by way of a delay. Each stage is what the *next* step serves;
`reading` tells whether its request was sent, and the answer is being read (`protocol_state`). CHECK lists a single
object, to learn the server's version: a server that was restored from a backup is silent until it has passed the
version of the watch.

Sources: API concepts ("Efficient detection of changes", "Streaming lists", "410 Gone", "Retrieving large results sets
in chunks"), KEP-3157; client-go's Reflector, from which this differs where the docs say so.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from aioinformer.errors import (
    ApiError,
    DecodeError,
    Expired,
    ProcessingError,
    ResourceVersionTooLarge,
    TransportError,
)
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.protocol.changes import Ongoing, read_changes
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
from aioinformer.reflector.protocol.relist import Relist
from aioinformer.reflector.protocol.state import ProtocolState, Stage
from aioinformer.reflector.protocol.watches import HEAD_PATIENCE, Watches
from aioinformer.reflector.watch_events import ADDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.options import ListOptions
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.state import Phase
    from aioinformer.reflector.watch_events import WatchEvent

#: After so long a server that could not stream lists is asked again whether it can.
STREAMING_PROBE = 600.0


class ListWatchProtocol:
    """Decides for one collection of one server.

    Args:
        options: how to list and watch.
        random: numbers in [0, 1): spreads delays and watch time-outs.
        known: the cached record of a key, for objects whose last version does not decode.
        tell: takes a line for the log for every decision out of the ordinary.
        report: takes each error that ended a list or a watch and is a failure.
        watchable: False if the resource is known to have no watch: then it is only listed, again and again.
        quarantine: remembers the objects that do not decode.

    Attributes:
        state: where it stands.
    """

    def __init__(
        self,
        options: ReflectorOptions | None = None,
        *,
        random: Callable[[], float],
        known: Callable[[str], Record | None] = lambda key: None,
        tell: Callable[[str], None] = lambda line: None,
        report: Callable[[Exception], None] = lambda error: None,
        watchable: bool = True,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.options = options or ReflectorOptions()
        self._watchable = watchable
        self.state = state = ProtocolState(self.options.backoff, random, tell, report, quarantine)
        self._watches = Watches(state, self.options, random)
        #: What the list or the stream under way has brought.
        self._relist = Relist(self.options, state.quarantine, tell)
        self._known = known
        self._progress_at = 0.0
        self._streaming_from = 0.0

    @property
    def phase(self) -> Phase:
        """What to show."""
        return self.state.phase

    @property
    def reason(self) -> str:
        """Why."""
        return self.state.reason

    @property
    def version(self) -> str:
        """The version of the last list, event or bookmark, where the next watch starts; "" before the first."""
        return self.state.position.version

    @property
    def quarantine(self) -> Quarantine:
        """The objects that do not decode."""
        return self.state.quarantine

    @property
    def list_reason(self) -> str:
        """Why the last list was necessary, as in `ProtocolState`."""
        return self.state.list_reason

    @property
    def attempts(self) -> int:
        """How many attempts in a row have failed; 0 while all is well."""
        return self.state.pace.attempts

    @property
    def retry_at(self) -> float | None:
        """When the next request may be sent, after a failure; None while all is well. It may be past."""
        return self.state.pace.not_before if self.state.pace.attempts else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state}, {self._relist}, {self._watches.record}>"

    # What to do next.

    def next_step(self, now: float) -> Step:
        """Return what to do at `now`; calling it again without an answer in between returns the same step."""
        state = self.state
        if now < state.pace.not_before:
            return Wait(state.pace.not_before)
        if state.reading:
            if state.stage is Stage.WATCH:
                return self._watches.reading
            idle_timeout = self.options.idle_timeout
            patience = self.options.stream_patience if state.stage is Stage.STREAM else idle_timeout
            return Read(self._progress_at + patience, initial=True, silence=idle_timeout)
        if state.stage is Stage.DECIDE:
            self._decide(now)
        match state.stage:
            case Stage.STREAM:
                return Send(self._watches.stream(now), initial=True, patience=self.options.stream_patience)
            case Stage.LIST:
                return Send(self._relist.request(state.position.held), initial=True)
            case Stage.CHECK:
                return Send(self.options.probe())
            case _:
                return self._watches.open(now)

    def _decide(self, now: float) -> None:
        self._relist.begin()
        streams = self.options.streaming_list and self._watchable and now >= self._streaming_from
        self.state.go(Stage.STREAM if streams and not self.state.prefer_list else Stage.LIST)
        self.state.prefer_list = False

    def ahead(self, token: str) -> ListOptions | None:
        """Return the request that follows this page, if all goes well; it may be sent now. None if there is none."""
        listing = self.state.stage is Stage.LIST and self.state.reading
        return self._relist.ahead(token) if listing else None

    # What it means.

    def receive(self, answer: Answer, now: float) -> list[Conclusion]:
        """Take in what came of the last step, and return what is now known."""
        match answer:
            case Watched(events):
                return self._events(events, now)
            case Listed(items):
                self._listed(items, now)
            case PageEnded(version, token):
                return self._page_ended(version, token, now)
            case Accepted():
                self._accepted(now)
            case Pending():
                self._pending(now)
            case Ended():
                self._ended(now)
            case Failed(error):
                # What begins well and then breaks may be a proxy that cannot stream: pages are next.
                self.state.prefer_list = self.state.reading and self.state.stage is Stage.STREAM
                self._failed(error, now)
            case Idled(seconds):
                self._idled(seconds, now)
            case Elapsed() if self.state.reading:
                self._elapsed(now)
        return []

    def _accepted(self, now: float) -> None:
        self._watches.head_patience = HEAD_PATIENCE
        if self._watches.headless:
            self._watches.headless = False
        else:
            self._opened(now)

    def _opened(self, now: float) -> None:
        self.state.reading = True
        self._progress_at = now
        self._relist.begin_page()
        self._watches.begin()
        if self.state.stage is Stage.OPEN:
            self._watches.follow()

    def _pending(self, now: float) -> None:
        if self.state.stage is Stage.STREAM:
            self._no_streaming(now, f"no answer came for {self.options.stream_patience:g} s")
        elif self.state.stage is Stage.OPEN:
            self._opened(now)
            self._watches.headless = True

    def _elapsed(self, now: float) -> None:
        match self.state.stage:
            case Stage.STREAM:
                self._no_streaming(now, "no new object for too long")
            case Stage.WATCH:  # a quiet one, which the server should have ended
                self._watches.ended(now)
            case _:
                self._idled(self.options.idle_timeout, now)

    # Lists.

    def _listed(self, items: list[Record | DecodeError], now: float) -> None:
        if self.state.stage is Stage.CHECK:
            return
        if self._relist.take_page(items):
            self._progress_at = now
        elif self.state.stage is Stage.LIST and now - self._progress_at >= self.options.idle_timeout:
            self._idled(self.options.idle_timeout, now)

    def _page_ended(self, version: str, token: str, now: float) -> list[Conclusion]:
        self.state.reading = False
        if self.state.stage is Stage.CHECK:
            if self.state.position.is_ahead_of(version):
                self._rewound(version, "list", now)
            else:
                self._watches.checked()
            return []
        if not token:
            return self._replaced(version, Stage.OPEN, now)
        if self._relist.is_circular(token):
            # Nothing is known of what this list did not come to: it must not look deleted.
            self.state.fail(DecodeError("the server hands out the same page again and again"), now, Stage.DECIDE)
        elif self._relist.is_empty():
            # API concepts, "limit": all objects of a page may have been filtered out. For ever, if it is not meant.
            self.state.pace.limit_burst(now)
        self._relist.turn(token)
        return []

    def _replaced(self, version: str, then: Stage, now: float) -> list[Conclusion]:
        position = self.state.position
        if not version and (position.versioned or then is Stage.WATCH):
            self.state.prefer_list = then is Stage.WATCH
            self.state.fail(DecodeError("the list has no resourceVersion"), now, Stage.DECIDE)
            return []
        if position.is_ahead_of(version) and not position.doubt:
            self._rewound(version, "list", now)
            return []
        records = self._relist.end()
        position.take_list(version)
        self._watches.listed()
        if then is Stage.WATCH:
            self._watches.follow()
        elif self._watchable:
            self.state.go(then)
        else:
            self._watches.poll(now, "the resource has no watch")
        return [Replaced(records, version)]

    # Watches.

    def _events(self, events: list[WatchEvent], now: float) -> list[Conclusion]:
        conclusions: list[Conclusion] = []
        if self.state.stage is Stage.STREAM:
            events = self._initial_events(events, now, conclusions)
        if self.state.stage is Stage.WATCH and events:
            self._ongoing_events(events, now, conclusions)
        return conclusions

    def _initial_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> list[WatchEvent]:
        """Take in the beginning of a streaming list; return the events that do not belong to it."""
        said = self._relist.take_events(events)
        if said.news:
            self._progress_at = now
        if said.failure is not None:
            self._failed(said.failure, now)
        elif said.complete:
            conclusions += self._replaced(said.version, Stage.WATCH, now)
        elif said.ordinary_bookmark:
            self._no_streaming(now, "an ordinary bookmark came first")
        elif now - self._progress_at >= self.options.stream_patience:
            self._no_streaming(now, "no new object for too long")
        return said.rest

    def _ongoing_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> None:
        position = self.state.position
        if self._watches.record.synthetic:
            events = self._synthetic_events(events, conclusions)
            if not events:
                return
        record = self._watches.record
        record.events += len(events)
        if record.silent:
            self._watches.end_silence()
        said = self._changes(events, position.ordered)
        position.version, position.ordered = said.version, said.ordered
        if said.quarantined:
            self.state.healthy()
        conclusions.append(Changed(said.deltas, said.version))
        if said.older:
            self._rewound(said.older, "bookmark", now)
            return
        record.server_lost = False
        if said.failure is not None:
            self._failed(said.failure, now)

    def _changes(self, events: list[WatchEvent], ordered: bool) -> Ongoing:
        state = self.state
        return read_changes(events, state.position.version, ordered, state.quarantine, self._known, state.tell)

    def _synthetic_events(self, events: list[WatchEvent], conclusions: list[Conclusion]) -> list[WatchEvent]:
        """Take in the ADDED events with which a watch begins that starts at no version; return the events after them.

        They come in any order, and show what is there: there is no version among them to start at again.
        """
        synthetic = list(takewhile(lambda event: event.type == ADDED, events))
        said = self._changes(synthetic, ordered=False)
        if said.quarantined:
            self.state.healthy()
        conclusions.append(Changed(said.deltas))
        record = self._watches.record
        record.events += len(synthetic)  # which end no silence: they come with every such watch
        record.synthetic = len(synthetic) == len(events)
        return events[len(synthetic) :]

    def _no_streaming(self, now: float, why: str) -> None:
        self.state.tell(f"the server does not stream lists ({why}): listing in pages")
        self._streaming_from = now + STREAMING_PROBE
        self.state.pace.limit_burst(now)
        self.state.go(Stage.DECIDE)

    def _rewound(self, version: str, evidence: str, now: float) -> None:
        """The server may have been restored from a backup: list without a version, and take whatever comes."""
        error = DecodeError(f"the server's versions went back from {self.version} to {version}")
        self.state.position.rewind(evidence)
        self.state.list_reason = "restored"
        self.state.go_on(error, now, Stage.DECIDE, kind="rewound", told=f"{error}: listing again")

    # What ends them.

    def _ended(self, now: float) -> None:
        error = DecodeError("the list ended before it was complete")
        match self.state.stage:
            case Stage.WATCH:
                self._watches.ended(now)
            case Stage.CHECK:
                self._watches.check_failed(error, now)
            case _ if self._watches.record.is_short(now):
                told = f"{error}: listing again"
                self.state.prefer_list = not self.state.go_on(error, now, Stage.DECIDE, kind="short", told=told)
            case _:
                self.state.prefer_list = True
                self.state.fail(error, now, Stage.DECIDE)

    def _idled(self, seconds: float, now: float) -> None:
        error = DecodeError(f"no new object came for {seconds:g} s")
        match self.state.stage:
            case Stage.WATCH:
                self._watches.fell_silent(seconds, now)
            case Stage.CHECK:
                self._watches.check_failed(error, now)
            case stage:
                self.state.prefer_list = stage is Stage.STREAM  # a stream whose end never comes is idle for ever
                self.state.fail(error, now, Stage.DECIDE)

    def _failed(self, error: ApiError | TransportError | DecodeError | ProcessingError, now: float) -> None:
        state, watches = self.state, self._watches
        if isinstance(error, TransportError) or (isinstance(error, ApiError) and error.status >= 500):
            watches.record.server_lost = True
        if watches.headless and not (isinstance(error, TransportError) and error.sent):
            watches.deny()
        watches.headless = state.reading = False
        stage = state.stage
        if stage is Stage.WATCH and isinstance(error, TransportError):
            watches.ended(now, cut=error)
            return
        if stage is Stage.WATCH:
            watches.count_end(now)
        if stage is Stage.CHECK:
            watches.check_failed(error, now)
        elif isinstance(error, Expired | ResourceVersionTooLarge):
            self._version_lost(error, now)
        elif isinstance(error, ProcessingError):  # the cache lacks what was received: only a list shows what
            state.need_list("lacking")
            state.fail(error, now, Stage.DECIDE)
        elif isinstance(error, ApiError) and stage is Stage.WATCH:
            watches.broke(error, now)
        elif isinstance(error, ApiError) and stage is Stage.OPEN:
            watches.refused(error, now)
        elif isinstance(error, ApiError) and stage is Stage.STREAM:
            self._stream_refused(error, now)
        elif isinstance(error, DecodeError) and stage in (Stage.WATCH, Stage.OPEN):
            watches.broken_line(error, now)
        else:
            state.fail(error, now, Stage.OPEN if stage is Stage.OPEN else Stage.DECIDE)

    def _version_lost(self, error: ApiError, now: float) -> None:
        """410, or a version from the future: the cache is no basis. API concepts, "410 Gone"."""
        state = self.state
        if state.stage is Stage.LIST and self._relist.between_pages:
            # The snapshot left the window between two pages: once more, in one body, which cannot expire.
            self._relist.begin(paged=False)
            told = "the list expired between two pages: listing without pages"
            state.go_on(error, now, Stage.LIST, kind="expired list", told=told)
            return
        state.position.lost = True
        state.need_list("expired")
        if state.pace.at_rest(now):
            state.go_on(error, now, Stage.DECIDE, kind="expired", told=f"{error}: listing again")
        else:
            state.fail(error, now, Stage.DECIDE)

    def _stream_refused(self, error: ApiError, now: float) -> None:
        state = self.state
        if error.status in (400, 405, 422) and not self._relist:
            state.report(error)
            self._no_streaming(now, f"{error.status} {error.reason}".strip())
            state.hold(error, now)
            return
        # A client that may list but not watch is served by pages, and so is one behind a proxy that breaks streams.
        state.prefer_list = error.status not in (401, 404, 429)
        state.fail(error, now, Stage.DECIDE)
