"""Plays one scenario: the loop, the clocks, the chances, the driver, and the judgement at the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import sys
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.shell.virtual_time import VirtualTimeLoop
from tests.simulation.audit import Audit, check_requests
from tests.simulation.stage import Stage
from tests.simulation.story import START, Story, Violation
from tests.simulation.witness import OnPurpose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.simulation.scenario import Scenario

#: So long the informer has to arrive at the truth when all faults are over: a connection that is dead is noticed after
#: 90 s, and a server whose versions went back may take several watches of that kind.
PATIENCE = 1500.0
#: How long it is looked at after that.
_REST = 70.0
#: So quickly it has to follow when nothing is wrong. No bookmark comes in that time to wake up who should not sleep.
_PROMPT = 5.0
#: So many turns of the loop no scenario needs.
_ENDLESS = 60_000
#: The samples that make a dictionary for the compressed tier.
_SAMPLES = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        violation: the first one, None if all is well.
        story: what happened.
        turns: of the loop.
        seconds: virtual.
        requests: that were sent.
        notifications: that were told.
        struck: how often each fault struck.
    """

    violation: Violation | None
    story: Story
    turns: int
    seconds: float
    requests: int
    notifications: int
    struck: Mapping[str, int]


class _Loop(VirtualTimeLoop):
    """Virtual time, and a look at the world between any two turns."""

    def on_every_turn(self, look: Callable[[int], bool]) -> None:
        """Calls a function with the number of each turn; True if it did something that must not wait."""
        self._virtual.on_turn = look

    def take_time(self, seconds: float) -> None:
        """The turn takes so long."""
        self._virtual.now += seconds


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it is in memory."""

    numbers = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _NumberedTask.numbers += 1
        self._number = _NumberedTask.numbers
        super().__init__(*args, **kwargs)

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


def play(scenario: Scenario) -> Outcome:
    """Plays a scenario; the same one comes out the same each time."""
    loop = _Loop()
    story = Story(loop.time)
    _NumberedTask.numbers = 0
    loop.set_task_factory(lambda loop, coro, **options: _NumberedTask(coro, loop=loop, **options))
    loop.set_exception_handler(
        lambda loop, context: story.violate("left to asyncio", f"{context['message']}: {context.get('exception')!r}")
    )
    with _world(scenario, story):
        stage_of: list[Stage] = []
        try:
            loop.run_until_complete(_play(scenario, story, loop, stage_of))
        except RuntimeError as error:
            story.violate("deadlock", str(error))
        finally:
            _judge_end(story, loop)
            turns, seconds = loop.turns, loop.time() - START
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        stage = stage_of[0]
        told = sum(witness.calls for witness in stage.witnesses)
        return Outcome(story.violation, story, turns, seconds, len(stage.server.asked), told, stage.server.struck)


async def _play(scenario: Scenario, story: Story, loop: _Loop, made: list[Stage]) -> None:
    stage = Stage(scenario, story)
    made.append(stage)
    audit = Audit(stage)
    stage.places = audit.places
    main = asyncio.create_task(_drive(stage, audit), name="driver")
    story.on_violation = lambda: loop.call_soon(main.cancel)
    stops = {scenario.stops_at, scenario.stops_at + scenario.stops_again} if scenario.stops_at else set()

    def between_turns(turn: int) -> bool:
        loop.take_time(scenario.turn_seconds)
        if not main.done():
            audit.turn()
        if turn == _ENDLESS:
            story.violate("endless", f"{turn} turns of the loop in {loop.time() - START:.0f} s")
        if turn in stops:
            story.tell("driver", "is cancelled after %d turns", turn)
            main.cancel()
        return turn in stops

    loop.on_every_turn(between_turns)
    await asyncio.wait({main})
    loop.on_every_turn(lambda turn: False)
    for waiter in stage.waiters:
        if not waiter.done():
            await asyncio.wait({waiter}, timeout=200)
    check_requests(stage)
    _judge_tasks(stage, main)


async def _drive(stage: Stage, audit: Audit) -> None:
    scenario, loop = stage.scenario, asyncio.get_running_loop()
    begin = loop.time()
    actions = list(scenario.actions)
    for manner in scenario.handlers:
        stage.register(manner)
    while actions and actions[0].at <= scenario.starts:
        stage.perform(actions.pop(0))
    async with stage.informer:
        for action in actions:
            wait = begin + action.at - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            stage.perform(action)
        await asyncio.sleep(1)
        await _come_to_rest(stage, audit)


async def _come_to_rest(stage: Stage, audit: Audit) -> None:
    loop, story = asyncio.get_running_loop(), stage.story
    stage.server.heal()
    for witness in stage.witnesses:
        witness.hurries = True
    story.tell("driver", "all faults are over")
    patience = loop.time() + PATIENCE
    while not stage.writable() and loop.time() < patience:  # noqa: ASYNC110 - time costs nothing here
        await asyncio.sleep(5)
    for key, obj in sorted(stage.collection.objects.items()):
        if not obj.readable:
            stage.mend(key)
    stage.mark()
    late = False
    while (difference := audit.differences()) or not late:
        if not difference:
            stage.register_latecomer()
            late = True
            patience = loop.time() + 100
        elif loop.time() > patience:
            story.violate("not the truth at rest", difference)
            return
        await asyncio.sleep(5)
    story.tell("driver", "the informer has arrived at the truth")
    for pause in stage.probe():
        await asyncio.sleep(pause)
    await asyncio.sleep(_PROMPT)
    if difference := audit.differences():
        story.violate("not told in time", difference)
    await asyncio.sleep(_REST)
    audit.check_cache()
    if difference := audit.differences():
        story.violate("not the truth at rest", difference)


def _judge_tasks(stage: Stage, main: asyncio.Task[None]) -> None:
    story = stage.story
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if left:
        story.violate("task left", ", ".join(sorted(left)))
    if not main.cancelled() and (error := main.exception()) is not None:
        story.violate("crash", repr(error))
    if stage.server.open:
        story.violate("answer left open", f"{len(stage.server.open)}")
    if stage.informer.get_store() is not None and main.done() and stage.begun and not stage.informer.is_stopped():
        story.violate("not stopped", str(stage.informer.state))
    for waiter in stage.waiters:
        if waiter.done() and not waiter.cancelled() and (error := waiter.exception()) is not None:
            story.violate("waiter crashed", f"{waiter.get_name()}: {error!r}")


def _judge_end(story: Story, loop: asyncio.AbstractEventLoop) -> None:
    """What Python complains about only when it cleans up."""

    def complain(unraisable: Any) -> None:
        story.violate("left to Python", f"{unraisable.err_msg}: {unraisable.exc_value!r}")

    hook, sys.unraisablehook = sys.unraisablehook, complain
    try:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        gc.collect()
    finally:
        sys.unraisablehook = hook


@contextmanager
def _world(scenario: Scenario, story: Story) -> Iterator[None]:
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
        patches.enter_context(patch("aioinformer.slices.perf_counter", perf_counter))
        patches.enter_context(patch("anyio.to_thread.run_sync", in_thread))
        patches.enter_context(patch("aioinformer.compressor.Codec", _Codec))
        patches.enter_context(patch("aioinformer.compression.SAMPLES", _SAMPLES))
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
