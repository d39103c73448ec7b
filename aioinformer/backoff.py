"""How long to wait after a failure: one exponential, jittered, self-resetting sequence of delays."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from aioinformer.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


#: A server that asks for more is not believed: it would look like a hang.
MAX_RETRY_AFTER = 3600.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds before which the server does not want to be asked again; None if it does not say.

    A date is taken relative to the server's own `Date`, so that no clock is needed.
    """
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        seconds = (parsedate_to_datetime(text) - parsedate_to_datetime(headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


class RetryWithDeadline:
    """Limit immediate retries to a time since the first failure of a row.

    Args:
        retryable: which failures count; others change nothing.
        max_duration: seconds since the first failure while retrying is allowed; 0 for never.
        min_reset_period: seconds without a failure, after which the next is the first of a new row.
    """

    def __init__(
        self, retryable: Callable[[BaseException], bool], max_duration: float, min_reset_period: float = 60.0
    ) -> None:
        if not min_reset_period >= 0:
            raise ValueError(f"min_reset_period must be 0 or more, not {min_reset_period!r}")
        self._retryable = retryable
        self._max_duration = max_duration
        self._min_reset_period = min_reset_period
        self._first: float | None = None
        self._last = 0.0

    def count_failure(self, error: BaseException, now: float) -> bool:
        """Count a failure; return whether to try again at once.

        Args:
            error: what a try ended with. One that is not retryable changes nothing, and is not retried.
            now: the time, in seconds.

        Returns:
            True until `max_duration` after the first failure of the row. After the one False that follows, the next
            failure is the first of a new row.
        """
        if not self._retryable(error) or self._max_duration <= 0:
            return False
        if self._first is None or now - self._last >= self._min_reset_period:
            self._first = now
        self._last = now
        if now - self._first <= self._max_duration:
            return True
        self._first = None
        return False


@dataclass(frozen=True, slots=True)
class BackoffOptions:
    """The shape of a backoff, in seconds; the defaults are client-go's for reflectors (REF-06).

    Attributes:
        initial: the first delay, before jitter.
        factor: by which each delay grows.
        cap: the longest delay, before jitter.
        jitter: each delay is drawn from [d, d * (1 + jitter)).
        reset_after: health of this length makes the next delay the first again.
    """

    initial: float = 0.8
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 1.0
    reset_after: float = 120.0

    def __post_init__(self) -> None:
        for name in ("initial", "cap", "reset_after"):
            if getattr(self, name) <= 0:
                raise OptionError(f"backoff {name} must be positive, not {getattr(self, name)!r}")
        if self.factor < 1:
            raise OptionError(f"backoff factor must be at least 1, not {self.factor!r}")
        if self.jitter < 0:
            raise OptionError(f"backoff jitter must not be negative, not {self.jitter!r}")


class Backoff:
    """Delays that grow with each failure and start anew after a time of health.

    Health is measured from the end of the last delay, so that a server that fails for ever is asked ever more
    rarely; client-go measures from the last reset and therefore starts anew every two minutes (REF-07).

    Args:
        options: the shape.
        random: gives numbers in [0, 1).
    """

    def __init__(self, options: BackoffOptions | None = None, *, random: Callable[[], float]) -> None:
        self._options = options or BackoffOptions()
        self._random = random
        self._delay = 0.0
        self._recent: deque[float] = deque([float("-inf")] * 3, maxlen=3)
        self._ends = float("-inf")

    def at_rest(self, now: float) -> bool:
        """Whether the next delay would be the first: nothing has failed, or all has been well for long enough."""
        return not self._delay or now - self._ends >= self._options.reset_after

    def next(self, now: float) -> float:
        """The delay, in seconds, that the failure at `now` costs."""
        options = self._options
        if self.at_rest(now):
            self._delay = options.initial
        else:
            self._delay = min(self._delay * options.factor, options.cap)
        delay = self._delay * (1 + options.jitter * self._random())
        self._ends = now + delay
        return delay

    def reset(self) -> None:
        """Make the next delay the first again."""
        self._delay, self._ends = 0.0, float("-inf")

    def limit_burst(self, now: float) -> float:
        """Count one end of a request at `now`, whether it costs a delay or not.

        Returns:
            The time before which nothing should be tried: after the third of a burst, two and a half first delays
            after the first of the three. Failures that are all delayed never get there.
        """
        self._recent.append(now)
        return self._recent[0] + 2.5 * self._options.initial

    def extend(self, until: float) -> None:
        """The wait lasts longer than the delay (the server said so); health is counted from its end."""
        self._ends = max(self._ends, until)
