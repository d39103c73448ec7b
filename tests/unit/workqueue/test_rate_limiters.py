"""The delays of the rate limiters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

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

if TYPE_CHECKING:
    from collections.abc import Callable


def delays(limiter: RateLimiter[str], item: str, times: int, now: float = 0.0) -> list[float]:
    return [limiter.when(item, now) for _ in range(times)]


@pytest.mark.conformance("WQ-12")
def test_exponential_delay_doubles_up_to_the_maximum() -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(1.0, 10.0)
    assert delays(limiter, "a", 6) == [1, 2, 4, 8, 10, 10]


@pytest.mark.conformance("WQ-12")
def test_each_item_has_its_own_delay() -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(1.0, 10.0)
    delays(limiter, "a", 5)
    assert delays(limiter, "b", 2) == [1, 2]


@pytest.mark.conformance("WQ-11", "WQ-12")
def test_forgotten_item_starts_again() -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(1.0, 10.0)
    delays(limiter, "a", 3)
    assert limiter.num_requeues("a") == 3
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert delays(limiter, "a", 1) == [1]


@pytest.mark.conformance("WQ-12")
@pytest.mark.parametrize(("base", "cap"), [(1.0, 1000.0), (1e-9, 1e300), (5e-324, 1e308), (3.0, 3.0)])
def test_delay_stays_at_the_maximum(base: float, cap: float) -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(base, cap)
    assert delays(limiter, "a", 5000)[-1] == cap


@pytest.mark.conformance("WQ-12")
def test_fast_slow_limiter_is_fast_first_and_slow_later() -> None:
    limiter: RateLimiter[str] = ItemFastSlowRateLimiter(0.005, 10.0, 3)
    assert delays(limiter, "a", 5) == [0.005, 0.005, 0.005, 10, 10]
    assert limiter.num_requeues("a") == 5
    limiter.forget("a")
    assert delays(limiter, "a", 1) == [0.005]


@pytest.mark.conformance("WQ-12")
def test_bucket_allows_a_burst_then_its_rate() -> None:
    limiter: RateLimiter[str] = BucketRateLimiter(qps=10.0, burst=3)
    assert delays(limiter, "a", 6) == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


@pytest.mark.conformance("WQ-12")
def test_bucket_is_shared_by_all_items_and_counts_no_failures() -> None:
    limiter: RateLimiter[str] = BucketRateLimiter(qps=1.0, burst=1)
    assert [limiter.when(item, 0.0) for item in "abc"] == [0, 1, 2]
    limiter.forget("c")
    assert limiter.when("c", 0.0) == 3
    assert limiter.num_requeues("c") == 0


@pytest.mark.conformance("WQ-12")
def test_bucket_refills_up_to_its_burst() -> None:
    limiter: RateLimiter[str] = BucketRateLimiter(qps=1.0, burst=2)
    delays(limiter, "a", 2, now=0.0)
    assert delays(limiter, "a", 1, now=0.75) == [0.25]
    assert delays(limiter, "a", 3, now=100.0) == [0, 0, 1]


def test_clock_that_goes_back_adds_no_tokens() -> None:
    bucket = TokenBucket(qps=1.0, burst=1)
    assert [bucket.reserve(at) for at in (100.0, 0.0, 101.0)] == [0, 1, 1]


@pytest.mark.conformance("FC-02")
def test_try_take_fails_without_a_token() -> None:
    bucket = TokenBucket(qps=1.0, burst=2)
    assert [bucket.try_take(at) for at in (0.0, 0.0, 0.0, 0.5, 1.0, 1.0)] == [True, True, False, False, True, False]


@pytest.mark.conformance("WQ-12")
def test_max_of_limiter_returns_the_longest_delay() -> None:
    limiter: RateLimiter[str] = MaxOfRateLimiter(
        ItemFastSlowRateLimiter(5.0, 100.0, 2), ItemExponentialFailureRateLimiter(1.0, 1000.0)
    )
    assert delays(limiter, "a", 9) == [5, 5, 100, 100, 100, 100, 100, 128, 256]
    assert limiter.num_requeues("a") == 9
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert delays(limiter, "a", 1) == [5]


@pytest.mark.conformance("WQ-12")
def test_max_of_limiter_returns_the_highest_count() -> None:
    limiter: RateLimiter[str] = MaxOfRateLimiter(BucketRateLimiter(), ItemExponentialFailureRateLimiter(1.0, 10.0))
    delays(limiter, "a", 3)
    assert limiter.num_requeues("a") == 3


@pytest.mark.conformance("WQ-13")
def test_max_of_limiter_spends_a_bucket_token_each_time() -> None:
    limiter: RateLimiter[str] = MaxOfRateLimiter(ItemFastSlowRateLimiter(50.0, 50.0, 1), BucketRateLimiter(1.0, 1))
    assert delays(limiter, "a", 53)[-3:] == [50, 51, 52]


@pytest.mark.conformance("WQ-12")
def test_max_wait_limits_the_delay_and_still_counts() -> None:
    limiter: RateLimiter[str] = WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(1.0, 1000.0), 5.0)
    assert delays(limiter, "a", 5) == [1, 2, 4, 5, 5]
    assert limiter.num_requeues("a") == 5
    limiter.forget("a")
    assert delays(limiter, "a", 1) == [1]


@pytest.mark.conformance("WEAK-25")
def test_jitter_adds_a_random_share_of_the_delay() -> None:
    numbers = iter([0.0, 0.5, 0.999])
    limiter: RateLimiter[str] = WithJitterRateLimiter(
        ItemExponentialFailureRateLimiter(1.0, 1000.0), 0.5, lambda: next(numbers)
    )
    assert delays(limiter, "a", 3) == pytest.approx([1, 2.5, 5.998])
    assert limiter.num_requeues("a") == 3
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0


@pytest.mark.conformance("WQ-13")
def test_controller_default_doubles_5_ms_up_to_1000_s() -> None:
    limiter = default_controller_rate_limiter()
    assert [limiter.when("a", now=1000.0 * number) for number in range(19)] == pytest.approx(
        [min(0.005 * 2**number, 1000) for number in range(19)]
    )


@pytest.mark.conformance("WQ-13")
def test_controller_default_allows_100_then_10_a_second() -> None:
    limiter = default_controller_rate_limiter()
    assert [limiter.when(number, 0.0) for number in range(103)][-4:] == pytest.approx([0.005, 0.1, 0.2, 0.3])


@pytest.mark.conformance("WQ-13")
def test_item_based_default_doubles_1_ms_up_to_1000_s() -> None:
    limiter = default_item_based_rate_limiter()
    assert delays(limiter, "a", 21)[::10] == pytest.approx([0.001, 1.024, 1000])


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: ItemExponentialFailureRateLimiter(0.0, 1.0), "base_delay"),
        (lambda: ItemExponentialFailureRateLimiter(2.0, 1.0), "max_delay"),
        (lambda: ItemExponentialFailureRateLimiter(1.0, float("nan")), "max_delay"),
        (lambda: ItemFastSlowRateLimiter(-1.0, 1.0, 1), "fast_delay"),
        (lambda: BucketRateLimiter(0.0, 1), "qps"),
        (lambda: BucketRateLimiter(1.0, 0), "burst"),
        (lambda: MaxOfRateLimiter(), "one limiter"),
        (lambda: WithMaxWaitRateLimiter(BucketRateLimiter(), -1.0), "max_delay"),
        (lambda: WithJitterRateLimiter(BucketRateLimiter(), -0.1, lambda: 0.0), "jitter"),
    ],
)
def test_error_names_the_invalid_argument(make: Callable[[], Any], remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        make()
