"""Rate limiters, and the delaying and the rate-limiting queue: when items are dequeued."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

import pytest

from aioinformer import RateLimitingQueue
from aioinformer.errors import UsageError
from aioinformer.workqueue import (
    BucketRateLimiter,
    DelayingQueue,
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
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.workqueue import WorkQueue


def delays(limiter: RateLimiter[str], item: str, times: int, now: float = 0.0) -> list[float]:
    return [limiter.when(item, now) for _ in range(times)]


@pytest.mark.conformance("WQ-11", "WQ-12", "WQ-13", "WEAK-25")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ItemExponentialFailureRateLimiter(1.0, 10.0), [1, 2, 4, 8, 10, 10]),
        (lambda: ItemFastSlowRateLimiter(0.005, 10.0, 3), [0.005, 0.005, 0.005, 10, 10]),
        (
            lambda: MaxOfRateLimiter(
                ItemFastSlowRateLimiter(5.0, 100.0, 2), ItemExponentialFailureRateLimiter(1.0, 1000.0)
            ),
            [5, 5, 100, 100, 100, 100, 100, 128, 256],
        ),
        (lambda: WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(1.0, 1000.0), 5.0), [1, 2, 4, 5, 5]),
        (
            lambda: WithJitterRateLimiter(ItemExponentialFailureRateLimiter(1.0, 1000.0), 0.5, lambda: 0.5),
            [1.25, 2.5, 5],
        ),
        (default_controller_rate_limiter, [min(0.005 * 2**number, 1000) for number in range(19)]),
        (default_item_based_rate_limiter, [min(0.001 * 2**number, 1000) for number in range(21)]),
    ],
    ids=["exponential", "fast, then slow", "longest of two", "limited", "with jitter", "controllers", "items"],
)
def test_delays_grow_for_each_item_until_it_is_forgotten(make: Callable[[], Any], expected: list[float]) -> None:
    limiter = make()
    assert [limiter.when("a", 1000.0 * number) for number in range(len(expected))] == pytest.approx(expected)
    assert delays(limiter, "b", 2, 1e6) == pytest.approx(expected[:2])
    assert (limiter.num_requeues("a"), limiter.num_requeues("b")) == (len(expected), 2)
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
    assert delays(limiter, "a", 1, 1e6) == pytest.approx(expected[:1])


@pytest.mark.conformance("WQ-12")
@pytest.mark.parametrize(("base", "cap"), [(1.0, 1000.0), (1e-9, 1e300), (5e-324, 1e308), (3.0, 3.0)])
def test_delay_stays_at_the_maximum(base: float, cap: float) -> None:
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(base, cap)
    assert delays(limiter, "a", 5000)[-1] == cap


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


def test_longest_of_several_limiters_counts_each_failure_once() -> None:
    limiter: RateLimiter[str] = MaxOfRateLimiter(
        ItemExponentialFailureRateLimiter(1.0, 10.0), ItemFastSlowRateLimiter(0.005, 10.0, 3)
    )
    delays(limiter, "a", times=3)
    assert limiter.num_requeues("a") == 3


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


@pytest.mark.conformance("WQ-13")
def test_controller_default_allows_100_then_10_a_second() -> None:
    limiter = default_controller_rate_limiter()
    assert [limiter.when(number, 0.0) for number in range(103)][-4:] == pytest.approx([0.005, 0.1, 0.2, 0.3])


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


@pytest.fixture
def queue() -> DelayingQueue[str]:
    return DelayingQueue()


async def times(queue: WorkQueue[str], count: int) -> list[tuple[str, float]]:
    """Dequeue and finish `count` items; return each with its time, in seconds from now."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    came = []
    for _ in range(count):
        async with queue.processing() as item:
            came.append((item, round(loop.time() - start, 3)))
    return came


async def work(queue: WorkQueue[str]) -> list[tuple[str, float]]:
    """Process items until the queue ends, one second each; return each with its time, in seconds from now."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    came = []
    async for item in queue:
        came.append((item, round(loop.time() - start, 3)))
        await asyncio.sleep(1)
    return came


@pytest.mark.conformance("WQ-10")
async def test_thousands_of_items_can_be_delayed_without_waiting(queue: DelayingQueue[str]) -> None:
    for number in range(5000):
        queue.add_after(str(number), 1.0)
    assert queue.statistics().delayed == 5000
    await asyncio.sleep(1.1)
    assert len(queue) == 5000


class Key:
    """An item that can be weakly referenced."""


@pytest.mark.conformance("WQ-08")
async def test_superseded_delay_keeps_no_finished_item_in_memory() -> None:
    queue: DelayingQueue[Key] = DelayingQueue()
    queue.add_after(Key(), 500.0)
    keys: WeakSet[Key] = WeakSet()
    for _ in range(1000):
        key = Key()
        keys.add(key)
        queue.add_after(key, 1000.0)
        queue.add_after(key, 0.1)
        del key
        async with queue.processing():
            pass
    assert len(keys) < 50


async def test_former_delay_of_an_item_does_not_shorten_a_later_one(queue: DelayingQueue[str]) -> None:
    queue.add_after("other", 10.0)
    queue.add_after("a", 10.0)
    queue.add_after("a", 1.0)
    asyncio.get_running_loop().call_later(5, queue.add_after, "a", 100.0)
    asyncio.get_running_loop().call_later(200, queue.shut_down)
    assert await work(queue) == [("a", 1.0), ("other", 10.0), ("a", 105.0)]


@pytest.mark.conformance("WQ-10")
@pytest.mark.parametrize("seed", range(5))
async def test_each_item_comes_at_its_earliest_time(queue: DelayingQueue[str], seed: int) -> None:
    """So many delays are replaced by earlier ones that the queue tidies up several times."""
    random = Random(seed)
    earliest: dict[str, float] = {}
    for _ in range(300):
        item = random.choice("abcdefgh")
        delay = float(random.randint(1, 1000))
        queue.add_after(item, delay)
        earliest[item] = min(delay, earliest.get(item, delay))
    assert queue.statistics().delayed == len(earliest)
    assert queue.statistics().retries == 300
    came = await times(queue, len(earliest))
    assert dict(came) == earliest
    assert queue.statistics().delayed == 0


@pytest.mark.parametrize("delay", [0.0, -1.0])
async def test_item_without_a_delay_is_added_at_once(queue: DelayingQueue[str], delay: float) -> None:
    queue.add_after("a", delay)
    statistics = queue.statistics()
    assert (len(queue), statistics.delayed, statistics.retries, statistics.adds) == (1, 0, 1, 1)


async def test_queue_that_is_shut_down_delays_nothing(queue: DelayingQueue[str]) -> None:
    queue.shut_down()
    queue.add_after("a", 1.0)
    queue.add_after("b", 0.0)
    assert (len(queue), queue.statistics().delayed, queue.statistics().retries) == (0, 0, 0)


async def test_second_drain_can_drop_what_the_first_waits_for(queue: DelayingQueue[str]) -> None:
    queue.add_after("a", 100.0)
    async with asyncio.TaskGroup() as tasks:
        worker = tasks.create_task(work(queue))
        first = tasks.create_task(queue.shut_down_with_drain("wait"))
        await settled()
        assert await queue.shut_down_with_drain("drop")
        await settled()
        assert first.result()
        assert worker.result() == []


async def test_nan_delay_is_refused(queue: DelayingQueue[str]) -> None:
    with pytest.raises(UsageError, match="delay must be"):
        queue.add_after("a", float("nan"))


@pytest.mark.conformance("WQ-10", "WEAK-25")
@pytest.mark.parametrize(
    ("delayed", "came"),
    [
        ("drop", [("a", 0.0)]),
        ("now", [("a", 0.0), ("b", 1.0), ("c", 2.0)]),
        ("wait", [("a", 0.0), ("b", 5.0), ("c", 9.0)]),
    ],
)
async def test_drain_drops_adds_or_awaits_delayed_items(
    queue: DelayingQueue[str], delayed: Literal["drop", "now", "wait"], came: list[tuple[str, float]]
) -> None:
    queue.add("a")
    queue.add_after("c", 9.0)
    queue.add_after("b", 5.0)
    async with asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work(queue)), tasks.create_task(work(queue))]
        assert await queue.shut_down_with_drain(delayed) is True
    if delayed == "now":  # two workers share them
        came = [("a", 0.0), ("b", 0.0), ("c", 1.0)]
    assert sorted(workers[0].result() + workers[1].result()) == came


async def test_shut_down_ends_a_drain_that_waits_for_delayed_items(queue: DelayingQueue[str]) -> None:
    queue.add_after("a", 100.0)
    async with asyncio.TaskGroup() as tasks:
        worker = tasks.create_task(work(queue))
        drain = tasks.create_task(queue.shut_down_with_drain("wait"))
        await settled()
        assert not worker.done()
        queue.shut_down()
    assert drain.result() is False
    assert worker.result() == []


async def test_unknown_drain_mode_is_refused(queue: DelayingQueue[str]) -> None:
    with pytest.raises(UsageError, match="delayed must be"):
        await queue.shut_down_with_drain("later")  # type: ignore[arg-type]


@pytest.mark.conformance("WQ-11")
async def test_retry_delay_grows_until_the_item_is_forgotten() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(ItemExponentialFailureRateLimiter(1.0, 100.0))
    waits = []
    for _ in range(4):
        queue.add_rate_limited("a")
        waits += await times(queue, 1)
    assert queue.num_requeues("a") == 4
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    queue.add_rate_limited("a")
    waits += await times(queue, 1)
    assert waits == [("a", 1), ("a", 2), ("a", 4), ("a", 8), ("a", 1)]
