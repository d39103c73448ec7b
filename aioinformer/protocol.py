"""The list/watch protocol: what to ask the server next, and what its answers mean.

Rule 1. Whatever decides what to ask next lives here, and nothing else does: no socket, no clock, no chance, no await.
        `next_step()` says what to do, `receive()` is told what came of it; time is an argument.
Rule 2. It never ends and never gives up. There is a next step in every state, for every answer in every state.
Rule 3. It is never hot. Whatever goes wrong costs a delay of the one backoff, and nothing is asked before the time
        that the server named. What may happen at once may happen at once *one time* (`_pardon`): the second of its
        kind in a row costs a delay.
Rule 4. It is never silent. Whatever goes wrong shows in `phase` and `reason` until the opposite is proven: a watch
        that is open.

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
`_request` tells whether that step is still to be sent, or its answer is being read.

Sources: API concepts ("Efficient detection of changes", "Streaming lists", "410 Gone", "Retrieving large results sets
in chunks"), KEP-3157; client-go's Reflector, from which this differs where the docs say so.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from aioinformer.backoff import Backoff
from aioinformer.deltas import DeletedFinalStateUnknown, Delta, DeltaType
from aioinformer.errors import ApiError, DecodeError, Expired, ResourceVersionTooLarge
from aioinformer.options import ListOptions, ReflectorOptions
from aioinformer.quarantine import Quarantine
from aioinformer.retry_after import MAX_RETRY_AFTER
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
from aioinformer.versions import is_older, version_number
from aioinformer.wire import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.objects import Record

#: A watch that lives shorter than this is suspect, whatever it brought.
SHORT_WATCH = 1.0
#: After a watch of this length, a version that is lost is news again.
LONG_WATCH = 10.0
#: So many watches in a row that fail to open, or end at once with nothing, make the version suspect.
MAX_VAIN_WATCHES = 4
#: After so long a server that could not stream lists is asked again whether it can.
STREAMING_PROBE = 600.0

_PHASES = {401: Phase.UNAUTHORIZED, 403: Phase.FORBIDDEN, 404: Phase.NOT_FOUND, 405: Phase.NOT_ALLOWED}
_DELTA_TYPES = {ADDED: DeltaType.ADDED, MODIFIED: DeltaType.UPDATED, DELETED: DeltaType.DELETED}


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
    ) -> None:
        self.options = options or ReflectorOptions()
        self.phase = Phase.SYNCING
        self.reason = ""
        self.version = ""
        self.quarantine = Quarantine()
        self._random = random
        self._known = known
        self._tell = tell
        self._backoff = Backoff(self.options.backoff, random=random)
        self._stage = _Stage.DECIDE
        self._reading = False
        self._not_before = 0.0
        self._pardoned: set[str] = set()
        #: Where the line came that could not be read.
        self._broken_at = ""
        #: The server does not have the version that we hold: ask without one.
        self._without_version = False
        #: The server's versions went backwards: equal versions prove nothing.
        self._compare = False
        self._streaming_from = 0.0
        self._prefer_list = False
        self._continue = ""
        self._unpaged = False
        #: What the list or the stream under way has brought.
        self._incoming: dict[str, Record] = {}
        self._progress_at = 0.0
        self._opened_at = 0.0
        self._events_in_watch = 0
        self._vain_watches = 0

    # What to do next.

    def next_step(self, now: float) -> Step:
        """What to do, given that it is `now`; asking again without an answer gives the same step."""
        if now < self._not_before:
            return Wait(self._not_before)
        if self._reading:
            streaming = self._stage is _Stage.STREAM
            until = self._progress_at + self.options.stream_patience if streaming else None
            return Read(until, initial=self._stage is not _Stage.WATCH)
        if self._stage is _Stage.DECIDE:
            self._decide(now)
        match self._stage:
            case _Stage.STREAM:
                return Send(self._stream_options(), initial=True, compare=self._compare)
            case _Stage.LIST:
                return Send(self._page_options(), initial=True, compare=self._compare)
            case _:
                return Send(self._watch_options())

    def _decide(self, now: float) -> None:
        self._incoming = {}
        self._continue = ""
        self._unpaged = False
        self.quarantine.clear()
        stream = self.options.streaming_list and now >= self._streaming_from and not self._prefer_list
        self._prefer_list = False
        self._go(_Stage.STREAM if stream else _Stage.LIST)

    def _stream_options(self) -> ListOptions:
        return ListOptions(
            watch=True,
            send_initial_events=True,
            resource_version_match="NotOlderThan",
            resource_version="" if self._without_version else self.version,
            allow_watch_bookmarks=True,
            timeout_seconds=self._watch_timeout(),
        )

    def ahead(self, token: str) -> ListOptions | None:
        """The request that will follow this page, if all goes well; it may be sent now. None if there is none."""
        listing = self._stage is _Stage.LIST and self._reading
        return self._continued(token) if listing and token != self._continue else None

    def _continued(self, token: str) -> ListOptions:
        return ListOptions(limit=self.options.page_size, continue_token=token)

    def _page_options(self) -> ListOptions:
        if self._continue:  # API concepts: a continued list must not name a version again
            return self._continued(self._continue)
        version = ""
        if self.options.list_resource_version == "0" and not self._without_version:
            version = self.version or "0"
        return ListOptions(limit=0 if self._unpaged else self.options.page_size, resource_version=version)

    def _watch_options(self) -> ListOptions:
        return ListOptions(
            watch=True,
            resource_version=self.version,
            allow_watch_bookmarks=True,
            timeout_seconds=self._watch_timeout(),
        )

    def _watch_timeout(self) -> int:
        return int(self.options.min_watch_timeout * (1 + self._random()))

    # What it means.

    def receive(self, answer: Answer, now: float) -> list[Conclusion]:
        """Takes in what came of the last step, and returns what is now known."""
        match answer:
            case Watched(events):
                return self._events(events, now)
            case Listed(items):
                for item in items:
                    self._take_in(item)
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
        return []

    def _accepted(self, now: float) -> None:
        self._reading = True
        self._opened_at = self._progress_at = now
        self._events_in_watch = 0
        if self._stage is _Stage.OPEN:
            self._go(_Stage.WATCH)
            self._healthy()

    # Lists.

    def _take_in(self, item: Record | DecodeError) -> bool:
        """Notes an object of a list; whether the list had not shown it before."""
        if isinstance(item, DecodeError):
            new = self._skip(item)
            kept = self._known(item.key) if item.key else None
            if kept is not None:  # it exists, so it must not look deleted
                self._incoming.setdefault(item.key, kept)
            return new
        new = item.key not in self._incoming
        self._incoming[item.key] = item
        self.quarantine.release(item.key)
        return new

    def _page_ended(self, version: str, token: str, now: float) -> list[Conclusion]:
        self._reading = False
        if not token:
            return self._replaced(version, _Stage.OPEN, now)
        if token == self._continue:
            # Nothing is known of what this list did not come to: it must not look deleted.
            self._fail(DecodeError("the server hands out the same page again and again"), now, _Stage.DECIDE)
        self._continue = token
        return []

    def _replaced(self, version: str, then: _Stage, now: float) -> list[Conclusion]:
        if not version:
            self._prefer_list = then is _Stage.WATCH
            self._fail(DecodeError("the list has no resourceVersion"), now, _Stage.DECIDE)
            return []
        if is_older(version, self.version) and not self._compare:
            self._rewound(version, now)
            return []
        records = list(self._incoming.values())
        self._incoming = {}
        self._compare = self._without_version = False
        self._vain_watches = 0
        self.version = version
        self._go(then)
        return [Replaced(records, version)]

    # Watches.

    def _events(self, events: list[WatchEvent], now: float) -> list[Conclusion]:
        self._events_in_watch += len(events)
        conclusions: list[Conclusion] = []
        if self._stage is _Stage.STREAM:
            taken = self._initial_events(events, now, conclusions)
            events = events[taken:]
        if self._stage is _Stage.WATCH and events:
            self._ongoing_events(events, now, conclusions)
        return conclusions

    def _initial_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> int:
        """Takes in the beginning of a streaming list; returns how many of the events belong to it."""
        for position, event in enumerate(events, 1):
            if event.type in (ADDED, MODIFIED):
                item = event.error if event.record is None else event.record
                if item is not None and not isinstance(item, ApiError) and self._take_in(item):
                    self._progress_at = now
            elif event.type == DELETED and (key := _deleted_key(event)):
                self._incoming.pop(key, None)
                self.quarantine.release(key)
            elif event.type == ERROR and event.error is not None:
                self._over(now)
                self._failed(event.error, now)
                return len(events)
            elif event.type == BOOKMARK and event.initial_events_end:
                conclusions += self._replaced(event.version, _Stage.WATCH, now)
                if self._stage is _Stage.WATCH:
                    self._healthy()
                return position
            elif event.type == BOOKMARK and event.error is None:
                # KEP-3157: no bookmark comes before the one that ends the initial events.
                self._no_streaming(now, "an ordinary bookmark came first")
                return len(events)
        if now - self._progress_at >= self.options.stream_patience:
            self._no_streaming(now, "no new object for too long")
        return len(events)

    def _no_streaming(self, now: float, why: str) -> None:
        self._tell(f"the server does not stream lists ({why}): listing in pages")
        self._streaming_from = now + STREAMING_PROBE
        self._brake(now)
        self._go(_Stage.DECIDE)

    def _ongoing_events(self, events: list[WatchEvent], now: float, conclusions: list[Conclusion]) -> None:
        deltas: list[Delta[Record]] = []
        number = version_number(self.version)
        failure: ApiError | DecodeError | None = None
        for event in events:
            record, delta = event.record, None
            if record is not None and event.error is None:
                version = record.resource_version
                delta = Delta(_DELTA_TYPES[event.type], record)
            elif event.type == BOOKMARK:
                version = event.version
            elif event.type == ERROR:
                failure = event.error
                break
            elif event.type == DELETED and (key := _deleted_key(event)):
                # A deletion whose last state cannot be shown: what was cached last is shown in its place.
                version = record.resource_version if record is not None else ""
                delta = Delta(DeltaType.DELETED, DeletedFinalStateUnknown(key, self._known(key)))
            else:
                self._pass_over(event)
                continue
            current = version_number(version)
            if 0 <= current < number:
                self._rewound(version, now)
                break
            if version:
                self.version, number = version, current
            if delta is not None:
                deltas.append(delta)
                if self.quarantine and self.quarantine.release(delta.object.key):
                    self._healthy()
        conclusions.append(Changed(deltas, self.version))
        if failure is not None:
            self._over(now)
            self._failed(failure, now)

    def _pass_over(self, event: WatchEvent) -> None:
        if isinstance(event.error, DecodeError):
            self._skip(event.error)
            self._healthy()
        else:
            self._tell(f"an event of unknown type {event.type[:40]!r} is skipped")

    def _skip(self, error: DecodeError) -> bool:
        new = self.quarantine.add(error)
        if new:
            self._tell(f"{error.key or 'an object without a readable name'} is skipped: {error}")
        return new

    def _rewound(self, version: str, now: float) -> None:
        # A server restored from a backup gives versions out a second time: equal ones no longer prove equality.
        self._without_version = self._compare = True
        error = DecodeError(f"the server's versions went back from {self.version} to {version}")
        if self._pardon("rewound", now):
            self._tell(f"{error}: listing again")
            self._go(_Stage.DECIDE)
        else:
            self._fail(error, now, _Stage.DECIDE)

    # What ends them.

    def _over(self, now: float) -> None:
        """Whatever was being read has ended; what it proved is noted."""
        self._reading = False
        if self._stage is not _Stage.WATCH:
            return
        lived = now - self._opened_at
        if self._events_in_watch:
            self._vain_watches = 0
            self._pardoned.discard("idle")
        if lived >= SHORT_WATCH:
            self._pardoned -= {"short", "line"}
        if lived >= LONG_WATCH:
            self._pardoned -= {"expired", "expired list", "rewound"}

    def _ended(self, now: float) -> None:
        lived = now - self._opened_at
        if self._stage is _Stage.WATCH:
            self._go(_Stage.OPEN)
            if lived >= SHORT_WATCH:
                return
            # A version that left the window without a 410 looks like this for ever; only a list ends it.
            if not self._events_in_watch and self._in_vain():
                self._go(_Stage.DECIDE)
            if not self._pardon("short", now):
                self._fail(DecodeError("the server ends watches as soon as they are open"), now, self._stage)
            return
        self._go(_Stage.DECIDE)
        if not (lived < SHORT_WATCH and self._pardon("short", now)):
            self._prefer_list = True
            self._fail(DecodeError("the list ended before it was complete"), now, _Stage.DECIDE)

    def _idled(self, seconds: float, now: float) -> None:
        error = DecodeError(f"not a byte came for {seconds:g} s")
        if self._stage is not _Stage.WATCH:
            self._prefer_list = self._stage is _Stage.STREAM  # a stream whose end is never told is idle for ever
            self._fail(error, now, _Stage.DECIDE)
            return
        # A server restored from a backup is silent until it has given out anew all the versions that it lost.
        stage = _Stage.DECIDE if self._in_vain() else _Stage.OPEN
        if self._pardon("idle", now):
            self._tell(f"{error}: opening the watch again")
            self._go(stage)
        else:
            self._fail(error, now, stage)

    def _failed(self, error: Exception, now: float) -> None:
        listing = self._stage in (_Stage.STREAM, _Stage.LIST)
        if isinstance(error, Expired | ResourceVersionTooLarge):
            self._version_lost(error, now)
        elif isinstance(error, ApiError):
            self._refused(error, now)
        elif listing:
            self._fail(error, now, _Stage.DECIDE)
        elif isinstance(error, DecodeError):
            self._go(_Stage.OPEN)
            again = self.version == self._broken_at
            self._broken_at = self.version
            if not again and self._pardon("line", now):
                self._tell(f"{error}: reading again from version {self.version}")
            else:
                self._fail(error, now, _Stage.DECIDE)
        else:
            self._fail(error, now, _Stage.OPEN)

    def _version_lost(self, error: ApiError, now: float) -> None:
        """410, or a version from the future: what we hold is no basis. API concepts, "410 Gone"."""
        if self._stage is _Stage.LIST and self._continue:
            # The snapshot left the window between two pages: once more, in one body, which cannot expire.
            self._incoming, self._continue, self._unpaged = {}, "", True
            self.quarantine.clear()
            if self._pardon("expired list", now):
                self._tell("the list expired between two pages: listing without pages")
                self._hold(error, now)
            else:
                self._fail(error, now, _Stage.LIST)
            return
        self._without_version = True
        if self._backoff.at_rest(now) and self._pardon("expired", now):
            self._tell(f"{error}: listing again")
            self._hold(error, now)
            self._go(_Stage.DECIDE)
        else:
            self._fail(error, now, _Stage.DECIDE)

    def _refused(self, error: ApiError, now: float) -> None:
        listing = self._stage in (_Stage.STREAM, _Stage.LIST)
        if self._stage is _Stage.STREAM and error.status in (400, 422) and not self._incoming:
            self._no_streaming(now, f"{error.status} {error.reason}".strip())
            self._hold(error, now)
        elif self._stage is _Stage.STREAM:
            # Whoever may list but not watch is served by pages, and so is whoever has a proxy that breaks streams.
            self._prefer_list = error.status not in (401, 404, 429)
            self._fail(error, now, _Stage.DECIDE)
        elif not listing and (error.status == 429 or (self._stage is _Stage.OPEN and error.retry_after)):
            self._fail(error, now, _Stage.OPEN)  # busy, not wrong: a list would be a burden more
        elif self._stage is _Stage.OPEN and error.status not in (403, 405) and not self._in_vain():
            self._fail(error, now, _Stage.OPEN)
        else:
            # Without watches, pages from time to time are better than nothing. And an error within a watch says that
            # an object cannot be told (unreadable in storage, then deleted unsafely): a list shows what is left.
            self._prefer_list = self._stage is _Stage.OPEN
            self._fail(error, now, _Stage.DECIDE)

    # How it goes on.

    def _go(self, stage: _Stage) -> None:
        self._stage = stage
        if stage is not _Stage.WATCH:
            self._reading = False

    def _fail(self, error: Exception, now: float, stage: _Stage) -> None:
        self._not_before = now + self._backoff.next(now)
        self._brake(now)
        self._hold(error, now)
        status = error.status if isinstance(error, ApiError) else 0
        self._show(_PHASES.get(status, Phase.BACKING_OFF), str(error))
        self._go(stage)

    def _hold(self, error: Exception, now: float) -> None:
        """RFC 9110, 10.2.3: nothing is asked before the time that the server named."""
        if seconds := getattr(error, "retry_after", None):
            self._not_before = max(self._not_before, now + min(seconds, MAX_RETRY_AFTER))
            self._backoff.extend(self._not_before)
            self._show(Phase.BACKING_OFF, str(error))

    def _in_vain(self) -> bool:
        """Counts a watch that brought nothing; True if there were so many in a row that only a list can help."""
        self._vain_watches = (self._vain_watches + 1) % MAX_VAIN_WATCHES
        return self._vain_watches == 0

    def _pardon(self, kind: str, now: float) -> bool:
        """Whether this may happen at once: the first of its kind since it was last proven well."""
        if kind in self._pardoned:
            return False
        self._pardoned.add(kind)
        self._brake(now)
        return True

    def _brake(self, now: float) -> None:
        """Pardons of several kinds may meet: together they must not make the server hot either."""
        self._not_before = max(self._not_before, self._backoff.brake(now))

    def _healthy(self) -> None:
        if self.quarantine:
            self._show(Phase.DEGRADED, str(self.quarantine))
        else:
            self._show(Phase.WATCHING, "")

    def _show(self, phase: Phase, reason: str) -> None:
        self.phase, self.reason = phase, reason


def _deleted_key(event: WatchEvent) -> str:
    """Whose deletion it is, as far as that could be read."""
    if event.record is not None:
        return event.record.key
    return event.error.key if isinstance(event.error, DecodeError) else ""
