"""The state of the list/watch protocol: stage, position, phase, and the time before which no request is sent."""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from aioinformer.backoff import MAX_RETRY_AFTER, RESET_AFTER, Backoff
from aioinformer.errors import ApiError
from aioinformer.reflector.protocol.changes import Quarantine
from aioinformer.reflector.state import Phase
from aioinformer.resources.versions import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.backoff import BackoffOptions

#: Seconds after which a resource that is not served is requested again: its definition may have been created.
_UNTIL_SERVED: Final = 9.0
#: How often the delay is the one that the server asked for, before the backoff counts, too; as in client-go's requests.
_PATIENCE: Final = 10
#: Why lists become necessary; see `ProtocolState.list_reason`.
RELIST_REASONS: Final = (
    *("first", "expired", "restored", "broken", "error"),
    *("refused", "ended", "silent", "unprocessed", "polling"),
)
_PHASE_OF_STATUS: Final = {
    401: Phase.UNAUTHORIZED,
    403: Phase.FORBIDDEN,
    404: Phase.NOT_FOUND,
    405: Phase.NOT_ALLOWED,
}


class Stage(Enum):
    """The purpose of the next request, or of the one whose response is being read."""

    DECIDE = "decide"
    STREAM = "stream"
    LIST = "list"
    OPEN = "open"
    WATCH = "watch"
    CHECK = "check"


class Pace:
    """Keep the time before which no request is sent.

    Attributes:
        not_before: no request may be sent before this time.
        attempts: the number of delays in a row that failures caused; 0 after a success.
    """

    __slots__ = ("_backoff", "_held_until", "_holds", "_options", "_used", "attempts", "not_before")

    def __init__(self, options: BackoffOptions, *, random: Callable[[], float]) -> None:
        self.not_before = 0.0
        self.attempts = 0
        self._options = options
        self._backoff = Backoff(options, random=random)
        #: How many delays of the server have replaced those of the backoff since the last rest, and when the last ends.
        self._holds = 0
        self._held_until = float("-inf")
        self._used: tuple[str, ...] = ()

    def delay(self, now: float, asked: float | None = None, *, at_most: float = inf) -> None:
        """Count a failure and start its delay.

        If the server asks for a time, that is the delay, and the backoff does not grow: ten times until the backoff is
        reset. A server that asks again and again gets the longer one of both delays.

        Args:
            asked: for how many seconds the server asked.
            at_most: the longest delay of the backoff, in seconds; its first one may be longer.
        """
        self.attempts += 1
        if self.at_rest(now):
            self._holds = 0
        if asked and self._holds < _PATIENCE:
            self._holds += 1
        else:
            longest = max(at_most, self._options.initial)
            self.not_before = max(self.not_before, now + min(self._backoff.next(now), longest))
        if asked:
            self.hold(asked, now)
        self.limit_burst(now)

    def hold(self, seconds: float, now: float) -> None:
        """Send no request for as long as the server asked for (RFC 9110, 10.2.3)."""
        self.not_before = max(self.not_before, now + min(seconds, MAX_RETRY_AFTER))
        self._held_until = self.not_before
        self._backoff.extend(self.not_before)

    def allow_immediate(self, kind: str, now: float) -> bool:
        """Count an error of this kind. Return whether a request may follow without delay: only after the first."""
        if not self.is_first(kind):
            return False
        self.limit_burst(now)
        return True

    def is_first(self, kind: str) -> bool:
        """Count an error of this kind; return whether it is the first."""
        if kind in self._used:
            return False
        self._used += (kind,)
        return True

    def reset(self, *kinds: str) -> None:
        """Treat the next error of each of these kinds as the first one."""
        if self._used:
            self._used = tuple(kind for kind in self._used if kind not in kinds)

    def reset_backoff(self) -> None:
        """Treat the next failure as the first one, as after a success. A delay that has started is not changed."""
        self.shorten_backoff()
        self._holds = 0
        self._held_until = float("-inf")

    def shorten_backoff(self) -> None:
        """Make the next delay of the backoff the shortest one.

        How often the server has asked for a delay still counts: a failure does not renew the number of these delays.
        """
        self._backoff.reset()

    def limit_burst(self, now: float) -> None:
        """Count the end of a request. At most three requests are sent in two seconds, for any combination of errors."""
        self.not_before = max(self.not_before, self._backoff.limit_burst(now))

    def at_rest(self, now: float) -> bool:
        """Return whether the last failure was so long ago that the next delay would be the shortest one."""
        return self._backoff.at_rest(now) and now - self._held_until >= RESET_AFTER


class ProtocolState:
    """The state that the parts of the protocol share.

    Attributes:
        stage: the purpose of the next request.
        reading: the request was sent, and its response is being read.
        prefer_list: the next list is requested in pages, not as a stream.
        position: the version up to which the collection has been read.
        pace: when the next request may be sent.
        doubt: why the cache may not follow the server although a watch is open; "" if it does.
        fresh_at: up to when the cache has followed the server, while there is a doubt; None without one.
        list_reason: why the last list was necessary: "first"; "expired", the version was lost (410); "restored", the
            server's versions went back; "broken", a line could not be read; "error", the watch ended with an error;
            "refused", the watch was not opened; "ended", watches ended at once; "silent", no event came; "unprocessed",
            received objects could not be processed; or "polling".
    """

    __slots__ = (
        "_failure",
        "doubt",
        "fresh_at",
        "list_reason",
        "log",
        "pace",
        "phase",
        "position",
        "prefer_list",
        "quarantine",
        "reading",
        "reason",
        "report",
        "stage",
    )

    def __init__(
        self,
        backoff: BackoffOptions,
        random: Callable[[], float],
        log: Callable[[str], None],
        report: Callable[[Exception], None],
        quarantine: Quarantine | None = None,
    ) -> None:
        self.stage = Stage.DECIDE
        self.reading = False
        self.prefer_list = False
        self.list_reason = "first"
        self.position = Position()
        self.pace = Pace(backoff, random=random)
        self.phase = Phase.SYNCING
        self.reason = ""
        self.doubt = ""
        self.fresh_at: float | None = None
        self.quarantine = Quarantine() if quarantine is None else quarantine
        self.log = log
        self.report = report
        #: The text of the last failure.
        self._failure = ""

    def set_list_reason(self, reason: str) -> None:
        """Set why a list may follow a watch. An error during a list does not change why the list is necessary."""
        if self.stage in (Stage.OPEN, Stage.WATCH, Stage.CHECK):
            self.list_reason = reason

    def enter(self, stage: Stage) -> None:
        """Enter a stage. It begins with a request, except `WATCH`, which reads the open response."""
        self.stage = stage
        self.reading = stage is Stage.WATCH

    def recover(
        self, error: Exception, now: float, stage: Stage, *, kind: str, message: str, otherwise: Stage | None = None
    ) -> bool:
        """Count an error and enter a stage: immediately after the first error of a kind, otherwise after a delay.

        Args:
            message: is logged if the stage is entered immediately.
            otherwise: the stage to enter after a delay; by default, the same.

        Returns:
            Whether the stage is entered immediately.
        """
        if not self.pace.allow_immediate(kind, now):
            self.fail(error, now, otherwise or stage)
            return False
        self.report(error)
        self.log(message)
        self.honor_retry_after(error, now)
        self.enter(stage)
        return True

    def fail(self, error: Exception, now: float, stage: Stage) -> None:
        """Report and show a failure, and enter a stage after a delay: that of the backoff, or that of the server."""
        self.report(error)
        phase = _PHASE_OF_STATUS.get(error.status if isinstance(error, ApiError) else 0, Phase.BACKING_OFF)
        at_most = _UNTIL_SERVED if phase is Phase.NOT_FOUND else inf
        self.pace.delay(now, getattr(error, "retry_after", None), at_most=at_most)
        text = str(error)
        before = self._failure
        self._failure = text
        # Without both permissions, "cannot list" and "cannot watch" alternate: another text counts when it repeats.
        if not (phase is self.phase is Phase.FORBIDDEN) or text == before:
            self.show(phase, text)
        self.enter(stage)

    def honor_retry_after(self, error: Exception, now: float) -> None:
        """Send no request before the time that the server named in its error, if any."""
        if seconds := getattr(error, "retry_after", None):
            self.pace.hold(seconds, now)
            self.show(Phase.BACKING_OFF, str(error))

    def show_healthy(self, phase: Phase = Phase.WATCHING, reason: str = "") -> None:
        """Show this phase, or `DEGRADED` while objects are skipped, and reset the number of attempts.

        While there is a doubt, show that.
        """
        self.pace.attempts = 0
        if self.doubt:
            self.show(Phase.BACKING_OFF, self.doubt)
        elif self.quarantine or self.quarantine.foreign:
            self.show(Phase.DEGRADED, str(self.quarantine))
        else:
            self.show(phase, reason)

    def begin_doubt(self, reason: str, fresh_at: float) -> None:
        """Show that the cache may not have followed the server since a time, until `end_doubt`."""
        self.doubt = reason
        self.fresh_at = fresh_at
        self.show(Phase.BACKING_OFF, reason)

    def end_doubt(self) -> None:
        """Let the next healthy phase be shown."""
        self.doubt = ""
        self.fresh_at = None

    def show(self, phase: Phase, reason: str) -> None:
        """Show a phase and its reason."""
        self.phase = phase
        self.reason = reason

    def __repr__(self) -> str:
        reading = ", reading" if self.reading else ""
        return f"{self.stage.value}{reading}, {self.phase}, {self.position}"
