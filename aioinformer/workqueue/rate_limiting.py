"""A work queue that retries failed items with backoff."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from aioinformer.metrics.provider import MetricsProvider
from aioinformer.workqueue.delaying import DelayingQueue
from aioinformer.workqueue.orders import QueueOrder
from aioinformer.workqueue.rate_limiters import RateLimiter, default_controller_rate_limiter
from aioinformer.workqueue.waiting import loop_time

T = TypeVar("T", bound=Hashable)


class RateLimitingQueue(DelayingQueue[T]):
    """A delaying queue with `add_rate_limited`.

    After a failure, call `add_rate_limited`. After a success, or when you stop retrying, call `forget`: otherwise the
    next failure of the item adds to its count. Call `done` in both cases.

    Args:
        rate_limiter: computes the delays; `default_controller_rate_limiter()` by default.
        name: for statistics and error messages.
        order: decides which queued item comes next; first in, first out by default.
        metrics: as for `WorkQueue`.
    """

    def __init__(
        self,
        rate_limiter: RateLimiter[T] | None = None,
        name: str = "",
        *,
        order: QueueOrder[T] | None = None,
        metrics: MetricsProvider | None = None,
    ) -> None:
        super().__init__(name, order=order, metrics=metrics)
        self._rate_limiter: RateLimiter[T] = rate_limiter or default_controller_rate_limiter()

    def add_rate_limited(self, item: T) -> None:
        """Add an item after the delay that the rate limiter returns.

        Raises:
            UsageError: the rate limiter returned NaN.
            RuntimeError: no event loop is running.
        """
        self.add_after(item, self._rate_limiter.when(item, loop_time()))

    def forget(self, item: T) -> None:
        """Reset the failure count of an item."""
        self._rate_limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return how often an item has failed since the last `forget`."""
        return self._rate_limiter.num_requeues(item)
