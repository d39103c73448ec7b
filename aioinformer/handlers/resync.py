"""Resync periods: which handlers take part in a resync, and when. The rules are client-go's; no clock is read here."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

_log = get_logger("aioinformer.handlers")

#: Shorter periods are raised to this, in seconds.
MINIMUM_RESYNC_PERIOD = 1.0


def checked_period(period: Any, name: str = "resync_period") -> float:
    """Return the period.

    Raises:
        UsageError: it is negative, or not a number.
    """
    if not isinstance(period, (int, float)) or period != period or period < 0:
        raise UsageError(f"{name} must be 0 (no resync) or a number of seconds, not {period!r}")
    return float(period)


def effective_period(requested: float, check_period: float) -> float:
    """Return the resync period of a handler that requests `requested`, if the informer checks every `check_period`.

    0 (no resync) if either is 0. A period cannot be shorter than the check period.
    """
    if not requested or not check_period:
        return 0.0
    return max(requested, check_period)


class ResyncPeriods:
    """The resync periods of one informer and its handlers.

    Args:
        default: the informer's own period, in seconds; 0 for never.

    Attributes:
        default: the period of handlers that do not request one.
        check: how often the informer checks which handlers are due.

    Raises:
        UsageError: the period is invalid.
    """

    __slots__ = ("check", "default")

    def __init__(self, default: float) -> None:
        self.default = _raised(checked_period(default))
        self.check = self.default

    def negotiate(self, requested: float | None, name: str, *, final: bool) -> float:
        """Return a handler's period. A short one shortens the check period, unless that is final.

        Args:
            requested: in seconds, 0 for never, None for the default.
            name: of the handler, for the log.
            final: whether the informer is running, so that its check period cannot change.

        Raises:
            UsageError: the period is invalid.
        """
        period = self.default if requested is None else _raised(checked_period(requested))
        if period and not self.check:
            _log.warning("%s requests resyncs, but its informer has resync_period=0: it gets no resyncs", name)
        elif period and period < self.check:
            if final:
                _log.warning(
                    "%s resyncs every %g s, not every %g s: its informer is running already", name, self.check, period
                )
                return self.check
            self.check = period
        return period


def _raised(period: float) -> float:
    if 0 < period < MINIMUM_RESYNC_PERIOD:
        _log.warning("a resync period of %g s is raised to %g s", period, MINIMUM_RESYNC_PERIOD)
        return MINIMUM_RESYNC_PERIOD
    return period


class ResyncSchedule(msgspec.Struct):
    """The resync schedule of one handler.

    Attributes:
        requested: the requested period, in seconds; 0 for never.
        period: the actual period.
        next: when the next resync is due.
        syncing: whether the handler takes part in the current resync.
    """

    requested: float
    period: float = 0.0
    next: float = 0.0
    syncing: bool = False

    def adopt(self, check_period: float, now: float) -> None:
        """Schedule anew for an informer that checks every `check_period`."""
        self.period = effective_period(self.requested, check_period)
        self.next = now + self.period

    def decide(self, now: float) -> bool:
        """Decide whether the handler takes part in the resync at `now`, and schedule its next one if it does."""
        self.syncing = bool(self.period) and now >= self.next
        if self.syncing:
            self.next = now + self.period
        return self.syncing
