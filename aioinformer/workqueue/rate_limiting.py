"""A work queue for work that fails: what failed comes back later, and ever later (WQ-11)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from aioinformer.workqueue.delaying import DelayingQueue
from aioinformer.workqueue.rate_limiters import default_controller_rate_limiter

if TYPE_CHECKING:
    from aioinformer.metrics import MetricsProvider
    from aioinformer.workqueue.orders import QueueOrder
    from aioinformer.workqueue.rate_limiters import RateLimiter

T = TypeVar("T", bound=Hashable)


class RateLimitingQueue(DelayingQueue[T]):
    """A delaying queue with `add_rate_limited`.

    What failed is added with `add_rate_limited`; what succeeded, or is given up, is forgotten with `forget`, or its
    next failure counts as one more. `done` is a third thing, and called either way.

    Args:
        rate_limiter: says how long to wait; by default `default_controller_rate_limiter()`.
        name: for statistics and error messages.
        order: what comes next of what is queued; by default, what was added first.
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
        """Adds an item after the delay that the rate limiter says."""
        self.add_after(item, self._rate_limiter.when(item, self._now()))

    def forget(self, item: T) -> None:
        """Forgets how often an item has failed."""
        self._rate_limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """How often an item has failed since it was forgotten."""
        return self._rate_limiter.num_requeues(item)
