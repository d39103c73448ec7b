"""The state of the list/watch protocol: the stage it is in, what it shows, and when and how it goes on."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from aioinformer.errors import ApiError
from aioinformer.pace import Pace
from aioinformer.quarantine import Quarantine
from aioinformer.state import Phase
from aioinformer.versions import Position

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.backoff import BackoffOptions

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
