"""Watches: how they are opened, how they end, and which stage follows.

The end of a watch is not a failure, however it ends, if the watch brought an event that was new or lasted a second.
Silence is not a failure either. In both cases, the watch is opened again immediately, from the last version.

A silent watch may hang, and so may the next one, while all other requests are answered. Then the cache is not fresh,
although a watch is open: there is a doubt (`ProtocolState.doubt`). It begins in two cases:

- A server that has sent bookmarks regularly is silent for the idle timeout. The cache has been fresh up to the last
  event or bookmark. If the next watch is silent, too, a list in pages follows, and the cache is as fresh as that list.
  An event or a bookmark ends the doubt.
- A watch has no head for the idle timeout. The cache has been fresh until now. A head or an event ends the doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aioinformer.errors import DecodeError, TransportError
from aioinformer.reflector.protocol.messages import Read, Send
from aioinformer.reflector.protocol.state import Stage
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.errors import ApiError
    from aioinformer.reflector.options import ListOptions, ReflectorOptions
    from aioinformer.reflector.protocol.state import ProtocolState

#: A watch that lasts less than this is a failure, unless it brought an event.
SHORT_WATCH: Final = 1.0
#: After a watch of this length, the next error of a kind is treated as the first one.
LONG_WATCH: Final = 10.0
#: After this number of watches in a row that were refused, or ended at once without an event, a list follows.
MAX_FRUITLESS_WATCHES: Final = 4
#: A quiet watch that the server does not end is given up this number of seconds after its `timeoutSeconds`.
GRACE: Final = 30.0
#: A watch whose response has no head after this number of seconds is assumed to be open: some proxies send the head
#: together with the first byte of the body. If the server turns out to be unreachable, the limit is doubled for the
#: next watch, up to the idle timeout, so that a watch that cannot connect does not look open.
HEAD_PATIENCE: Final = 10.0
#: After this number of bookmarks, each less than the idle timeout after the one before, more are expected.
REGULAR: Final = 3


def starts_without_version(version: str) -> bool:
    """Return whether a watch from this version begins with the existing objects, and not with later changes."""
    return version in ("", "0")


class WatchRecord(msgspec.Struct):
    """What the protocol remembers of the current watch and those before it.

    Attributes:
        started_at: the version from which the watch started.
        synthetic: the watch started without a version, and has only brought the ADDED events of existing objects.
        opened_at: when the watch was requested.
        deadline: when the server should have ended the watch, including a grace period.
        events: the number of events so far, including bookmarks.
        fruitless: the number of watches in a row that were refused or brought no event.
        foreign: how many events of another kind or namespace the quarantine counted before the watch.
        broken_at: the version after which a line could not be read, the last time.
        silent: a watch brought no event for the idle timeout, and no event has come since. If the next watch is silent,
            too, the collection is quiet.
        server_lost: the server was unreachable or failed, and no response has shown its version since.
        heard_at: when the last event or bookmark came, or the list before the watch was requested.
        bookmark_at: when the last bookmark came.
        bookmarks: how many bookmarks have come, each less than the idle timeout after the one before.
    """

    started_at: str = ""
    synthetic: bool = False
    opened_at: float = 0.0
    deadline: float = 0.0
    events: int = 0
    fruitless: int = 0
    foreign: int = 0
    broken_at: str = ""
    silent: bool = False
    server_lost: bool = False
    heard_at: float = 0.0
    bookmark_at: float = float("-inf")
    bookmarks: int = 0

    def begin(self, version: str, now: float, timeout: float) -> None:
        """Start the record of a watch."""
        self.opened_at = now
        self.deadline = now + timeout + GRACE
        self.events = 0
        self.start_at(version)
        self.synthetic = starts_without_version(version)

    def start_at(self, version: str) -> None:
        """Set the version from which the watch starts: after a streaming list, the version of the list."""
        self.started_at = version
        self.synthetic = False

    def is_short(self, now: float) -> bool:
        """Return whether a response that ends now was suspiciously short."""
        return now - self.opened_at < SHORT_WATCH

    def is_long(self, now: float) -> bool:
        """Return whether the watch has lasted long enough to reset the errors before it."""
        return now - self.opened_at >= LONG_WATCH

    def has_moved(self, version: str) -> bool:
        """Return whether the watch, now at this version, has brought an event that was new."""
        return version != self.started_at

    def count_fruitless(self) -> bool:
        """Count a watch that was refused or brought no event. Return whether a list must follow."""
        self.fruitless += 1
        return self.fruitless >= MAX_FRUITLESS_WATCHES

    def count_break(self, version: str) -> bool:
        """Count a watch that broke after this version. Return whether the watch before it broke there, too."""
        again = version == self.broken_at
        self.broken_at = version
        return again

    def count_bookmark(self, now: float, idle_timeout: float) -> None:
        """Count a bookmark; several at the same time count once."""
        if now == self.bookmark_at:
            return
        if self.bookmarks < REGULAR:  # a server that has sent enough of them is expected to go on
            self.bookmarks = self.bookmarks + 1 if now - self.bookmark_at < idle_timeout else 1
        self.bookmark_at = now

    @property
    def is_regular(self) -> bool:
        """Whether the server is expected to send a bookmark within the idle timeout."""
        return self.bookmarks >= REGULAR

    def reset_failures(self) -> None:
        """Reset what failed watches have shown, because a list is complete.

        Silence is kept: in a collection without versions, each watch follows a list, and each may be silent.
        """
        self.fruitless = 0
        self.server_lost = False


class Watches:
    """Decide what follows each watch of one collection.

    Attributes:
        headless: the watch is assumed to be open, although its response has no head yet.
        head_patience: after this number of seconds without a head, the next watch is assumed to be open.
        reading: the step that reads the open watch.
    """

    __slots__ = (
        "_options",
        "_random",
        "_sent_at",
        "_state",
        "_timeout",
        "head_patience",
        "headless",
        "reading",
        "record",
    )

    def __init__(self, state: ProtocolState, options: ReflectorOptions, random: Callable[[], float]) -> None:
        self.record = WatchRecord()
        self.headless = False
        self.head_patience = HEAD_PATIENCE
        self.reading = Read()
        self._state = state
        self._options = options
        self._random = random
        self._timeout = 0
        self._sent_at = 0.0

    # Opening.

    def request_stream(self, now: float) -> ListOptions:
        """Return the request for a streaming list, which continues as a watch."""
        options = self._options.stream(self._state.position.held or "", self._random())
        self._timeout = options.timeout_seconds
        self._sent_at = now
        return options

    def request_watch(self, now: float) -> Send:
        """Return the request for a watch from the last version."""
        options = self._options.watch(self._state.position.version, self._random())
        self._timeout = options.timeout_seconds
        self._sent_at = now
        return Send(options, patience=self.head_patience)

    def begin(self) -> None:
        """Start the record of a response that is or may become a watch. Its duration counts from its request."""
        self.record.begin(self._state.position.version, self._sent_at, self._timeout)
        self.record.foreign = self._state.quarantine.foreign

    def follow(self) -> None:
        """Enter the stage of an open watch, and show a healthy phase."""
        self._state.enter(Stage.WATCH)
        self._state.show_healthy()
        self._set_reading()

    def reset_after_list(self, fresh_at: float) -> None:
        """Reset what the watches before a complete list have shown, given up to when the list is fresh."""
        record = self.record
        state = self._state
        record.reset_failures()
        record.start_at(state.position.version)
        record.heard_at = fresh_at
        if state.doubt:
            # If the server is expected to send bookmarks, the next list follows after two more silent watches.
            record.silent = record.silent and not record.is_regular
            state.begin_doubt("watches bring nothing: the cache is as fresh as the last list", fresh_at)

    def hear(self, now: float, *, bookmark: bool) -> None:
        """Note that events came after a silence or a doubt, or that a bookmark did."""
        record = self.record
        if bookmark:
            record.count_bookmark(now, self._options.idle_timeout)
        if record.silent or self._state.doubt:
            record.silent = False
            self._set_reading()
            self._end_doubt()

    def take_head(self) -> None:
        """Note that the head of a watch has come."""
        self.headless = False
        if not self.record.is_regular:
            self._end_doubt()

    def _end_doubt(self) -> None:
        if self._state.doubt:
            self._state.end_doubt()
            self._state.show_healthy()

    def _set_reading(self) -> None:
        record = self.record
        idle_timeout = self._options.idle_timeout
        # The watch after a silent one may be silent without limit, unless the server is expected to send bookmarks, or
        # its version must be checked.
        limited = not record.silent or record.is_regular or self._must_check_version()
        until = record.deadline if record.silent else None
        if until is not None and self.headless and not self._state.doubt:
            until = min(until, self._sent_at + idle_timeout)
        self.reading = Read(until, silence=idle_timeout if limited else None)

    def _must_check_version(self) -> bool:
        # A server restored from a backup is silent until its versions have reached the version of the watch again.
        return self.record.server_lost and self._state.position.comparable

    # Ends.

    def on_open_refuted(self) -> None:
        """Go back to `OPEN`: the server refused the watch that was assumed to be open, or was unreachable."""
        self.headless = False
        self.head_patience = min(2 * self.head_patience, self._options.idle_timeout)
        self._state.stage = Stage.OPEN

    def on_end(self, now: float, cut: TransportError | None = None) -> None:
        """Decide what follows a watch that ended.

        Args:
            cut: the error of the connection; None if the server ended the watch.
        """
        state = self._state
        record = self.record
        moved = record.has_moved(state.position.version)
        short = record.is_short(now)
        self.count_end(now)
        state.set_list_reason("ended")
        if moved:
            state.pace.reset_backoff()
        if moved or not short:
            state.pace.limit_burst(now)
            if cut is not None:
                state.log(f"{cut}: opening the watch again")
            state.enter(self._stage_after_watch())
            return
        error = cut or DecodeError("the server ends watches as soon as they are open")
        if record.events:  # all of them were known before; the first time, this is an accident
            message = f"{error}: opening the watch again"
            state.recover(error, now, self._stage_after_watch(), kind="short", message=message)
            return
        # If the version was lost and the server does not answer with 410, all watches end like this until a list.
        lost = record.count_fruitless() if cut is None else False
        state.fail(error, now, Stage.DECIDE if lost else self._stage_after_watch())

    def count_end(self, now: float) -> None:
        """Reset the errors that the watch which ends now has refuted."""
        self.headless = False
        record = self.record
        pace = self._state.pace
        moved = record.has_moved(self._state.position.version)
        short = record.is_short(now)
        if record.events:
            record.fruitless = 0
            if record.foreign == self._state.quarantine.foreign:
                self._state.quarantine.foreign = 0  # all objects were of the collection
        if moved or not short:
            pace.reset("short")
        if not short:
            pace.reset("line")
        if record.is_long(now):
            pace.reset("expired", "expired list", "lower version")
            if moved:
                pace.reset_backoff()

    def _stage_after_watch(self) -> Stage:
        """Return `OPEN`, or `DECIDE` without a version: the next watch would not show objects deleted in between."""
        if starts_without_version(self._state.position.version):
            return Stage.DECIDE
        return Stage.OPEN

    # Silence.

    def on_silence(self, seconds: float, now: float) -> None:
        """Decide what follows a watch without an event for the idle timeout. This is not a failure."""
        state = self._state
        record = self.record
        silence = f"no event came for {seconds:g} s"
        if record.is_regular:
            reason = f"{silence}, and the server sends bookmarks regularly"
            state.begin_doubt(reason, record.heard_at if state.fresh_at is None else state.fresh_at)
        elif self.headless:
            self._begin_doubt_about_head(now)
        if self._must_check_version():
            state.log(f"{silence} after the server failed: checking its resourceVersion")
            stage = Stage.CHECK
        elif record.is_regular and record.silent:
            state.log(f"{silence} in this watch and the one before: listing in pages")
            state.set_list_reason("silent")
            state.prefer_list = True
            stage = Stage.DECIDE
        else:
            record.silent = True
            state.log(f"{silence}: opening the watch again")
            state.set_list_reason("silent")
            stage = self._stage_after_watch()
        self.count_end(now)
        state.pace.limit_burst(now)
        state.enter(stage)

    def on_late_head(self, now: float) -> None:
        """Go on with a watch that has no head for the idle timeout, and begin a doubt."""
        self._begin_doubt_about_head(now)
        self._set_reading()

    def _begin_doubt_about_head(self, now: float) -> None:
        if not self._state.doubt:
            self._state.begin_doubt(f"a watch has had no answer for {self._options.idle_timeout:g} s", now)

    def on_check_passed(self) -> None:
        """Open the watch again: the server's version did not go back, so the collection is quiet."""
        self.record.server_lost = False
        self.record.silent = True
        self._state.enter(Stage.OPEN)

    def on_check_failed(self, error: Exception, now: float) -> None:
        """Open the watch again, although the server's version is unknown. The next silence causes another check."""
        self._state.log(f"the check of the server's resourceVersion failed: {error}: opening the watch again")
        self.record.silent = True
        self._state.pace.limit_burst(now)
        self._state.honor_retry_after(error, now)
        self._state.enter(Stage.OPEN)

    # Failures.

    def on_refusal(self, error: ApiError, now: float) -> None:
        """Decide what follows if the server does not open a watch."""
        if error.status == 429 or error.retry_after:  # the server is busy: a list would add to its load
            self._state.fail(error, now, Stage.OPEN)
            return
        fruitless = self.record.count_fruitless()
        if error.status == 405:
            self.poll(now, f"no watch is served ({error})")
        elif error.status == 403 or fruitless:
            # Without watches, occasional lists in pages keep the cache as fresh as possible.
            self._state.set_list_reason("refused")
            self._state.prefer_list = True
            self._state.fail(error, now, Stage.DECIDE)
        else:
            self._state.fail(error, now, Stage.OPEN)

    def poll(self, now: float, reason: str) -> None:
        """List repeatedly, after a delay each time: the resource has no watch, which is not a failure."""
        state = self._state
        if state.phase is not Phase.POLLING:
            state.log(f"{reason}: listing repeatedly")
        state.pace.delay(now)
        state.end_doubt()
        state.prefer_list = True
        state.list_reason = "polling"
        state.show_healthy(Phase.POLLING, reason)
        state.enter(Stage.DECIDE)

    def on_error_event(self, error: ApiError, now: float) -> None:
        """Decide what follows a watch that ended with an error event.

        The server may be unable to show an object (unreadable in its storage, then deleted unsafely), and may send no
        other event for it. A list shows the remaining objects. If the server is busy, the watch is opened again.
        """
        self._state.set_list_reason("error")
        self._state.fail(error, now, Stage.OPEN if error.status == 429 else Stage.DECIDE)

    def on_broken_line(self, error: DecodeError, now: float) -> None:
        """Read a broken line once more. If it is broken again, a list shows the changes that it may have contained."""
        version = self._state.position.version
        self._state.set_list_reason("broken")
        if self.record.count_break(version):
            self._state.fail(error, now, Stage.DECIDE)
        else:
            message = f"{error}: reading again from version {version}"
            self._state.recover(error, now, Stage.OPEN, kind="line", message=message, otherwise=Stage.DECIDE)
