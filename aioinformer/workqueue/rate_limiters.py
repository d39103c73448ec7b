"""How long an item has to wait before it is tried again: client-go's rate limiters (WQ-12, WQ-13).

A limiter is asked with the time, and keeps no clock of its own. Delays are in seconds. None of them ever refuses;
what comes too fast waits longer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class RateLimiter(Protocol[T_contra]):
    """Says when an item may be tried again."""

    def when(self, item: T_contra, now: float) -> float:
        """The delay, in seconds, before this try; the item has failed once more."""
        ...

    def forget(self, item: T_contra) -> None:
        """The item is done with, well or for good; its next failure is its first."""
        ...

    def num_requeues(self, item: T_contra) -> int:
        """How often the item has failed since it was forgotten; 0 where nobody counts."""
        ...


class ItemExponentialFailureRateLimiter(Generic[T]):
    """Doubles the delay with each failure of an item: `base_delay * 2**failures`, capped.

    What is never forgotten stays counted, and in memory.

    Args:
        base_delay: the delay after the first failure.
        max_delay: the longest.
    """

    def __init__(self, base_delay: float = 0.001, max_delay: float = 1000.0) -> None:
        if not 0 < base_delay <= max_delay < math.inf:
            raise ValueError(f"delays must be 0 < base_delay <= max_delay, not {base_delay!r} and {max_delay!r}")
        self._base = base_delay
        self._max = max_delay
        #: So many doublings reach the cap; more are not computed, or a float would overflow one day.
        self._doublings = math.ceil(math.log2(max_delay) - math.log2(base_delay))
        self._failures: dict[T, int] = {}

    def when(self, item: T, now: float) -> float:
        """The delay, which doubles each time."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        if failures >= self._doublings:
            return self._max
        return min(math.ldexp(self._base, failures), self._max)

    def forget(self, item: T) -> None:
        """Starts anew for this item."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """How often the item has failed."""
        return self._failures.get(item, 0)


class ItemFastSlowRateLimiter(Generic[T]):
    """A short delay for the first failures of an item, a long one for all that follow.

    Args:
        fast_delay: the short one.
        slow_delay: the long one.
        max_fast_attempts: how many failures get the short one.
    """

    def __init__(self, fast_delay: float, slow_delay: float, max_fast_attempts: int) -> None:
        if fast_delay < 0 or slow_delay < 0 or max_fast_attempts < 0:
            raise ValueError(
                "fast_delay, slow_delay and max_fast_attempts must be 0 or more, "
                f"not {fast_delay!r}, {slow_delay!r} and {max_fast_attempts!r}"
            )
        self._fast = fast_delay
        self._slow = slow_delay
        self._max_fast = max_fast_attempts
        self._failures: dict[T, int] = {}

    def when(self, item: T, now: float) -> float:
        """The short delay or the long one."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        return self._fast if failures <= self._max_fast else self._slow

    def forget(self, item: T) -> None:
        """Starts anew for this item."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """How often the item has failed."""
        return self._failures.get(item, 0)


class TokenBucket:
    """So many things a second, and a burst of more after a rest.

    Args:
        qps: tokens that come in each second.
        burst: as many fit in; the bucket begins full.
    """

    def __init__(self, qps: float, burst: int) -> None:
        if not qps > 0 or burst < 1:
            raise ValueError(f"qps must be positive and burst at least 1, not {qps!r} and {burst!r}")
        self.qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = -math.inf

    def reserve(self, now: float) -> float:
        """Takes a token, of the future if there is none; returns the seconds until it is there."""
        self._fill(now)
        self._tokens -= 1.0
        return max(-self._tokens / self.qps, 0.0)

    def try_take(self, now: float) -> bool:
        """Takes a token if there is one now; returns whether."""
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def give_back(self) -> None:
        """A token that was taken is not needed."""
        self._tokens = min(self._tokens + 1.0, self._burst)

    def _fill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self._tokens + (now - self._at) * self.qps, self._burst)
            self._at = now


class BucketRateLimiter(Generic[T]):
    """One token bucket for all items together, whoever they are; it counts no failures.

    Args:
        qps: items a second, on average.
        burst: so many may come at once after a rest.
    """

    def __init__(self, qps: float = 10.0, burst: int = 100) -> None:
        self._bucket = TokenBucket(qps, burst)

    def when(self, item: T, now: float) -> float:
        """The seconds until the token that this reserves is there."""
        return self._bucket.reserve(now)

    def forget(self, item: T) -> None:
        """Does nothing: a token that was reserved is used."""

    def num_requeues(self, item: T) -> int:
        """0."""
        return 0


class MaxOfRateLimiter(Generic[T]):
    """The longest of what several limiters say.

    Each is asked each time. So a bucket gives away a token also where another limiter's delay is the longer one, as
    in client-go.

    Args:
        limiters: one at least.
    """

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        if not limiters:
            raise ValueError("MaxOfRateLimiter takes one limiter at least")
        self._limiters = limiters

    def when(self, item: T, now: float) -> float:
        """The longest delay."""
        return max([limiter.when(item, now) for limiter in self._limiters])

    def forget(self, item: T) -> None:
        """Tells all of them."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The highest count."""
        return max(limiter.num_requeues(item) for limiter in self._limiters)


class WithMaxWaitRateLimiter(Generic[T]):
    """Cuts the delays of another limiter.

    Args:
        limiter: that one.
        max_delay: nothing waits longer, whatever it says.
    """

    def __init__(self, limiter: RateLimiter[T], max_delay: float) -> None:
        if not max_delay >= 0:
            raise ValueError(f"max_delay must be 0 or more, not {max_delay!r}")
        self._limiter = limiter
        self._max = max_delay

    def when(self, item: T, now: float) -> float:
        """The delay, at most `max_delay`."""
        return min(self._limiter.when(item, now), self._max)

    def forget(self, item: T) -> None:
        """Tells the other limiter."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """What the other limiter counts."""
        return self._limiter.num_requeues(item)


class WithJitterRateLimiter(Generic[T]):
    """Spreads the delays of another limiter, so that what failed together does not come back together.

    Args:
        limiter: that one.
        jitter: each delay d is drawn from [d, d * (1 + jitter)).
        random: gives numbers in [0, 1), such as `random.random`.
    """

    def __init__(self, limiter: RateLimiter[T], jitter: float, random: Callable[[], float]) -> None:
        if not jitter >= 0:
            raise ValueError(f"jitter must be 0 or more, not {jitter!r}")
        self._limiter = limiter
        self._jitter = jitter
        self._random = random

    def when(self, item: T, now: float) -> float:
        """The delay, or somewhat more."""
        return self._limiter.when(item, now) * (1 + self._jitter * self._random())

    def forget(self, item: T) -> None:
        """Tells the other limiter."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """What the other limiter counts."""
        return self._limiter.num_requeues(item)


def default_controller_rate_limiter() -> RateLimiter[object]:
    """What controllers use: 5 ms doubling to 1000 s for each item, and ten a second, after a hundred, for all."""
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1000.0), BucketRateLimiter(10.0, 100))


def default_item_based_rate_limiter() -> RateLimiter[object]:
    """1 ms doubling to 1000 s for each item, and no limit for all."""
    return ItemExponentialFailureRateLimiter(0.001, 1000.0)
