"""When the server may be asked again: delays, pardons and promises, in one place.

Whatever goes wrong costs a delay of one growing backoff. A few things may happen at once *one time* (a pardon): the
second of its kind costs a delay, until the kind is forgiven because all has been well. And nothing is asked before the
time that the server named, whatever it is that would be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.retry_after import MAX_RETRY_AFTER

if TYPE_CHECKING:
    from collections.abc import Callable


class Pace:
    """Keeps the time before which nothing is asked.

    Args:
        options: of the backoff.
        random: numbers in [0, 1).

    Attributes:
        not_before: nothing may be asked before this time.
        attempts: how many delays in a row failures have cost; 0 once all is well.
    """

    def __init__(self, options: BackoffOptions, *, random: Callable[[], float]) -> None:
        self.not_before = 0.0
        self.attempts = 0
        self._backoff = Backoff(options, random=random)
        self._pardoned: set[str] = set()

    def delay(self, now: float) -> None:
        """Something went wrong: nothing is asked until the delay is over."""
        self.attempts += 1
        self.not_before = max(self.not_before, now + self._backoff.next(now))
        self.brake(now)

    def hold(self, seconds: float, now: float) -> None:
        """The server wants to be left alone so long (RFC 9110, 10.2.3)."""
        self.not_before = max(self.not_before, now + min(seconds, MAX_RETRY_AFTER))
        self._backoff.extend(self.not_before)

    def pardon(self, kind: str, now: float) -> bool:
        """Whether this may happen at once: the first of its kind since the kind was forgiven."""
        if kind in self._pardoned:
            return False
        self._pardoned.add(kind)
        self.brake(now)
        return True

    def forgive(self, *kinds: str) -> None:
        """All has been well in this respect: the next of these kinds is the first again."""
        self._pardoned.difference_update(kinds)

    def brake(self, now: float) -> None:
        """Pardons of several kinds may meet: together they must not make the server hot either."""
        self.not_before = max(self.not_before, self._backoff.brake(now))

    def at_rest(self, now: float) -> bool:
        """Whether nothing has gone wrong for so long that the next delay would be the first."""
        return self._backoff.at_rest(now)
