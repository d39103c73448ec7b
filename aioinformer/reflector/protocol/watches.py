"""How watches open, fall silent, and end, and what follows from that.

The end of a watch is no failure, however it ends, if the watch brought anything new or lasted a second. Silence is none
either. Both only mean that the watch is opened again, at once, from the last version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.backoff import RetryWithDeadline
from aioinformer.errors import DecodeError, TransportError
from aioinformer.reflector.protocol.messages import Read, Send
from aioinformer.reflector.protocol.state import Stage
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.errors import ApiError
    from aioinformer.reflector.options import ListOptions, ReflectorOptions
    from aioinformer.reflector.protocol.state import ProtocolState


#: A watch that lasts shorter than this is short: it is a failure unless it brought something.
SHORT_WATCH = 1.0
#: After a watch of this length, errors of its kind are the first of a row again.
LONG_WATCH = 10.0
#: After so many watches in a row that are refused, or end at once with nothing, only a list can help.
MAX_FRUITLESS_WATCHES = 4
#: A quiet watch that the server does not end is given up so many seconds after its own `timeoutSeconds`.
GRACE = 30.0


def starts_nowhere(version: str) -> bool:
    """Return whether a watch at this version begins with what is there, and not with what happened since."""
    return version in ("", "0")


@dataclass(slots=True)
class WatchRecord:
    """Counts watches, one after the other.

    Attributes:
        started_at: the version that the watch starts at.
        synthetic: it starts at no version, and nothing has come yet but the ADDED events that show what is there.
        opened_at: when it was asked for.
        deadline: when the server should have ended it, with some grace.
        events: how many came so far, bookmarks included.
        fruitless: how many watches in a row were refused, or brought nothing.
        broken_at: the version after which a line could not be read last.
        silent: a watch was silent for the idle time-out, and no event has come since. If the next watch is silent, too,
            the collection is quiet.
        server_lost: the server was not reached, or failed, and nothing has shown since that it is where it was.
    """

    started_at: str = ""
    synthetic: bool = False
    opened_at: float = 0.0
    deadline: float = 0.0
    events: int = 0
    fruitless: int = 0
    broken_at: str = ""
    silent: bool = False
    server_lost: bool = False

    def begin(self, version: str, now: float, timeout: float) -> None:
        """Start the record of a watch.

        Args:
            version: that it starts at.
            now: when it was asked for.
            timeout: its `timeoutSeconds`.
        """
        self.opened_at, self.deadline, self.events = now, now + timeout + GRACE, 0
        self.start_at(version)
        self.synthetic = starts_nowhere(version)

    def start_at(self, version: str) -> None:
        """Note the version that the watch starts at: of a streaming list, its own."""
        self.started_at, self.synthetic = version, False

    def is_short(self, now: float) -> bool:
        """Return whether the answer that ends now was suspiciously short."""
        return now - self.opened_at < SHORT_WATCH

    def is_long(self, now: float) -> bool:
        """Return whether the watch lasts long enough to forgive errors."""
        return now - self.opened_at >= LONG_WATCH

    def has_moved(self, version: str) -> bool:
        """Return whether the watch, now at this version, has brought anything new."""
        return version != self.started_at

    def count_fruitless(self) -> bool:
        """Count a watch that was refused or brought nothing; return whether only a list can help."""
        self.fruitless += 1
        return self.fruitless >= MAX_FRUITLESS_WATCHES

    def count_break(self, version: str) -> bool:
        """Count a watch that broke after this version; return whether the one before it broke there, too."""
        again = version == self.broken_at
        self.broken_at = version
        return again

    def forget(self) -> None:
        """A list is complete: forget what the watches before it showed, but for their silence.

        Without versions each watch follows a list, and the one after a silent watch may be silent, too.
        """
        self.fruitless = 0
        self.server_lost = False


#: A watch whose head does not come for so long is taken for one that is open: some proxies send the head of a response
#: together with the first byte of its body. If it turns out then that the server was not reached, the next head has
#: twice as long, and so on, up to the limit of silence: what cannot connect must not look open.
HEAD_PATIENCE = 10.0


class Watches:
    """Decides what follows each watch of one collection.

    Args:
        state: of the protocol.
        options: how to watch.
        random: numbers in [0, 1): spreads the time-outs of watches.

    Attributes:
        record: of the watches so far.
        headless: the watch counts as open although the head of its response has not come yet.
        head_patience: after so many seconds without a head the next watch counts as open.
        reading: how to read on in the watch that is open.
    """

    def __init__(self, state: ProtocolState, options: ReflectorOptions, random: Callable[[], float]) -> None:
        self.record = WatchRecord()
        self.headless = False
        self.head_patience = HEAD_PATIENCE
        self.reading = Read()
        self._state = state
        self._options = options
        self._random = random
        self._timeout, self._sent_at = 0, 0.0
        self._internal_errors = RetryWithDeadline(
            lambda error: getattr(error, "status", 0) == 500,
            options.max_internal_error_retry_duration,
            options.backoff.reset_after,
        )

    # Opening.

    def stream(self, now: float) -> ListOptions:
        """Return the request for a streaming list, which goes on as a watch."""
        options = self._options.stream(self._state.position.held or "", self._random())
        self._timeout, self._sent_at = options.timeout_seconds, now
        return options

    def open(self, now: float) -> Send:
        """Return the request for a watch from the last version on."""
        options = self._options.watch(self._state.position.version, self._random())
        self._timeout, self._sent_at = options.timeout_seconds, now
        return Send(options, patience=self.head_patience)

    def begin(self) -> None:
        """Start the record of a response that may be a watch, or become one: it lasts from when it was asked for."""
        self.record.begin(self._state.position.version, self._sent_at, self._timeout)

    def follow(self) -> None:
        """Go on in a watch that is open: all is well."""
        self._state.go(Stage.WATCH)
        self._state.healthy()
        self._set_reading()

    def listed(self) -> None:
        """A list is complete: what the watches before it showed does not count any more."""
        self.record.forget()
        self.record.start_at(self._state.position.version)

    def end_silence(self) -> None:
        """Note that events came after a silence: the collection is not quiet."""
        self.record.silent = False
        self._set_reading()

    def _set_reading(self) -> None:
        # The watch after a silent one has no limit of silence, unless it has to be found out where the server is.
        silent = self.record.silent
        limited = not silent or self._is_to_check()
        until = self.record.deadline if silent else None
        self.reading = Read(until, silence=self._options.idle_timeout if limited else None)

    def _is_to_check(self) -> bool:
        # A server restored from a backup is silent until it has given out anew all the versions that it lost.
        return self.record.server_lost and self._state.position.comparable

    # Ends.

    def deny(self) -> None:
        """Take back that the watch counts as open: the server refused it, or was not reached."""
        self.headless = False
        self.head_patience = min(2 * self.head_patience, self._options.idle_timeout)
        self._state.stage = Stage.OPEN

    def ended(self, now: float, cut: TransportError | None = None) -> None:
        """The watch has ended, cleanly or by a cut connection."""
        state, record = self._state, self.record
        moved, short = record.has_moved(state.position.version), record.is_short(now)
        self.count_end(now)
        state.need_list("ended")
        if moved:
            state.pace.reset_backoff()
        if moved or not short:
            state.pace.limit_burst(now)
            if cut is not None:
                state.tell(f"{cut}: opening the watch again")
            state.go(self._again())
            return
        error = cut or DecodeError("the server ends watches as soon as they are open")
        if record.events:  # and all of them known before: once is an accident
            told = f"{error}: opening the watch again"
            state.go_on(error, now, self._again(), kind="short", told=told)
            return
        # A version that left the window without a 410 looks like this for ever; only a list ends it.
        lost = record.count_fruitless() if cut is None else False
        state.fail(error, now, Stage.DECIDE if lost else self._again())

    def count_end(self, now: float) -> None:
        """Note what the watch that ends now has proved."""
        self.headless = False
        record, pace = self.record, self._state.pace
        moved, short = record.has_moved(self._state.position.version), record.is_short(now)
        if record.events:
            record.fruitless = 0
        if moved or not short:
            pace.reset("short")
        if not short:
            pace.reset("line")
        if record.is_long(now):
            pace.reset("expired", "expired list", "rewound")
            if moved:
                pace.reset_backoff()

    def _again(self) -> Stage:
        """Where to go on after a watch. One that starts at no version does not show what was deleted meanwhile."""
        return Stage.DECIDE if starts_nowhere(self._state.position.version) else Stage.OPEN

    # Silence.

    def fell_silent(self, seconds: float, now: float) -> None:
        """Nothing came for the idle time-out. That is no failure, and costs nothing but another request."""
        state, record = self._state, self.record
        nothing = f"no event came for {seconds:g} s"
        if self._is_to_check():
            state.tell(f"{nothing} after the server was lost: asking for its version")
            stage = Stage.CHECK
        else:
            record.silent = True
            state.tell(f"{nothing}: opening the watch again")
            state.need_list("silent")
            stage = self._again()
        self.count_end(now)
        state.pace.limit_burst(now)
        state.go(stage)

    def checked(self) -> None:
        """The server is where it was, and the silence is that of the collection."""
        self.record.server_lost = False
        self.record.silent = True
        self._state.go(Stage.OPEN)

    def check_failed(self, error: Exception, now: float) -> None:
        """It is not known where the server is: the watch goes on, and is checked again if it falls silent again."""
        self._state.tell(f"the server's version is not known: {error}")
        self.record.silent = True
        self._state.pace.limit_burst(now)
        self._state.hold(error, now)
        self._state.go(Stage.OPEN)

    # Failures.

    def refused(self, error: ApiError, now: float) -> None:
        """The watch was not opened."""
        if error.status == 429 or error.retry_after:  # busy, and not wrong: a list would be a burden more
            self._state.fail(error, now, Stage.OPEN)
            return
        fruitless = self.record.count_fruitless()
        if error.status == 405:
            self.poll(now, f"no watch is served ({error})")
        elif error.status == 403 or fruitless:
            # Without watches, pages from time to time are better than nothing.
            self._state.need_list("refused")
            self._state.prefer_list = True
            self._state.fail(error, now, Stage.DECIDE)
        else:
            self._state.fail(error, now, Stage.OPEN)

    def poll(self, now: float, why: str) -> None:
        """List after a delay, again and again: no watch is served, which is no failure."""
        state = self._state
        if state.phase is not Phase.POLLING:
            state.tell(f"{why}: listing again and again")
        state.pace.delay(now)
        state.prefer_list = True
        state.list_reason = "polling"
        state.healthy(Phase.POLLING, why)
        state.go(Stage.DECIDE)

    def broke(self, error: ApiError, now: float) -> None:
        """The watch ended with an error: it says that an object cannot be shown (unreadable in storage, then deleted
        unsafely). A list shows what is left, unless the server is busy, or such errors are known to pass."""
        self._state.need_list("error")
        retry = self._internal_errors.count_failure(error, now)
        self._state.fail(error, now, Stage.OPEN if retry or error.status == 429 else Stage.DECIDE)

    def broken_line(self, error: DecodeError, now: float) -> None:
        """A line could not be read: once it is read again, then a list shows what it might have said."""
        version = self._state.position.version
        self._state.need_list("broken")
        if self.record.count_break(version):
            self._state.fail(error, now, Stage.DECIDE)
        else:
            told = f"{error}: reading again from version {version}"
            self._state.go_on(error, now, Stage.OPEN, kind="line", told=told, otherwise=Stage.DECIDE)
