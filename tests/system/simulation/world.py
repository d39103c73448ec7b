"""The log of a simulation, and deterministic replacements for what varies: time, random choices, threads, logs."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import zlib
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from tests.support.virtual_time import VirtualTimeLoop
from tests.system.simulation.witness import OnPurpose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.system.simulation.scenario import Scenario


#: The clock of a simulation at its start.
START = 1000.0


class Violation(NamedTuple):
    """A violation of an invariant."""

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


class Story:
    """Logs actions with their virtual times, and the first violation; lines are formatted only when they are read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lines: list[tuple[float, str, str, tuple[object, ...]]] = []
        self.violation: Violation | None = None
        self.on_violation: Callable[[], object] = lambda: None

    def tell(self, who: str, what: str, *details: object) -> None:
        """Log a line; `what` is a format for `details`."""
        self._lines.append((self._clock() - START, who, what, details))

    def violate(self, invariant: str, what: str) -> None:
        """Log a violation."""
        if self.violation is None:
            self.violation = Violation(invariant, what)
            self.tell("VIOLATED", "%s", self.violation)
            self.on_violation()

    def render(self) -> str:
        """Return the log as text."""
        return "\n".join(f"{at:10.3f} s  {who:<10} {what % details}" for at, who, what, details in self._lines)


#: Number of samples for a dictionary of the compressed tier.
_SAMPLES = 10


class SimulatedLoop(VirtualTimeLoop):
    """An event loop with virtual time, numbered tasks, and checks between any two iterations."""

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        self.set_task_factory(lambda loop, coro, **options: _Task(coro, next(numbers), loop=loop, **options))

    def on_every_turn(self, look: Callable[[int], bool]) -> None:
        """Call a function with the number of each iteration; it returns True if new work must run at once."""
        self._virtual.on_turn = look

    def take_time(self, seconds: float) -> None:
        """Let the iteration take a number of seconds."""
        self._virtual.now += seconds


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it is in memory."""

    def __init__(self, coro: Any, number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class _Complaints(logging.Handler):
    """Checks log records against the allowed ones."""

    def __init__(self, story: Story) -> None:
        super().__init__(logging.ERROR)
        self._story = story

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        if kind != OnPurpose.__name__ and not record.getMessage().endswith(f"the last one was {OnPurpose.__name__}"):
            self._story.violate("error logged", f"{record.name}: {record.getMessage()} {kind}")


class _Codec:
    """Replaces the codec of the compressed tier, whose training is slow."""

    def __init__(self, samples: list[bytes]) -> None:
        self._level = 1

    def pack(self, data: bytes) -> bytes:
        return zlib.compress(data, self._level)

    def unpack(self, data: bytes) -> bytes:
        return zlib.decompress(data)


@contextmanager
def simulated_world(scenario: Scenario, story: Story) -> Iterator[None]:
    """Replace clocks, random choices, threads and logs for the length of a block."""
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
