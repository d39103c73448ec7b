"""Log errors that repeat: one traceback for each function and minute, and then how many errors followed.

A function that raises usually does so for each object. Formatting a traceback costs a hundred times as much as the
call, and thousands of equal tracebacks hide all other lines of a log.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A subject is logged with a traceback at most once in this time, in seconds.
QUIET: Final = 60.0
_NAMED: Final = 3


class _Period(msgspec.Struct):
    """The time after a traceback in which further errors of its subject are counted."""

    ends: float
    level: int
    lines: int
    logged: set[str] = msgspec.field(default_factory=set)
    keys: dict[str, None] = msgspec.field(default_factory=dict)
    suppressed: int = 0
    last: type[BaseException] | None = None
    timer: asyncio.TimerHandle | None = None


class RepeatedErrors:
    """Logs the errors of functions. It never keeps an error, whose frames refer to objects.

    An error is logged with its traceback if its subject has not been logged within the last minute. The others are
    counted, which costs about a microsecond. Their number is logged at the end of the minute; outside an event loop,
    before the next traceback.
    """

    __slots__ = ("_log", "_periods")

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._periods: dict[str, _Period] = {}

    def report(
        self,
        subject: str,
        error: BaseException,
        message: str,
        *arguments: object,
        level: int = logging.ERROR,
        key: str = "",
        lines: int = 0,
        once: bool = False,
        extra: Mapping[str, object] | None = None,
    ) -> bool:
        """Log an error with its traceback, or count it; return whether it was logged.

        Args:
            subject: what raised, for the count and as the identity: "index function by_node at app/pods.py:12".
            error: what it raised.
            message: the line of the traceback, with the subject in it.
            arguments: for the placeholders of the message.
            level: of the lines. Below ERROR, there are no tracebacks.
            key: of the object; the count names some of them.
            lines: how many further errors of the subject are logged within the minute, without a traceback.
            once: of each key, log an error of the same text once within the minute.
            extra: the attributes of the log record.
        """
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        now = monotonic() if loop is None else loop.time()
        period = self._periods.get(subject)
        shown: BaseException | None = None
        if period is None or now >= period.ends:
            self._end(subject)
            period = _Period(now + QUIET, level, lines + 1)
            self._periods[subject] = period
            if loop is not None:
                period.timer = loop.call_at(period.ends, self._end, subject)
            shown = error if level >= logging.ERROR else None
        if not period.lines or (once and f"{key} {error}" in period.logged):
            period.suppressed += 1
            period.last = type(error)
            if key and len(period.keys) < _NAMED:
                period.keys[key] = None
            return False
        period.lines -= 1
        if once:
            period.logged.add(f"{key} {error}")
        self._log.log(level, message, *arguments, exc_info=shown, extra=extra)
        return True

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
            line = "%s raised %d more errors within %d s after the last %s; the last one was %s%s"
            last = "traceback" if period.level >= logging.ERROR else "lines"
            name = period.last.__name__
            keys = f"; keys such as {', '.join(period.keys)}" if period.keys else ""
            self._log.log(period.level, line, subject, period.suppressed, QUIET, last, name, keys)
