"""Plays one scenario: loop, clocks, random choices, driver, and the final checks."""

from __future__ import annotations

import asyncio
import gc
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.system.simulation.audit import Audit, check_requests
from tests.system.simulation.scenario import Manner
from tests.system.simulation.stage import Stage
from tests.system.simulation.world import START, SimulatedLoop, Story, Violation, simulated_world

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.system.simulation.scenario import Scenario

#: Seconds within which the informer must reach the state of the server after all faults: a dead connection is noticed
#: after 90 s, and a server whose versions went back may need several such watches.
PATIENCE = 1500.0
#: Seconds for which it is checked after that.
_REST = 12.0
#: Seconds within which it must follow without faults. No bookmark comes in that time: it could hide a missed wake-up.
_PROMPT = 5.0
#: Seconds after the informer's end in which nothing may happen.
_AFTER_THE_END = 200.0
#: More iterations of the loop than any scenario needs.
_ENDLESS = 60_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The log of a scenario, the first violation, how often things happened, and how often each fault took effect."""

    violation: Violation | None
    story: Story
    numbers: Mapping[str, int]
    struck: Mapping[str, int]


def play(scenario: Scenario) -> Outcome:
    """Play a scenario; the outcome is deterministic."""
    loop = SimulatedLoop()
    story = Story(loop.time)
    loop.set_exception_handler(
        lambda loop, context: story.violate(
            "unhandled in asyncio", f"{context['message']}: {context.get('exception')!r}"
        )
    )
    with simulated_world(scenario, story):
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
        numbers = {
            "virtual seconds": int(seconds),
            "turns of the loop": turns,
            "requests": len(stage.server.asked),
            "notifications": sum(witness.calls for witness in stage.witnesses),
        }
        return Outcome(story.violation, story, numbers, stage.server.struck)


async def _play(scenario: Scenario, story: Story, loop: SimulatedLoop, made: list[Stage]) -> None:
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
        if turn == 2 * _ENDLESS:
            raise RuntimeError("it does not end when it is cancelled")
        if turn in stops:
            story.tell("driver", "is cancelled after %d turns", turn)
            main.cancel()
        return turn in stops

    loop.on_every_turn(between_turns)
    await asyncio.wait({main})
    loop.on_every_turn(lambda turn: False)
    for witness in stage.witnesses:
        witness.removed = True
    await asyncio.sleep(_AFTER_THE_END)
    for waiter in stage.waiters:
        if not waiter.done():
            await asyncio.wait({waiter}, timeout=_AFTER_THE_END)
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
    writes: list[Callable[[], None]] = [*(partial(stage.mend, key) for key in stage.unreadable()), stage.mark]
    for write in writes:
        while not stage.writable() and loop.time() < patience:  # noqa: ASYNC110 - time costs nothing here
            await asyncio.sleep(5)
        write()
    late = False
    while (difference := audit.differences()) or not late:
        if not difference:
            stage.register(Manner())
            late = True
            patience = loop.time() + 100
        elif loop.time() > patience:
            story.violate("wrong final state", difference)
            return
        await asyncio.sleep(5)
    story.tell("driver", "the informer has arrived at the truth")
    for pause in stage.probe():
        await asyncio.sleep(pause)
    done = loop.time()
    await asyncio.sleep(_PROMPT)
    if difference := audit.differences(joined_by=done):
        story.violate("delivered too late", difference)
    await asyncio.sleep(_REST)
    audit.check_cache()
    if difference := audit.differences():
        story.violate("wrong final state", difference)


def _judge_tasks(stage: Stage, main: asyncio.Task[None]) -> None:
    story = stage.story
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if left:
        story.violate("task left", ", ".join(sorted(left)))
    if not main.cancelled() and (error := main.exception()) is not None:
        story.violate("crash", repr(error))
    if stage.server.open:
        story.violate("response left open", f"{len(stage.server.open)}")
    if stage.begun and not stage.informer.is_stopped():
        story.violate("not stopped", str(stage.informer.state))
    for waiter in stage.waiters:
        if waiter.done() and not waiter.cancelled() and (error := waiter.exception()) is not None:
            story.violate("waiter crashed", f"{waiter.get_name()}: {error!r}")


def _judge_end(story: Story, loop: asyncio.AbstractEventLoop) -> None:
    """Check for errors that Python reports at garbage collection."""

    def complain(unraisable: Any) -> None:
        story.violate("unraisable exception", f"{unraisable.err_msg}: {unraisable.exc_value!r}")

    hook, sys.unraisablehook = sys.unraisablehook, complain
    try:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        gc.collect()
    finally:
        sys.unraisablehook = hook
