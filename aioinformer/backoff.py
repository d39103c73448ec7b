"""How long to wait after a failure: exponential backoff, immediate retries with a deadline, and `Retry-After`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aioinformer.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The longest `Retry-After` that is followed, in seconds: a longer wait would look like a hang.
MAX_RETRY_AFTER = 3600.0


class BackoffOptions(msgspec.Struct, frozen=True):
    """The parameters of a backoff. The defaults are those of client-go's reflectors.

    Attributes:
        initial: the first delay in seconds, before jitter.
        factor: multiplies the delay after each failure.
        cap: the longest delay in seconds, before jitter.
        jitter: each delay is drawn from [d, d * (1 + jitter)).
        reset_after: after this many seconds without failure, the next delay is `initial` again.

    Raises:
        OptionError: a value is out of range.
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
    """Delays that grow with each failure, and reset after a time without failure.

    The time without failure counts from the end of the last delay, so that delays stay long while a server keeps
    failing. client-go counts from the last reset, and therefore starts again with the first delay every two minutes.

    Args:
        options: the parameters.
        random: returns numbers in [0, 1).
    """

    __slots__ = ("_delay", "_ends", "_options", "_random", "_recent")

    def __init__(self, options: BackoffOptions | None = None, *, random: Callable[[], float]) -> None:
        self._options = options or BackoffOptions()
        self._random = random
        self._delay = 0.0
        self._recent = (float("-inf"),) * 3
        self._ends = float("-inf")

    def at_rest(self, now: float) -> bool:
        """Return whether the next delay is the first: nothing has failed yet, or not for `reset_after` seconds."""
        return not self._delay or now - self._ends >= self._options.reset_after

    def next(self, now: float) -> float:
        """Count a failure at `now`; return the delay after it, in seconds."""
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
        """Count the end of a request at `now`, whether or not a delay follows it.

        Returns:
            The time before which no request should be sent: `2.5 * initial` after the first of the last three ends.
            That time has already passed unless three requests end without delays in between.
        """
        self._recent = (*self._recent[1:], now)
        return self._recent[0] + 2.5 * self._options.initial

    def extend(self, until: float) -> None:
        """Count the time without failure from `until`, if that is after the end of the delay (`Retry-After`)."""
        self._ends = max(self._ends, until)


class RetryWithDeadline:
    """Limits immediate retries to a time since the first failure of a series.

    Args:
        retryable: returns whether a failure counts; others change nothing.
        max_duration: seconds after the first failure in which retries are allowed; 0 for none.
        min_reset_period: after this many seconds without a failure, the next one begins a new series.

    Raises:
        ValueError: `min_reset_period` is negative.
    """

    __slots__ = ("_first", "_last", "_max_duration", "_min_reset_period", "_retryable")

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
        """Count a failure; return whether to retry at once.

        Args:
            error: the failure. If it is not retryable, nothing changes, and the result is False.
            now: the time, in seconds.

        Returns:
            True until `max_duration` after the first failure of the series, then False once; the next failure begins a
            new series.
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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the header `Retry-After` asks to wait, at most `MAX_RETRY_AFTER`; None without one.

    A date in it is compared with the server's own `Date` header, so that the local clock does not matter.
    """
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # rarely needed, and slow to import

    try:
        seconds = (parsedate_to_datetime(text) - parsedate_to_datetime(headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
