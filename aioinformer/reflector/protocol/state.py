"""Where the list/watch protocol stands: its stage, its position, what it shows, and when it may send again."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from aioinformer.backoff import MAX_RETRY_AFTER, Backoff
from aioinformer.errors import ApiError
from aioinformer.reflector.protocol.changes import Quarantine
from aioinformer.reflector.state import Phase
from aioinformer.resources.versions import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.backoff import BackoffOptions


class Pace:
    """Keep the time before which nothing is sent.

    Args:
        options: of the backoff.
        random: numbers in [0, 1).

    Attributes:
        not_before: nothing may be sent before this time.
        attempts: how many delays in a row failures have cost; 0 once all is well.
    """

    def __init__(self, options: BackoffOptions, *, random: Callable[[], float]) -> None:
        self.not_before = 0.0
        self.attempts = 0
        self._backoff = Backoff(options, random=random)
        self._used: set[str] = set()

    def delay(self, now: float) -> None:
        """Count a failure: nothing is sent until its delay is over."""
        self.attempts += 1
        self.not_before = max(self.not_before, now + self._backoff.next(now))
        self.limit_burst(now)

    def hold(self, seconds: float, now: float) -> None:
        """Send nothing for as long as the server asked for (RFC 9110, 10.2.3)."""
        self.not_before = max(self.not_before, now + min(seconds, MAX_RETRY_AFTER))
        self._backoff.extend(self.not_before)

    def allow_immediate(self, kind: str, now: float) -> bool:
        """Count an event of this kind; return whether the next request may follow at once: after the first only."""
        if kind in self._used:
            return False
        self._used.add(kind)
        self.limit_burst(now)
        return True

    def reset(self, *kinds: str) -> None:
        """Make the next event of each of these kinds the first again."""
        self._used.difference_update(kinds)

    def reset_backoff(self) -> None:
        """Make the next delay the first again; a delay that is under way stays."""
        self._backoff.reset()

    def limit_burst(self, now: float) -> None:
        """Count one end of a request: however many kinds of events meet, three requests in two seconds are the most."""
        self.not_before = max(self.not_before, self._backoff.limit_burst(now))

    def at_rest(self, now: float) -> bool:
        """Whether nothing has failed for so long that the next delay would be the first."""
        return self._backoff.at_rest(now)


_PHASES = {401: Phase.UNAUTHORIZED, 403: Phase.FORBIDDEN, 404: Phase.NOT_FOUND, 405: Phase.NOT_ALLOWED}


class Stage(Enum):
    """What the next request serves, or the one whose response is being read."""

    DECIDE = "decide"
    STREAM = "stream"
    LIST = "list"
    OPEN = "open"
    WATCH = "watch"
    CHECK = "check"


class ProtocolState:
    """Where the protocol stands.

    Args:
        backoff: the shape of the delays.
        random: numbers in [0, 1): spreads delays.
        tell: takes a line for the log.
        report: takes each error that ended a list or a watch and is a failure.
        quarantine: remembers the objects that do not decode.

    Attributes:
        stage: what the next request serves.
        reading: the request was sent, and its response is being read.
        prefer_list: the next list is to come in pages, and not as a stream.
        position: up to which version the collection has been read.
        pace: when the next request may be sent.
        phase: what to show.
        reason: why.
        quarantine: the objects that do not decode.
        list_reason: why the last list was necessary: "first"; "expired", the version was lost (410); "restored", the
            server's versions went back; "broken", a line could not be read; "error", the watch ended with an error;
            "refused", it was not opened; "ended", watches ended at once; "silent", nothing came; "lacking", what was
            received could not be processed; or "polling".
    """

    def __init__(
        self,
        backoff: BackoffOptions,
        random: Callable[[], float],
        tell: Callable[[str], None],
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
        self.quarantine = Quarantine() if quarantine is None else quarantine
        self.tell = tell
        self.report = report

    def need_list(self, reason: str) -> None:
        """Note why a list may follow a watch. What makes a list begin anew is not why it is necessary."""
        if self.stage in (Stage.OPEN, Stage.WATCH, Stage.CHECK):
            self.list_reason = reason

    def go(self, stage: Stage) -> None:
        """Go on in a stage: with another request, unless it is that of a watch that is open already."""
        self.stage = stage
        self.reading = stage is Stage.WATCH

    def go_on(
        self, error: Exception, now: float, stage: Stage, *, kind: str, told: str, otherwise: Stage | None = None
    ) -> bool:
        """Count an error; go on at once if it is the first of its kind, after a delay if it is not.

        Args:
            error: what happened.
            now: the time.
            stage: where to go on.
            kind: of the error, for the pace.
            told: to the log, if it goes on at once.
            otherwise: where to go on after a delay, if not in the same stage.

        Returns:
            Whether it goes on at once.
        """
        if not self.pace.allow_immediate(kind, now):
            self.fail(error, now, otherwise or stage)
            return False
        self.report(error)
        self.tell(told)
        self.hold(error, now)
        self.go(stage)
        return True

    def fail(self, error: Exception, now: float, stage: Stage) -> None:
        """Count a failure: report it, show it, and go on in a stage after a delay."""
        self.report(error)
        self.pace.delay(now)
        self.hold(error, now)
        status = error.status if isinstance(error, ApiError) else 0
        self.show(_PHASES.get(status, Phase.BACKING_OFF), str(error))
        self.go(stage)

    def hold(self, error: Exception, now: float) -> None:
        """Send nothing before the time that the server named, if it named one."""
        if seconds := getattr(error, "retry_after", None):
            self.pace.hold(seconds, now)
            self.show(Phase.BACKING_OFF, str(error))

    def healthy(self, phase: Phase = Phase.WATCHING, reason: str = "") -> None:
        """Show a phase in which all is well, except for objects that do not decode."""
        self.pace.attempts = 0
        if self.quarantine:
            self.show(Phase.DEGRADED, str(self.quarantine))
        else:
            self.show(phase, reason)

    def show(self, phase: Phase, reason: str) -> None:
        """Show a phase, and why."""
        self.phase, self.reason = phase, reason

    def __repr__(self) -> str:
        reading = ", reading" if self.reading else ""
        return f"{self.stage.value}{reading}, {self.phase}, {self.position}"
