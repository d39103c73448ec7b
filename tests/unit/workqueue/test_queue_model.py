"""Random sequences of calls, compared with a simple model of the work queue.

The model consists of a list, two sets and a dictionary. The test fails if two workers process one item, if an item is
lost, or if an item is dequeued that was not added.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from aioinformer.workqueue.delaying import DelayingQueue
from aioinformer.workqueue.queue import QueueShutDown
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = st.sampled_from("abcd")
DELAYS = st.integers(0, 5).map(float)


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
            assert item in self.queued, "dequeued an item that was not added"
            self.queued.remove(item)
            self.processing.add(item)
            got.append(item)
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
        if not self.shut_down and not delay:
            self.model_add(item)
        elif not self.shut_down:
            at = self.loop.time() + delay
            self.delayed[item] = min(self.delayed.get(item, at), at)
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
    def no_worker_waits_while_items_are_queued(self) -> None:
        assert not (self.workers and self.queued)

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


TestQueueAgainstItsModel = QueueMachine.TestCase
TestQueueAgainstItsModel.settings = settings(max_examples=60, stateful_step_count=40)
