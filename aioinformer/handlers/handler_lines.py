"""The log lines about the handlers of one informer that need more than one of them, or a timer.

A call that does not return is logged after 30 s, and then once a minute. One timer serves all handlers. It is armed
when a batch begins, not for each call. It is not armed again when no handler is busy, so an idle informer never wakes
the loop.

Of lines that many handlers cause at the same time, the first ones are logged, and then how many more there are: a
hundred handlers may fall behind together, and for the same reason.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from aioinformer.errors import USER_ERRORS
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.handlers.calls import HandlerCall

_log = get_logger("aioinformer.handlers")

#: A call is overdue after this many seconds.
OVERDUE: Final = 30.0
#: An overdue call is logged again after this many seconds.
AGAIN: Final = 60.0
#: Event loops may run timers early, by up to the resolution of their clock.
_EARLY: Final = 0.001
#: The lines of so many handlers are logged within `_WHILE` seconds after the first one.
_HANDLERS: Final = 3
_WHILE: Final = 10.0


class Caller(Protocol):
    """Calls one handler, such as a listener."""

    @property
    def name(self) -> str: ...

    @property
    def behind(self) -> int:
        """How many notifications are pending behind the running call."""

    @property
    def busy(self) -> bool:
        """Whether notifications are being delivered."""

    @property
    def call_began(self) -> float | None:
        """When the running call began, by the loop's clock; None if there is none."""

    def call(self) -> HandlerCall | None:
        """Return the running call."""


class HandlerLines:
    """Logs about the handlers of one informer.

    Args:
        callers: returns the callers whose calls may be overdue.

    Attributes:
        armed: whether overdue calls are being checked.
    """

    __slots__ = ("_callers", "_kinds", "_quiet_until", "_timer", "armed")

    def __init__(self, callers: Callable[[], Iterable[Caller]] = lambda: ()) -> None:
        self.armed = False
        self._callers = callers
        self._timer: asyncio.TimerHandle | None = None
        #: When to log an overdue call of each busy caller again.
        self._quiet_until: dict[Caller, float] = {}
        #: By kind of line: the listeners in the order of their lines, and what ends the period.
        self._kinds: dict[str, tuple[dict[str, None], asyncio.TimerHandle]] = {}

    def arm(self) -> None:
        """Check the calls in 30 s, since a handler begins to work."""
        self.armed = True
        self._set(OVERDUE)

    def warning(self, what: str, message: str, name: str, *arguments: object) -> None:
        """Log that a handler does something, or count it if three others of its informer have just done so.

        Args:
            what: for the line with the number, such as "fall behind".
            message: of the line; the name is its first argument.
            name: of the listener.
        """
        if (kind := self._kinds.get(what)) is None:
            kind = {}, asyncio.get_running_loop().call_later(_WHILE, self._end, what)
            self._kinds[what] = kind
        names, _ = kind
        names[name] = None
        if name in islice(names, _HANDLERS):
            _log.warning(message, name, *arguments)

    def close(self) -> None:
        """Log what was counted. Nothing is left on the loop."""
        self._cancel()
        self.armed = False
        for what, (_, timer) in list(self._kinds.items()):
            timer.cancel()
            self._end(what)

    def _end(self, what: str) -> None:
        names, _ = self._kinds.pop(what)
        if len(names) > _HANDLERS:
            message = "beside %s, %d more handlers of its informer %s; the snapshot has each of them"
            _log.warning(message, next(iter(names)), len(names) - 1, what)

    def _set(self, seconds: float) -> None:
        self._cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._set(OVERDUE)  # first: a failure below must not end the checks
        now = asyncio.get_running_loop().time()
        busy = [caller for caller in self._callers() if caller.busy]
        self._quiet_until = {caller: self._quiet_until[caller] for caller in busy if caller in self._quiet_until}
        checks = [self._try_to_check(caller, now) for caller in busy]
        if checks:
            self._set(min(checks) - now)
        else:
            self._cancel()
            self.armed = False

    def _try_to_check(self, caller: Caller, now: float) -> float:
        """Check a caller's call; if a handler cannot be named, or the log raises, go on with the other callers."""
        try:
            return self._check_caller(caller, now)
        except USER_ERRORS:
            _log.exception("%s: whether its call is overdue was not found out or not logged", caller.name)
            return now + OVERDUE

    def _check_caller(self, caller: Caller, now: float) -> float:
        """Log the caller's call if it is overdue; return when to check again."""
        began = caller.call_began
        if began is None:  # between two calls
            return now + OVERDUE
        due = max(began + OVERDUE, self._quiet_until.get(caller, 0.0))
        if now < due - _EARLY:
            return due
        call = caller.call()
        if call is not None:
            line = (
                "%s: %s has not returned for %.0f s: it was called for %s, and %d notifications are pending behind it"
            )
            _log.warning(line, caller.name, call.function, now - began, call.key, caller.behind)
        self._quiet_until[caller] = now + AGAIN
        return now + AGAIN
