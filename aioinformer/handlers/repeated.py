"""Log errors that repeat: one traceback for each function and minute, and then how many errors followed.

A function that raises usually does so for each object. Formatting a traceback costs a hundred times as much as the
call, and thousands of equal tracebacks hide all other lines of a log.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

#: Each function is logged at most once in this time, in seconds.
QUIET: Final = 60.0


class _Period:
    """The time after a traceback in which further errors of its subject are counted."""

    __slots__ = ("ends", "last", "suppressed", "timer")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.suppressed = 0
        self.last: type[BaseException] | None = None
        self.timer: asyncio.TimerHandle | None = None


class RepeatedErrors:
    """Logs the errors of functions. It never keeps an error, whose frames refer to objects.

    An error is logged with its traceback if its subject has not been logged within the last minute. The others are
    counted, which costs about a microsecond. Their number is logged at the end of the minute; outside an event loop,
    before the next traceback.

    Args:
        log: for the lines.
    """

    __slots__ = ("_log", "_periods")

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._periods: dict[str, _Period] = {}

    def report(
        self, subject: str, error: BaseException, message: str, /, *arguments: object, traceback: bool = True
    ) -> None:
        """Log an error, or count it.

        Args:
            subject: what raised, for the count and as the identity: "index function by_node at app/pods.py:12".
            error: what it raised.
            message: the line above the traceback, with the subject in it.
            arguments: for the placeholders of the message.
            traceback: whether to log the traceback, which may quote an object.
        """
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        now = monotonic() if loop is None else loop.time()
        period = self._periods.get(subject)
        if period is not None and now < period.ends:
            period.suppressed += 1
            period.last = type(error)
            return
        self._end(subject)
        period = self._periods[subject] = _Period(now + QUIET)
        if loop is not None:
            period.timer = loop.call_at(period.ends, self._end, subject)
        self._log.error(message, *arguments, exc_info=error if traceback else None)

    def close(self) -> None:
        """Log the counts that have not been logged, and cancel the timers. Errors may be reported afterwards."""
        for subject in list(self._periods):
            self._end(subject)

    def _end(self, subject: str) -> None:
        period = self._periods.pop(subject, None)
        if period is None:
            return
        if period.timer is not None:
            period.timer.cancel()
        if period.last is not None:
            self._log.error(
                "%s raised %d more errors within %d s after the last traceback; the last one was %s",
                subject,
                period.suppressed,
                QUIET,
                period.last.__name__,
            )
