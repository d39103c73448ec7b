"""Rate limiters, as in client-go: how long an item waits before it is tried again.

The caller passes the time in; a limiter has no clock of its own. Delays are in seconds. No limiter refuses an item:
items that come too fast get longer delays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Computes how long an item waits before its next try."""

    def when(self, item: T_contra, now: float) -> float:
        """Count one more failure of the item and return the delay before its next try, in seconds."""

    def forget(self, item: T_contra) -> None:
        """Reset the failure count of the item."""

    def num_requeues(self, item: T_contra) -> int:
        """Return how often the item has failed since the last `forget`; 0 if the limiter does not count."""


class _FailureCount(Generic[T]):
    """Counts the failures of each item. An item that is never forgotten stays in memory."""

    def __init__(self) -> None:
        self._failures: dict[T, int] = {}

    def forget(self, item: T) -> None:
        """Reset the failure count of the item."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """Return how often the item has failed since the last `forget`."""
        return self._failures.get(item, 0)

    def _count_failure(self, item: T) -> int:
        failures = self._failures.get(item, 0) + 1
        self._failures[item] = failures
        return failures


class ItemExponentialFailureRateLimiter(_FailureCount[T]):
    """Doubles the delay with each failure of an item, up to `max_delay`.

    Failures are counted until `forget`; an item that is never forgotten stays in memory.

    Args:
        base_delay: the delay after the first failure.
        max_delay: the longest delay.

    Raises:
        ValueError: the delays are not 0 < `base_delay` <= `max_delay`.
    """

    def __init__(self, base_delay: float = 0.001, max_delay: float = 1000.0) -> None:
        super().__init__()
        if not 0 < base_delay <= max_delay < math.inf:
            raise ValueError(f"delays must be 0 < base_delay <= max_delay, not {base_delay!r} and {max_delay!r}")
        self._base = base_delay
        self._max = max_delay
        #: This many doublings reach `max_delay`. More are not computed: the float would overflow.
        self._doublings = math.ceil(math.log2(max_delay) - math.log2(base_delay))

    def when(self, item: T, now: float) -> float:
        """Return the delay, which doubles with each call."""
        doublings = self._count_failure(item) - 1
        if doublings >= self._doublings:
            return self._max
        return min(math.ldexp(self._base, doublings), self._max)


class ItemFastSlowRateLimiter(_FailureCount[T]):
    """Returns a short delay for the first failures of an item and a long one afterwards.

    Failures are counted until `forget`; an item that is never forgotten stays in memory.

    Args:
        fast_delay: the short delay.
        slow_delay: the long delay.
        max_fast_attempts: the number of failures with the short delay.

    Raises:
        ValueError: an argument is negative.
    """

    def __init__(self, fast_delay: float, slow_delay: float, max_fast_attempts: int) -> None:
        super().__init__()
        if fast_delay < 0 or slow_delay < 0 or max_fast_attempts < 0:
            raise ValueError(
                "fast_delay, slow_delay and max_fast_attempts must be 0 or more, "
                f"not {fast_delay!r}, {slow_delay!r} and {max_fast_attempts!r}"
            )
        self._fast = fast_delay
        self._slow = slow_delay
        self._max_fast = max_fast_attempts

    def when(self, item: T, now: float) -> float:
        """Return the short delay or the long one."""
        return self._fast if self._count_failure(item) <= self._max_fast else self._slow


class TokenBucket:
    """Allows `qps` operations a second on average, and bursts of up to `burst`.

    Args:
        qps: tokens added each second.
        burst: the capacity of the bucket, which starts full.

    Raises:
        ValueError: `qps` is not positive, or `burst` is less than 1.
    """

    def __init__(self, qps: float, burst: int) -> None:
        if not qps > 0 or burst < 1:
            raise ValueError(f"qps must be positive and burst at least 1, not {qps!r} and {burst!r}")
        self.qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = -math.inf

    def reserve(self, now: float) -> float:
        """Take a token, in advance if the bucket is empty; return the seconds until it is available."""
        self._fill(now)
        self._tokens -= 1.0
        return max(-self._tokens / self.qps, 0.0)

    def try_take(self, now: float) -> bool:
        """Take a token if one is available; return whether one was."""
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def give_back(self) -> None:
        """Return an unused token to the bucket."""
        self._tokens = min(self._tokens + 1.0, self._burst)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self._tokens + (now - self._at) * self.qps, self._burst)
            self._at = now


class BucketRateLimiter(Generic[T]):
    """Limits all items together with one token bucket; it counts no failures.

    Args:
        qps: items a second, on average.
        burst: how many items may come at once.

    Raises:
        ValueError: `qps` is not positive, or `burst` is less than 1.
    """

    def __init__(self, qps: float = 10.0, burst: int = 100) -> None:
        self._bucket = TokenBucket(qps, burst)

    def when(self, item: T, now: float) -> float:
        """Reserve a token and return the seconds until it is available."""
        return self._bucket.reserve(now)

    def forget(self, item: T) -> None:
        """Do nothing: a reserved token stays reserved."""

    def num_requeues(self, item: T) -> int:
        """Return 0: the bucket counts no failures."""
        return 0


class MaxOfRateLimiter(Generic[T]):
    """Returns the longest delay of several limiters.

    All limiters are called each time. So a bucket spends a token even if another limiter's delay is longer, as in
    client-go.

    Args:
        limiters: at least one.

    Raises:
        ValueError: there is no limiter.
    """

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        if not limiters:
            raise ValueError("MaxOfRateLimiter needs at least one limiter")
        self._limiters = limiters

    def when(self, item: T, now: float) -> float:
        """Return the longest delay."""
        return max([limiter.when(item, now) for limiter in self._limiters])

    def forget(self, item: T) -> None:
        """Reset the failure count of the item in all limiters."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return the highest failure count."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


class _Wrapper(Generic[T]):
    """A limiter that counts failures in another one."""

    def __init__(self, limiter: RateLimiter[T]) -> None:
        self._limiter = limiter

    def forget(self, item: T) -> None:
        """Reset the failure count of the item in the wrapped limiter."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return the failure count of the wrapped limiter."""
        return self._limiter.num_requeues(item)


class WithMaxWaitRateLimiter(_Wrapper[T]):
    """Limits the delays of another limiter.

    Args:
        limiter: the limiter to wrap.
        max_delay: the longest delay.

    Raises:
        ValueError: `max_delay` is negative.
    """

    def __init__(self, limiter: RateLimiter[T], max_delay: float) -> None:
        super().__init__(limiter)
        if not max_delay >= 0:
            raise ValueError(f"max_delay must be 0 or more, not {max_delay!r}")
        self._max = max_delay

    def when(self, item: T, now: float) -> float:
        """Return the wrapped limiter's delay, at most `max_delay`."""
        return min(self._limiter.when(item, now), self._max)


class WithJitterRateLimiter(_Wrapper[T]):
    """Spreads the delays of another limiter, so that items that fail together are not retried together.

    Args:
        limiter: the limiter to wrap.
        jitter: each delay d is drawn from [d, d * (1 + jitter)).
        random: returns a number in [0, 1), such as `random.random`.

    Raises:
        ValueError: `jitter` is negative.
    """

    def __init__(self, limiter: RateLimiter[T], jitter: float, random: Callable[[], float]) -> None:
        super().__init__(limiter)
        if not jitter >= 0:
            raise ValueError(f"jitter must be 0 or more, not {jitter!r}")
        self._jitter = jitter
        self._random = random

    def when(self, item: T, now: float) -> float:
        """Return the wrapped limiter's delay, with jitter."""
        return self._limiter.when(item, now) * (1 + self._jitter * self._random())


def default_controller_rate_limiter() -> RateLimiter[object]:
    """Return the default of controllers: 5 ms doubling to 1000 s for each item; 10 a second, burst 100, for all."""
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1000.0), BucketRateLimiter(10.0, 100))


def default_item_based_rate_limiter() -> RateLimiter[object]:
    """Return a limiter with 1 ms doubling to 1000 s for each item, and no limit for all items together."""
    return ItemExponentialFailureRateLimiter(0.001, 1000.0)
