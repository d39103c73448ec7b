"""What is around an informer, and elsewhere differs each time: time, chances, threads, logs. Here the seed decides."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import zlib
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.shell.virtual_time import VirtualTimeLoop
from tests.simulation.witness import OnPurpose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.scenario import Scenario
    from tests.simulation.story import Story

#: The samples that make a dictionary for the compressed tier.
_SAMPLES = 10


class SimulatedLoop(VirtualTimeLoop):
    """Virtual time, tasks with numbers, and a look at the world between any two turns."""

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        self.set_task_factory(lambda loop, coro, **options: _Task(coro, next(numbers), loop=loop, **options))

    def on_every_turn(self, look: Callable[[int], bool]) -> None:
        """Calls a function with the number of each turn; True if it did something that must not wait."""
        self._virtual.on_turn = look

    def take_time(self, seconds: float) -> None:
        """The turn takes so long."""
        self._virtual.now += seconds


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it is in memory."""

    def __init__(self, coro: Any, number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class _Complaints(logging.Handler):
    """Holds what is logged against what may be."""

    def __init__(self, story: Story) -> None:
        super().__init__(logging.ERROR)
        self._story = story

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        if kind != OnPurpose.__name__:
            self._story.violate("error logged", f"{record.name}: {record.getMessage()} {kind}")


class _Codec:
    """Stands in for the compressed tier's own, whose training takes long."""

    def __init__(self, samples: list[bytes]) -> None:
        self._level = 1

    def pack(self, data: bytes) -> bytes:
        return zlib.compress(data, self._level)

    def unpack(self, data: bytes) -> bytes:
        return zlib.decompress(data)


@contextmanager
def simulated_world(scenario: Scenario, story: Story) -> Iterator[None]:
    """Everything outside the informer that would be different each time: clocks, chances, threads, logs."""
    slices = random.Random(f"slices {scenario.seed}")
    ticks = [0.0]

    def perf_counter() -> float:
        if slices.random() < scenario.slice_share:
            ticks[0] += 1.0
        return ticks[0]

    async def in_thread(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        await asyncio.sleep(slices.choice((0.0, 0.01, 2.0)))
        return function(*args)

    logger = logging.getLogger("aioinformer")
    complaints = _Complaints(story)
    state, level = random.getstate(), logger.level
    random.seed(scenario.seed)
    gc_was_on = gc.isenabled()
    gc.disable()
    with ExitStack() as patches:
        patches.enter_context(patch("aioinformer.concurrency.perf_counter", perf_counter))
        patches.enter_context(patch("anyio.to_thread.run_sync", in_thread))
        patches.enter_context(patch("aioinformer.cache.compressor.Codec", _Codec))
        patches.enter_context(patch("aioinformer.cache.objects.compression.SAMPLES", _SAMPLES))
        for name in ("aioinformer", "asyncio"):
            logging.getLogger(name).addHandler(complaints)
        logger.setLevel(logging.ERROR)
        propagate, logger.propagate = logger.propagate, False
        try:
            yield
        finally:
            logger.propagate = propagate
            logger.setLevel(level)
            for name in ("aioinformer", "asyncio"):
                logging.getLogger(name).removeHandler(complaints)
            random.setstate(state)
            if gc_was_on:
                gc.enable()
