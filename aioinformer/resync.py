"""Who takes part in a resync, and when: client-go's rules (SI-25 to SI-28), decided from periods and `now`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aioinformer.errors import UsageError

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
