"""Work queues, rate limiters and retries, as in client-go's util/workqueue and util/retry."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from aioinformer.workqueue.delaying import Delayed as Delayed
    from aioinformer.workqueue.delaying import DelayingQueue as DelayingQueue
    from aioinformer.workqueue.orders import FIFOOrder as FIFOOrder
    from aioinformer.workqueue.orders import PriorityOrder as PriorityOrder
    from aioinformer.workqueue.orders import QueueOrder as QueueOrder
    from aioinformer.workqueue.parallelizer import parallelize as parallelize
    from aioinformer.workqueue.queue import QueueShutDown as QueueShutDown
    from aioinformer.workqueue.queue import Work as Work
    from aioinformer.workqueue.queue import WorkQueue as WorkQueue
    from aioinformer.workqueue.rate_limiters import BucketRateLimiter as BucketRateLimiter
    from aioinformer.workqueue.rate_limiters import (
        ItemExponentialFailureRateLimiter as ItemExponentialFailureRateLimiter,
    )
    from aioinformer.workqueue.rate_limiters import ItemFastSlowRateLimiter as ItemFastSlowRateLimiter
    from aioinformer.workqueue.rate_limiters import MaxOfRateLimiter as MaxOfRateLimiter
    from aioinformer.workqueue.rate_limiters import RateLimiter as RateLimiter
    from aioinformer.workqueue.rate_limiters import TokenBucket as TokenBucket
    from aioinformer.workqueue.rate_limiters import WithJitterRateLimiter as WithJitterRateLimiter
    from aioinformer.workqueue.rate_limiters import WithMaxWaitRateLimiter as WithMaxWaitRateLimiter
    from aioinformer.workqueue.rate_limiters import default_controller_rate_limiter as default_controller_rate_limiter
    from aioinformer.workqueue.rate_limiters import default_item_based_rate_limiter as default_item_based_rate_limiter
    from aioinformer.workqueue.rate_limiting import RateLimitingQueue as RateLimitingQueue
    from aioinformer.workqueue.retry import DEFAULT_BACKOFF as DEFAULT_BACKOFF
    from aioinformer.workqueue.retry import DEFAULT_RETRY as DEFAULT_RETRY
    from aioinformer.workqueue.retry import RetryBackoff as RetryBackoff
    from aioinformer.workqueue.retry import is_conflict as is_conflict
    from aioinformer.workqueue.retry import on_error as on_error
    from aioinformer.workqueue.retry import retry_on_conflict as retry_on_conflict
else:  # a type checker must not accept misspelt names
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
