"""The list/watch protocol: what to ask the server next, and what its answers mean.

Rule 1. Whatever decides what to ask next lives here, and nothing else does: no socket, no clock, no chance, no await.
        `next_step()` says what to do, `receive()` is told what came of it; time is an argument.
Rule 2. It never ends and never gives up. There is a next step in every state, for every answer in every state.
Rule 3. It is never hot. Whatever goes wrong costs a delay of the one backoff, and nothing is asked before the time
        that the server named. What may happen at once may happen at once *one time*: the second of its kind in a row
        costs a delay (`pace`).
Rule 4. It is never silent. Whatever costs a delay shows in `phase` and `reason` until the opposite is proven: a watch
        that is open. What is pardoned is told to the log, unless it is an answer that ended cleanly.

The stages:

```
        ┌──────────────── the cache is no basis any more (410, rewound version, broken lines) ───────────────┐
        ▼                                                                                                    │
    DECIDE ──> STREAM ── initial-events-end ──> WATCH <── accepted ── OPEN <── delay ── watch ended or failed ┤
        │        │ refused, ignored               ▲                    ▲                                     │
        │        ▼                                └────────────────────┼─────────────────────────────────────┘
        └──────> LIST ──────────── last page ──────────────────────────┘
```

A failure in STREAM or LIST leads back to DECIDE, by way of a delay. Each stage is what the *next* step serves;
`_reading` tells whether its request was sent, and the answer is being read.

Sources: API concepts ("Efficient detection of changes", "Streaming lists", "410 Gone", "Retrieving large results sets
in chunks"), KEP-3157; client-go's Reflector, from which this differs where the docs say so.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from aioinformer.errors import ApiError, DecodeError, Expired, ResourceVersionTooLarge
from aioinformer.incoming_list import IncomingList
from aioinformer.options import ReflectorOptions
from aioinformer.pace import Pace
from aioinformer.paging import Paging
from aioinformer.quarantine import Quarantine
from aioinformer.retry_with_deadline import RetryWithDeadline
from aioinformer.state import Phase
from aioinformer.steps import (
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
    Read,
    Replaced,
    Send,
    Step,
    Wait,
    Watched,
)
from aioinformer.versions import is_older
from aioinformer.watch_reading import WatchReader
from aioinformer.watch_record import WatchRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.objects import Record
    from aioinformer.options import ListOptions
    from aioinformer.wire import WatchEvent

#: After so long a server that could not stream lists is asked again whether it can.
STREAMING_PROBE = 600.0

_PHASES = {401: Phase.UNAUTHORIZED, 403: Phase.FORBIDDEN, 404: Phase.NOT_FOUND, 405: Phase.NOT_ALLOWED}


class _Stage(Enum):
    DECIDE = "decide"
    STREAM = "stream"
    LIST = "list"
    OPEN = "open"
    WATCH = "watch"


class ListWatchProtocol:
    """Decides for one collection of one server.

    Args:
        options: how to list and watch.
        random: numbers in [0, 1): spreads delays and watch time-outs.
        known: the cached record of a key, for objects whose last version does not decode.
        tell: takes a line for the log for whatever is decided out of the ordinary.
        report: takes each error with which a list or a watch ended: an answer, within a stream, or concluded here.
        quarantine: remembers the objects that do not decode.

    Attributes:
        phase: what to show.
        reason: why.
        version: where the next watch starts: the version of the last event, bookmark or list taken in.
        quarantine: the objects that do not decode.
    """

    def __init__(
        self,
        options: ReflectorOptions | None = None,
        *,
        random: Callable[[], float],
        known: Callable[[str], Record | None] = lambda key: None,
        tell: Callable[[str], None] = lambda line: None,
        report: Callable[[Exception], None] = lambda error: None,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.options = options or ReflectorOptions()
        self.phase = Phase.SYNCING
        self.reason = ""
        self.version = ""
        self.quarantine = Quarantine() if quarantine is None else quarantine
        self._random = random
        self._tell = tell
        self._report = report
        self._reported: Exception | None = None
        self._pace = Pace(self.options.backoff, random=random)
        self._stage = _Stage.DECIDE
        self._reading = False
        #: The server does not have the version that we hold: ask without one.
        self._without_version = False
        #: The server's versions went backwards: equal versions prove nothing.
        self._compare = False
        self._streaming_from = 0.0
        self._prefer_list = False
        #: What the list or the stream under way has brought.
        self._incoming = IncomingList(self.quarantine, tell)
        self._progress_at = 0.0
        self._paging = Paging(self.options, self._incoming)
        self._reader = WatchReader(self._incoming, self.quarantine, known, tell)
        self._watches = WatchRecord()
        self._internal_errors = RetryWithDeadline(
            lambda error: isinstance(error, ApiError) and error.status == 500,
            self.options.max_internal_error_retry_duration,
            self.options.backoff.reset_after,
        )

    @property
    def attempts(self) -> int:
        """How many attempts in a row have failed; 0 while all is well."""
        return self._pace.attempts

    @property
    def retry_at(self) -> float | None:
        """Before when nothing is asked, after a failure; None while all is well. It may be past."""
        return self._pace.not_before if self._pace.attempts else None

    # What to do next.

    def next_step(self, now: float) -> Step:
        """What to do, given that it is `now`; asking again without an answer gives the same step."""
        if now < self._pace.not_before:
            return Wait(self._pace.not_before)
        if self._reading:
            if self._stage is _Stage.WATCH:
                return Read()
            streaming = self._stage is _Stage.STREAM
            patience = self.options.stream_patience if streaming else self.options.idle_timeout
            return Read(self._progress_at + patience, initial=True)
        if self._stage is _Stage.DECIDE:
            self._decide(now)
        match self._stage:
            case _Stage.STREAM:
                return Send(
                    self.options.stream(self._held() or "", self._random()), initial=True, compare=self._compare
                )
            case _Stage.LIST:
                return Send(self._paging.request(self._held()), initial=True, compare=self._compare)
            case _:
                return Send(self.options.watch(self.version, self._random()))

    def _decide(self, now: float) -> None:
        self._incoming.begin()
        self._paging.begin()
        stream = self.options.streaming_list and now >= self._streaming_from and not self._prefer_list
        self._prefer_list = False
        self._go(_Stage.STREAM if stream else _Stage.LIST)

    def ahead(self, token: str) -> ListOptions | None:
        """The request that will follow this page, if all goes well; it may be sent now. None if there is none."""
        listing = self._stage is _Stage.LIST and self._reading
        return self._paging.ahead(token) if listing else None

    def _held(self) -> str | None:
        """The version that a list may be asked by: "" if there is none, None if the server does not have it."""
        return None if self._without_version else self.version

    # What it means.

    def receive(self, answer: Answer, now: float) -> list[Conclusion]:
        """Takes in what came of the last step, and returns what is now known."""
        match answer:
            case Watched(events):
                return self._events(events, now)
            case Listed(items):
                self._listed(items, now)
            case PageEnded(version, token):
                return self._page_ended(version, token, now)
            case Accepted():
                self._accepted(now)
            case Ended():
                self._over(now)
                self._ended(now)
            case Failed(error):
                # What begins well and then breaks may be a proxy that cannot stream: pages are next.
                self._prefer_list = self._reading and self._stage is _Stage.STREAM
                self._over(now)
                self._failed(error, now)
            case Idled(seconds):
                self._over(now)
                self._idled(seconds, now)
            case Elapsed():
                if self._reading and self._stage is _Stage.STREAM:
                    self._no_streaming(now, "no new object for too long")
                elif self._reading and self._stage is _Stage.LIST:
                    self._idled(self.options.idle_timeout, now)
        return []

    def _accepted(self, now: float) -> None:
        self._reading = True
        self._progress_at = now
        self._watches.opened(now)
        self._paging.page_begins()
        if self._stage is _Stage.OPEN:
            self._go(_Stage.WATCH)
            self._healthy()

    # Lists.

    def _listed(self, items: list[Record | DecodeError], now: float) -> None:
        if self._paging.take(items):
            self._progress_at = now
        elif self._stage is _Stage.LIST and now - self._progress_at >= self.options.idle_timeout:
            self._idled(self.options.idle_timeout, now)

    def _page_ended(self, version: str, token: str, now: float) -> list[Conclusion]:
        self._reading = False
        if not token:
            return self._replaced(version, _Stage.OPEN, now)
        if self._paging.is_circular(token):
            # Nothing is known of what this list did not come to: it must not look deleted.
            self._fail(DecodeError("the server hands out the same page again and again"), now, _Stage.DECIDE)
        elif self._paging.is_empty():
            # API concepts, "limit": all objects of a page may have been filtered out. For ever, if it is not meant.
            self._pace.limit_burst(now)
        self._paging.turn(token)
        return []

    def _replaced(self, version: str, then: _Stage, now: float) -> list[Conclusion]:
        if not version:
            self._prefer_list = then is _Stage.WATCH
            self._fail(DecodeError("the list has no resourceVersion"), now, _Stage.DECIDE)
            return []
        if is_older(version, self.version) and not (self._compare and self._without_version):
            self._rewound(version, now)
            return []
        records = self._incoming.end()
        self._without_version = False
        # What is cached of an object that did not decode is of before the versions went back, and may be for long.
        self._compare = self._compare and bool(self.quarantine)
        self._watches.listed()
        self.version = version
        self._go(then)
        return [Replaced(records, version)]

    # Watches.

    def _events(self, events: list[WatchEvent], now: float) -> list[Conclusion]:
        self._watches.took(len(events))
        conclusions: list[Conclusion] = []
        if self._stage is _Stage.STREAM:
            events = self._initial_events(events, now, conclusions)
        if self._stage is _Stage.WATCH and events:
            self._ongoing_events(events, now, conclusions)
        return conclusions

    def _initial_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> list[WatchEvent]:
        """Takes in the beginning of a streaming list; returns the events that do not belong to it."""
        said = self._reader.initial(events)
        if said.news:
            self._progress_at = now
        if said.failure is not None:
            self._over(now)
            self._failed(said.failure, now)
        elif said.complete:
            conclusions += self._replaced(said.version, _Stage.WATCH, now)
            if self._stage is _Stage.WATCH:
                self._healthy()
        elif said.ordinary_bookmark:
            self._no_streaming(now, "an ordinary bookmark came first")
        elif now - self._progress_at >= self.options.stream_patience:
            self._no_streaming(now, "no new object for too long")
        return said.rest

    def _ongoing_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> None:
        said = self._reader.ongoing(events, self.version)
        self.version = said.version
        if said.quarantined:
            self._healthy()
        conclusions.append(Changed(said.deltas, said.version))
        if said.older:
            self._rewound(said.older, now)
        elif said.failure is not None:
            self._over(now)
            self._failed(said.failure, now)

    def _no_streaming(self, now: float, why: str) -> None:
        self._tell(f"the server does not stream lists ({why}): listing in pages")
        self._streaming_from = now + STREAMING_PROBE
        self._pace.limit_burst(now)
        self._go(_Stage.DECIDE)

    def _rewound(self, version: str, now: float) -> None:
        # A server restored from a backup gives versions out a second time: equal ones no longer prove equality.
        self._without_version = self._compare = True
        error = DecodeError(f"the server's versions went back from {self.version} to {version}")
        self._go_on(error, now, _Stage.DECIDE, kind="rewound", told=f"{error}: listing again")

    # What ends them.

    def _over(self, now: float) -> None:
        """Whatever was being read has ended; what it proved is noted."""
        self._reading = False
        if self._stage is _Stage.WATCH:
            self._watches.over(now, self._pace)

    def _ended(self, now: float) -> None:
        if self._stage is _Stage.WATCH:
            self._go(_Stage.OPEN)
            if not self._watches.is_short(now):
                return
            # A version that left the window without a 410 looks like this for ever; only a list ends it.
            if self._watches.brought_nothing():
                if self._watches.count_fruitless():
                    self._go(_Stage.DECIDE)
            if not self._pace.allow_immediate("short", now):
                self._fail(DecodeError("the server ends watches as soon as they are open"), now, self._stage)
            return
        self._go(_Stage.DECIDE)
        if self._watches.is_short(now):
            if self._pace.allow_immediate("short", now):
                return
        self._prefer_list = True
        self._fail(DecodeError("the list ended before it was complete"), now, _Stage.DECIDE)

    def _idled(self, seconds: float, now: float) -> None:
        what = "event" if self._stage is _Stage.WATCH else "new object"
        error = DecodeError(f"no {what} came for {seconds:g} s")
        if self._stage is not _Stage.WATCH:
            self._prefer_list = self._stage is _Stage.STREAM  # a stream whose end is never told is idle for ever
            self._fail(error, now, _Stage.DECIDE)
            return
        # A server restored from a backup is silent until it has given out anew all the versions that it lost.
        stage = _Stage.DECIDE if self._watches.count_fruitless() else _Stage.OPEN
        self._go_on(error, now, stage, kind="idle", told=f"{error}: opening the watch again")

    def _failed(self, error: Exception, now: float) -> None:
        self._reported = error
        self._report(error)
        listing = self._stage in (_Stage.STREAM, _Stage.LIST)
        if isinstance(error, Expired | ResourceVersionTooLarge):
            self._version_lost(error, now)
        elif isinstance(error, ApiError):
            self._refused(error, now)
        elif listing:
            self._fail(error, now, _Stage.DECIDE)
        elif isinstance(error, DecodeError):
            self._go(_Stage.OPEN)
            if self._watches.count_break(self.version):
                self._fail(error, now, _Stage.DECIDE)
            elif self._pace.allow_immediate("line", now):
                self._tell(f"{error}: reading again from version {self.version}")
            else:
                self._fail(error, now, _Stage.DECIDE)
        else:
            self._fail(error, now, _Stage.OPEN)

    def _version_lost(self, error: ApiError, now: float) -> None:
        """410, or a version from the future: what we hold is no basis. API concepts, "410 Gone"."""
        if self._stage is _Stage.LIST and self._paging.between_pages:
            # The snapshot left the window between two pages: once more, in one body, which cannot expire.
            self._incoming.begin()
            self._paging.begin(paged=False)
            told = "the list expired between two pages: listing without pages"
            self._go_on(error, now, _Stage.LIST, kind="expired list", told=told)
            return
        self._without_version = True
        if self._pace.at_rest(now):
            self._go_on(error, now, _Stage.DECIDE, kind="expired", told=f"{error}: listing again")
        else:
            self._fail(error, now, _Stage.DECIDE)

    def _refused(self, error: ApiError, now: float) -> None:
        match self._stage:
            case _Stage.STREAM:
                self._stream_refused(error, now)
            case _Stage.OPEN:
                self._watch_refused(error, now)
            case _Stage.WATCH:
                self._watch_broken(error, now)
            case _:
                self._fail(error, now, _Stage.DECIDE)

    def _stream_refused(self, error: ApiError, now: float) -> None:
        if error.status in (400, 422) and not self._incoming:
            self._no_streaming(now, f"{error.status} {error.reason}".strip())
            self._hold(error, now)
            return
        # Whoever may list but not watch is served by pages, and so is whoever has a proxy that breaks streams.
        self._prefer_list = error.status not in (401, 404, 429)
        self._fail(error, now, _Stage.DECIDE)

    def _watch_refused(self, error: ApiError, now: float) -> None:
        busy = error.status == 429 or error.retry_after  # and not wrong: a list would be a burden more
        if busy:
            self._fail(error, now, _Stage.OPEN)
            return
        fruitless = self._watches.count_fruitless()
        if error.status not in (403, 405) and not fruitless:
            self._fail(error, now, _Stage.OPEN)
            return
        # Without watches, pages from time to time are better than nothing.
        self._prefer_list = True
        self._fail(error, now, _Stage.DECIDE)

    def _watch_broken(self, error: ApiError, now: float) -> None:
        """An error within a watch says that an object cannot be told (unreadable in storage, then deleted unsafely): a
        list shows what is left, unless the server is busy, or such errors are known to pass."""
        retry = self._internal_errors.count_failure(error, now)
        self._fail(error, now, _Stage.OPEN if retry or error.status == 429 else _Stage.DECIDE)

    # How it goes on.

    def _go(self, stage: _Stage) -> None:
        self._stage = stage
        if stage is not _Stage.WATCH:
            self._reading = False

    def _go_on(self, error: Exception, now: float, stage: _Stage, *, kind: str, told: str) -> None:
        """Goes on at once if that is the first of its kind, after a delay if it is not."""
        if self._pace.allow_immediate(kind, now):
            self._tell(told)
            self._hold(error, now)
            self._go(stage)
        else:
            self._fail(error, now, stage)

    def _fail(self, error: Exception, now: float, stage: _Stage) -> None:
        if error is not self._reported:  # what is concluded here, rather than answered
            self._report(error)
        self._pace.delay(now)
        self._hold(error, now)
        status = error.status if isinstance(error, ApiError) else 0
        self._show(_PHASES.get(status, Phase.BACKING_OFF), str(error))
        self._go(stage)

    def _hold(self, error: Exception, now: float) -> None:
        if seconds := getattr(error, "retry_after", None):
            self._pace.hold(seconds, now)
            self._show(Phase.BACKING_OFF, str(error))

    def _healthy(self) -> None:
        self._pace.attempts = 0
        if self.quarantine:
            self._show(Phase.DEGRADED, str(self.quarantine))
        else:
            self._show(Phase.WATCHING, "")

    def _show(self, phase: Phase, reason: str) -> None:
        self.phase, self.reason = phase, reason
