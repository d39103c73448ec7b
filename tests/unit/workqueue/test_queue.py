"""The plain work queue: adding, dequeueing, priorities and statistics; random calls, compared with a model."""

from __future__ import annotations

import asyncio
import math
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from prometheus_client import CollectorRegistry

from aioinformer import RateLimitingQueue
from aioinformer.errors import UsageError
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.workqueue import DelayingQueue, PriorityOrder, QueueShutDown, WorkQueue
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue()


async def take(queue: WorkQueue[str], count: int) -> list[str]:
    """Dequeue `count` items without finishing them."""
    return [await queue.get() for _ in range(count)]


def test_add_works_without_an_event_loop(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert asyncio.run(queue.get()) == "a"


@pytest.mark.conformance("WQ-03", "WQ-04")
async def test_items_come_in_order_and_those_in_process_last(queue: WorkQueue[str]) -> None:
    for item in "cabacb":
        queue.add(item)
    assert await take(queue, 1) == ["c"]
    for item in "cd":
        queue.add(item)
    queue.done("c")
    assert await take(queue, 4) == ["a", "b", "d", "c"]


async def test_done_without_get_raises_with_the_item() -> None:
    queue: WorkQueue[str] = WorkQueue("pods")
    queue.add("a")
    with pytest.raises(UsageError, match=r"done\('a'\).*'pods'"):
        queue.done("a")
    assert await take(queue, 1) == ["a"]


# Order.


@pytest.mark.conformance("WQ-08", "WEAK-25")
async def test_highest_priority_comes_first() -> None:
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder({"a": 0, "b": 5, "c": 5, "d": 9}.__getitem__))
    for item in "abcd":
        queue.add(item)
    assert await take(queue, 4) == ["d", "b", "c", "a"]


@pytest.mark.conformance("WQ-01", "WQ-08")
async def test_item_added_again_moves_if_its_priority_rose() -> None:
    priority = {"a": 0, "b": 0, "c": 1}
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: priority[item]))
    for item in "abc":
        queue.add(item)
    priority.update(b=2, c=-1)
    queue.add("b")
    queue.add("c")
    assert len(queue) == 3
    assert await take(queue, 3) == ["b", "c", "a"]


async def test_item_with_rising_priority_is_dequeued_once() -> None:
    priority = count()
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: next(priority)))
    for _ in range(1000):
        queue.add("a")
        queue.add("b")
    assert sorted(await take(queue, 2)) == ["a", "b"]
    assert len(queue) == 0


async def test_item_is_not_added_if_priority_raises() -> None:
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder({"a": 0}.__getitem__))
    with pytest.raises(KeyError):
        queue.add("b")
    queue.add("a")
    assert await take(queue, 1) == ["a"]


async def test_item_whose_priority_raises_at_its_end_can_be_added_again() -> None:
    priorities = {"a": 1.0}
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(priorities.__getitem__))
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    del priorities["a"]  # as of an object that was deleted meanwhile
    with pytest.raises(KeyError):
        queue.done("a")
    priorities["a"] = 2.0
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    del priorities["a"]
    draining = asyncio.create_task(queue.shut_down_with_drain(), name="draining")
    await asyncio.sleep(0)
    with pytest.raises(KeyError):
        queue.done("a")
    assert await asyncio.wait_for(draining, 1)


async def test_item_whose_priority_raises_does_not_keep_delayed_items() -> None:
    priorities = {"a": 1.0, "b": 1.0, "c": 1.0}
    queue: DelayingQueue[str] = DelayingQueue(order=PriorityOrder(priorities.__getitem__))
    for item in priorities:
        queue.add_after(item, 5)
    del priorities["a"]
    raised: list[BaseException] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: raised.append(context["exception"]))
    await asyncio.sleep(10)
    loop.set_exception_handler(None)
    assert await asyncio.wait_for(take(queue, 2), 1) == ["b", "c"]
    assert [type(error) for error in raised] == [KeyError]


@pytest.mark.conformance("WQ-08")
@pytest.mark.parametrize("seed", range(5))
async def test_order_is_that_of_the_highest_priorities(seed: int) -> None:
    """So many items move that the order tidies up several times."""
    random = Random(seed)
    now: dict[str, int] = {}
    queue: WorkQueue[str] = WorkQueue(order=PriorityOrder(lambda item: now[item]))
    known: dict[str, tuple[int, int]] = {}
    for number in range(300):
        item = random.choice("abcdefgh")
        now[item] = number // 3 + random.randint(0, 50)
        queue.add(item)
        if item not in known or now[item] > -known[item][0]:
            known[item] = (-now[item], number)
    assert await take(queue, len(known)) == sorted(known, key=lambda each: known[each])
    assert len(queue) == 0


class Key:
    """An item that can be weakly referenced."""


async def test_order_keeps_no_items_that_are_done() -> None:
    priority = count()
    queue: WorkQueue[Any] = WorkQueue(order=PriorityOrder(lambda item: next(priority)))
    keys: WeakSet[Any] = WeakSet()
    queue.add("last")
    for _ in range(200):
        keys.add(key := Key())
        queue.add(key)
        queue.add(key)
        queue.done(await queue.get())
        del key
    assert len(keys) < 50


# Statistics.


@pytest.mark.conformance("WQ-07")
async def test_statistics_have_counts_and_times() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(name="pods")
    for item in "aab":
        queue.add(item)
    await asyncio.sleep(2)
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    await asyncio.sleep(3)
    assert await queue.get() == "b"
    await asyncio.sleep(4)
    found = queue.statistics()
    assert (found.name, found.depth, found.processing, found.adds, found.retries) == ("pods", 0, 2, 3, 0)
    assert (found.waited.count, found.waited.total) == pytest.approx((2, 2 + 5))
    assert (found.unfinished_work, found.longest_running) == pytest.approx((7 + 4, 7))
    queue.done("a")
    found = queue.statistics()
    assert (found.depth, found.processing, found.shutting_down) == (1, 1, False)
    assert (found.worked.count, found.worked.total) == pytest.approx((1, 7))
    assert repr(queue) == "<work queue 'pods': 1 queued, 1 processing>"
    queue.shut_down()
    assert queue.statistics().shutting_down
    assert repr(queue) == "<work queue 'pods': 1 queued, 1 processing, shutting down>"
    assert await queue.get() == "a"
    assert queue.statistics().waited.total == pytest.approx(2 + 5 + 7), "since the first add"


async def test_queue_of_a_name_is_registered_once() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    queue: WorkQueue[str] = WorkQueue("pods", metrics=metrics)
    queue.add("a")
    assert registry.get_sample_value("workqueue_depth", {"name": "pods"}) == 1
    with pytest.raises(UsageError, match="pods"):
        WorkQueue("pods", metrics=metrics)
    for _ in range(2):
        WorkQueue(metrics=metrics)
    assert registry.get_sample_value("workqueue_depth", {"name": ""}) is None


@pytest.mark.conformance("WQ-07")
@pytest.mark.parametrize("drain", [False, True])
async def test_shut_down_queue_leaves_no_task(drain: bool) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(name="pods")
    for item in "ab":
        queue.add(item)
        queue.add_after(item, 60)
        queue.done(await queue.get())
    queue.statistics()
    if drain:
        await queue.shut_down_with_drain()
    else:
        queue.shut_down()
    await settled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


ITEMS = st.sampled_from("abcd")
DELAYS = st.integers(-1, 5).map(float)


class QueueMachine(RuleBasedStateMachine):
    """A delaying queue, workers that start, dequeue, finish and are cancelled, and the model."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.queue: DelayingQueue[str] = DelayingQueue()
        self.workers: list[asyncio.Task[str]] = []
        # The model.
        self.queued: list[str] = []
        self.processing: set[str] = set()
        self.again: set[str] = set()
        self.delayed: dict[str, float] = {}
        self.shut_down = False

    def settle(self, seconds: float = 0.0) -> None:
        async def wait() -> None:
            await settled()
            if seconds:
                await asyncio.sleep(seconds)
                await settled()

        self.loop.run_until_complete(wait())

    def in_loop(self, call: Callable[..., object], *arguments: object) -> None:
        async def run() -> None:
            call(*arguments)

        self.loop.run_until_complete(run())

    # The model's rules.

    def model_add(self, item: str) -> None:
        if item in self.processing:
            self.again.add(item)
        elif item not in self.queued:
            self.queued.append(item)

    def model_pass_time(self) -> None:
        until = self.loop.time()
        for item, at in sorted(self.delayed.items(), key=lambda pair: pair[1]):
            if at <= until:
                del self.delayed[item]
                self.model_add(item)

    def dequeued(self) -> list[str]:
        """Check the items that workers have dequeued since the last call, and return them."""
        self.settle()
        self.model_pass_time()
        done = [worker for worker in self.workers if worker.done()]
        self.workers = [worker for worker in self.workers if not worker.done()]
        got = []
        for worker in done:
            if isinstance(worker.exception(), QueueShutDown):
                assert self.shut_down
                continue
            item = worker.result()
            assert item not in self.processing, "two workers on one item"
            self.processing.add(item)
            got.append(item)
        first, self.queued = self.queued[: len(got)], self.queued[len(got) :]
        assert sorted(got) == sorted(first), "dequeued an item that was not added, or not in order"
        return got

    # Steps.

    @rule(item=ITEMS, times=st.integers(1, 3), target=held)
    def add(self, item: str, times: int) -> object:
        def adds() -> None:
            for _ in range(times):
                self.queue.add(item)

        self.in_loop(adds)
        if not self.shut_down:
            self.model_add(item)
        return multiple(*self.dequeued())

    @rule(item=ITEMS, delay=DELAYS, target=held)
    def add_after(self, item: str, delay: float) -> object:
        self.in_loop(self.queue.add_after, item, delay)
        if not self.shut_down and delay <= 0:
            self.model_add(item)
        elif not self.shut_down:
            at = self.loop.time() + delay
            if at < self.delayed.get(item, math.inf):
                self.delayed.pop(item, None)
                self.delayed[item] = at
        return multiple(*self.dequeued())

    @rule(seconds=st.integers(1, 4), target=held)
    def time_passes(self, seconds: int) -> object:
        got = []
        for _ in range(seconds * 2):
            self.settle(0.5)
            got += self.dequeued()
        return multiple(*got)

    @rule(target=held)
    def start_worker(self) -> object:
        self.workers.append(self.loop.create_task(self.queue.get()))
        return multiple(*self.dequeued())

    @precondition(lambda self: self.workers)
    @rule(which=st.integers(0, 5), item=ITEMS, target=held)
    def cancel_worker_during_add(self, which: int, item: str) -> object:
        """The worker is woken for the item, and cancelled before it can dequeue it."""
        worker = self.workers[which % len(self.workers)]

        def both() -> None:
            self.queue.add(item)
            worker.cancel()

        self.in_loop(both)
        if not self.shut_down:
            self.model_add(item)
        self.settle()
        if worker.cancelled():
            self.workers.remove(worker)
        return multiple(*self.dequeued())

    @rule(item=consumes(held), target=held)
    def finish_item(self, item: str) -> object:
        self.in_loop(self.queue.done, item)
        self.processing.remove(item)
        if item in self.again:
            self.again.remove(item)
            self.queued.append(item)
        return multiple(*self.dequeued())

    @precondition(lambda self: not self.shut_down)
    @rule(target=held)
    def shut_down_queue(self) -> object:
        self.in_loop(self.queue.shut_down)
        self.shut_down = True
        self.delayed.clear()
        return multiple(*self.dequeued())

    # Invariants.

    @invariant()
    def counts_match_the_model(self) -> None:
        statistics = self.queue.statistics()
        assert len(self.queue) == len(self.queued)
        assert statistics.processing == len(self.processing)
        assert statistics.delayed == len(self.delayed)

    @invariant()
    def no_worker_waits_while_items_are_queued_or_after_the_end(self) -> None:
        assert not (self.workers and (self.queued or self.shut_down))

    def teardown(self) -> None:
        """Drain the queue: waiting workers end, and exactly the items of the model are left."""

        async def rest() -> list[str]:
            drain = asyncio.ensure_future(self.queue.shut_down_with_drain())
            for item in self.processing:
                self.queue.done(item)
            taken = [item async for item in self.queue]
            waited = await asyncio.gather(*self.workers, return_exceptions=True)
            for got in waited:
                if isinstance(got, str):
                    taken.append(got)
                    self.queue.done(got)
            assert await drain
            return taken

        try:
            assert sorted(self.loop.run_until_complete(rest())) == sorted([*self.queued, *self.again])
        finally:
            self.loop.close()


@pytest.mark.conformance("WQ-01", "WQ-02", "WQ-03", "WQ-04", "WQ-05", "WQ-06", "WQ-09")
def test_queue_does_what_its_model_does() -> None:
    run_state_machine_as_test(QueueMachine, settings=settings(max_examples=60, stateful_step_count=40))
