"""Retrying at once, but not for longer than a certain time: client-go's RetryWithDeadline (RWD-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class RetryWithDeadline:
    """Counts the time since the first of a row of failures; when that is too long, retrying is not allowed once.

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

    def after(self, error: BaseException | None, now: float) -> None:
        """Notes how a try ended."""
        if error is None or not self._retryable(error):
            return
        if self._first is None or now - self._last >= self._min_reset_period:
            self._first = now
        self._last = now

    def should_retry(self, now: float) -> bool:
        """Whether to try again at once. Once it says no, all is forgotten."""
        if self._max_duration <= 0 or self._first is None:
            return False
        if now - self._first <= self._max_duration:
            return True
        self._first = None
        return False
