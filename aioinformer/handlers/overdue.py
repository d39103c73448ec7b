"""Calls of handlers that do not return: named in the log after 30 s, and once a minute from then on.

One timer serves all handlers of an informer. It is set when a batch begins, and not for single calls; it is not set
again once no handler is at work, so that an idle informer never wakes the loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.handlers.names import HandlerCall

_log = get_logger("aioinformer.handlers")

#: A call is overdue after so many seconds, and named again after so many more.
OVERDUE: Final = 30.0
AGAIN: Final = 60.0
#: Loops run timers early by as much as their clocks resolve.
_EARLY: Final = 0.001


class Caller(Protocol):
    """What calls a handler."""

    @property
    def name(self) -> str: ...

    @property
    def behind(self) -> int:
        """How much waits behind the call under way."""
        ...

    @property
    def busy(self) -> bool:
        """Whether notifications are being delivered."""
        ...

    @property
    def call_began(self) -> float | None:
        """When the call under way began, by the loop's clock; None if there is none."""
        ...

    def call(self) -> HandlerCall | None:
        """The call under way."""
        ...


class OverdueCalls:
    """Looks after the handlers of one informer.

    Args:
        callers: those whose handlers may be at work.

    Attributes:
        armed: whether the timer is set.
    """

    def __init__(self, callers: Callable[[], Iterable[Caller]]) -> None:
        self.armed = False
        self._callers = callers
        self._timer: asyncio.TimerHandle | None = None
        #: When each caller may be named again.
        self._quiet_until: WeakKeyDictionary[Caller, float] = WeakKeyDictionary()

    def arm(self) -> None:
        """A handler begins to work: look after it in 30 s."""
        self.armed = True
        self._set(OVERDUE)

    def close(self) -> None:
        """Watch no more calls."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.armed = False

    def _set(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        # Those between two calls are looked after from now on.
        ends = [self._due(caller, now) for caller in self._callers() if caller.busy]
        if ends:
            self._set(min(ends) - now)
        else:
            self._timer = None
            self.armed = False

    def _due(self, caller: Caller, now: float) -> float:
        """Name the caller's call if it is overdue; return when to look again."""
        began = caller.call_began
        if began is None:
            return now + OVERDUE
        due = max(began + OVERDUE, self._quiet_until.get(caller, 0.0))
        if now < due - _EARLY:
            return due
        self._quiet_until[caller] = now + AGAIN
        call = caller.call()
        if call is not None:
            _log.warning(
                "%s: %s has not returned for %.0f s: it is at %s, and %d notifications wait behind it",
                caller.name,
                call.function,
                now - began,
                call.key,
                caller.behind,
            )
        return now + AGAIN
