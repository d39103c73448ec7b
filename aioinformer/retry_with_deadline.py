"""Retry at once, but for a limited time only, as client-go's RetryWithDeadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
