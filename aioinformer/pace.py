"""When the server may be asked again: delays, immediate retries and the times that the server named, in one place.

Every failure costs a delay of one growing backoff. A few kinds of events may be followed by a request at once *one
time* (`allow_immediate`): the second of a kind costs a delay, until the kind is reset because all has been well. And
nothing is sent before the time that the server named, whatever would be sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.retry_after import MAX_RETRY_AFTER

if TYPE_CHECKING:
    from collections.abc import Callable


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
