"""Work queues, rate limiters and retries, as in client-go's util/workqueue and util/retry."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.workqueue.delaying import Delayed, DelayingQueue
    from aioinformer.workqueue.orders import FIFOOrder, PriorityOrder, QueueOrder
    from aioinformer.workqueue.parallelizer import parallelize
    from aioinformer.workqueue.queue import QueueShutDown, Work, WorkQueue
    from aioinformer.workqueue.rate_limiters import (
        BucketRateLimiter,
        ItemExponentialFailureRateLimiter,
        ItemFastSlowRateLimiter,
        MaxOfRateLimiter,
        RateLimiter,
        TokenBucket,
        WithJitterRateLimiter,
        WithMaxWaitRateLimiter,
        default_controller_rate_limiter,
        default_item_based_rate_limiter,
    )
    from aioinformer.workqueue.rate_limiting import RateLimitingQueue
    from aioinformer.workqueue.retry import (
        DEFAULT_BACKOFF,
        DEFAULT_RETRY,
        RetryBackoff,
        is_conflict,
        on_error,
        retry_on_conflict,
    )

__all__ = [
    "DEFAULT_BACKOFF",
    "DEFAULT_RETRY",
    "BucketRateLimiter",
    "Delayed",
    "DelayingQueue",
    "FIFOOrder",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "PriorityOrder",
    "QueueOrder",
    "QueueShutDown",
    "RateLimiter",
    "RateLimitingQueue",
    "RetryBackoff",
    "TokenBucket",
    "WithJitterRateLimiter",
    "WithMaxWaitRateLimiter",
    "Work",
    "WorkQueue",
    "default_controller_rate_limiter",
    "default_item_based_rate_limiter",
    "is_conflict",
    "on_error",
    "parallelize",
    "retry_on_conflict",
]

if not TYPE_CHECKING:  # a type checker must not accept misspelt names
    from aioinformer.exports import lazy_exports as _lazy_exports

    __getattr__, __dir__ = _lazy_exports(
        __name__,
        {
            "delaying": "Delayed DelayingQueue",
            "orders": "FIFOOrder PriorityOrder QueueOrder",
            "parallelizer": "parallelize",
            "queue": "QueueShutDown Work WorkQueue",
            "rate_limiters": (
                "BucketRateLimiter ItemExponentialFailureRateLimiter ItemFastSlowRateLimiter MaxOfRateLimiter "
                "RateLimiter TokenBucket WithJitterRateLimiter WithMaxWaitRateLimiter "
                "default_controller_rate_limiter default_item_based_rate_limiter"
            ),
            "rate_limiting": "RateLimitingQueue",
            "retry": "DEFAULT_BACKOFF DEFAULT_RETRY RetryBackoff is_conflict on_error retry_on_conflict",
        },
    )
