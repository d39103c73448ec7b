"""Any sequence of calls, held against a queue so simple that it can be seen to be right.

The model knows three sets and a list. What it forbids is asserted where it would happen: an item with two workers, an
item lost, an item worked on that nobody asked for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from aioinformer.workqueue.delaying import DelayingQueue
from aioinformer.workqueue.queue import QueueShutDown
from tests.shell.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = st.sampled_from("abcd")
DELAYS = st.integers(0, 5).map(float)


class QueueMachine(RuleBasedStateMachine):
    """A delaying queue, workers that come, take, finish and are cancelled, and the model."""

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

    def model_time(self) -> None:
        until = self.loop.time()
        for item, at in sorted(self.delayed.items(), key=lambda pair: pair[1]):
            if at <= until:
                del self.delayed[item]
                self.model_add(item)

    def hand_out(self) -> list[str]:
        """What workers must have got by now; who has waited for nothing goes on waiting."""
        self.settle()
        self.model_time()
        done = [worker for worker in self.workers if worker.done()]
        self.workers = [worker for worker in self.workers if not worker.done()]
        got = []
        for worker in done:
            if isinstance(worker.exception(), QueueShutDown):
                assert self.shut_down
                continue
            item = worker.result()
            assert item not in self.processing, "two workers on one item"
            assert item in self.queued, "work that nobody asked for"
            self.queued.remove(item)
            self.processing.add(item)
            got.append(item)
        return got

    # What may happen.

    @rule(item=ITEMS, times=st.integers(1, 3), target=held)
    def add(self, item: str, times: int) -> object:
        def adds() -> None:
            for _ in range(times):
                self.queue.add(item)

        self.in_loop(adds)
        if not self.shut_down:
            self.model_add(item)
        return multiple(*self.hand_out())

    @rule(item=ITEMS, delay=DELAYS, target=held)
    def add_after(self, item: str, delay: float) -> object:
        self.in_loop(self.queue.add_after, item, delay)
        if not self.shut_down and not delay:
            self.model_add(item)
        elif not self.shut_down:
            at = self.loop.time() + delay
            self.delayed[item] = min(self.delayed.get(item, at), at)
        return multiple(*self.hand_out())

    @rule(seconds=st.integers(1, 4), target=held)
    def time_passes(self, seconds: int) -> object:
        got = []
        for _ in range(seconds * 2):
            self.settle(0.5)
            got += self.hand_out()
        return multiple(*got)

    @rule(target=held)
    def a_worker_comes(self) -> object:
        self.workers.append(self.loop.create_task(self.queue.get()))
        return multiple(*self.hand_out())

    @precondition(lambda self: self.workers)
    @rule(which=st.integers(0, 5), item=ITEMS, target=held)
    def a_worker_is_cancelled_while_something_comes(self, which: int, item: str) -> object:
        """It is woken for the item, and cancelled before it can take it."""
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
        return multiple(*self.hand_out())

    @rule(item=consumes(held), target=held)
    def a_worker_is_done(self, item: str) -> object:
        self.in_loop(self.queue.done, item)
        self.processing.remove(item)
        if item in self.again:
            self.again.remove(item)
            self.queued.append(item)
        return multiple(*self.hand_out())

    @precondition(lambda self: not self.shut_down)
    @rule(target=held)
    def it_is_shut_down(self) -> object:
        self.in_loop(self.queue.shut_down)
        self.shut_down = True
        self.delayed.clear()
        return multiple(*self.hand_out())

    # What holds at any time.

    @invariant()
    def nothing_is_lost(self) -> None:
        statistics = self.queue.statistics()
        assert len(self.queue) == len(self.queued)
        assert statistics.processing == len(self.processing)
        assert statistics.delayed == len(self.delayed)

    @invariant()
    def nobody_waits_while_there_is_work(self) -> None:
        assert not (self.workers and self.queued)

    def teardown(self) -> None:
        """Whoever waits and whatever is left comes to an end."""

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
TestQueueAgainstItsModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
