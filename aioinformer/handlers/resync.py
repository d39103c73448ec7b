"""Who takes part in a resync, and when: client-go's rules (SI-25 to SI-28), decided from periods and `now`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

_log = get_logger("aioinformer.handlers")

#: Shorter periods are raised to this, in seconds.
MINIMUM_RESYNC_PERIOD = 1.0


def checked_period(period: Any, name: str = "resync_period") -> float:
    """The period, if it is one.

    Raises:
        UsageError: it is negative, or no number.
    """
    if not isinstance(period, (int, float)) or period != period or period < 0:
        raise UsageError(f"{name} must be 0 (no resync) or a number of seconds, not {period!r}")
    return float(period)


def effective_period(requested: float, check_period: float) -> float:
    """What a handler gets that asks for `requested` when the informer looks every `check_period`.

    0 if either is 0: then it never resyncs. The check period is the finest there is (SI-27, SI-28).
    """
    if not requested or not check_period:
        return 0.0
    return max(requested, check_period)


class ResyncPeriods:
    """The periods of one informer, and what handlers can have of them.

    Args:
        default: the informer's own, in seconds; 0 for never.

    Attributes:
        default: of handlers that ask for none.
        check: how often the informer looks who is due.

    Raises:
        UsageError: the period is none.
    """

    def __init__(self, default: float) -> None:
        self.default = self.check = _raised(checked_period(default))

    def negotiate(self, requested: float | None, name: str, *, final: bool) -> float:
        """The period that a handler gets to ask for. A short one shortens the check period while that is possible.

        Args:
            requested: in seconds, 0 for never, None for the default.
            name: of the handler, for the log.
            final: the informer runs, so that its check period stays.

        Raises:
            UsageError: the period is none.
        """
        period = self.default if requested is None else _raised(checked_period(requested))
        if period and not self.check:
            _log.warning("%s asks for resyncs, but the informer was made with resync_period=0: it gets none", name)
        elif period and period < self.check:
            if final:
                _log.warning("%s resyncs every %g s: the informer runs already", name, self.check)
                return self.check
            self.check = period
        return period


def _raised(period: float) -> float:
    if 0 < period < MINIMUM_RESYNC_PERIOD:
        _log.warning("a resync period of %g s is raised to %g s", period, MINIMUM_RESYNC_PERIOD)
        return MINIMUM_RESYNC_PERIOD
    return period


@dataclass(slots=True)
class ResyncSchedule:
    """When one handler resyncs.

    Attributes:
        requested: what it asked for, in seconds; 0 for never.
        period: what it gets.
        next: when it is due.
        syncing: whether it takes part in the resync that is being told.
    """

    requested: float
    period: float = 0.0
    next: float = 0.0
    syncing: bool = False

    def adopt(self, check_period: float, now: float) -> None:
        """The informer looks every `check_period` from now on."""
        self.period = effective_period(self.requested, check_period)
        self.next = now + self.period

    def decide(self, now: float) -> bool:
        """Whether it takes part in the resync at `now`; if so, the next is scheduled."""
        self.syncing = bool(self.period) and now >= self.next
        if self.syncing:
            self.next = now + self.period
        return self.syncing
