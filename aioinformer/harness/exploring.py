"""Run a scenario under many orders of events and faults, and find the fewest faults that make it fail."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias
from unittest.mock import patch

import msgspec

from aioinformer.harness.checker import HarnessFailure
from aioinformer.harness.harness import Harness, MakeManager
from aioinformer.harness.loop import VirtualTimeLoop
from aioinformer.harness.plan import FAULTS, Plan
from aioinformer.harness.story import differences
from aioinformer.logs import get_logger

Scenario: TypeAlias = Callable[[Harness], Awaitable[object]]


class HarnessReport(msgspec.Struct):
    """Runs that succeeded: their number, their steps, writes and faults, and the objects at the end of the first."""

    runs: int
    steps: int
    writes: int
    faults: Counter[str]
    ends: dict[str, Any]


def run(
    make_manager: MakeManager, scenario: Scenario, plan: Plan | None = None, *, restart: bool = True, **options: Any
) -> HarnessReport:
    """Run a scenario once, in an event loop of its own. At its end, the controller must converge.

    Args:
        make_manager: see `Harness`.
        scenario: an async function of the harness: what users do, and what must hold.
        plan: the order of events, and the faults; by default, no fault, and the order of arrival.
        restart: at the end, start a new manager, which must find nothing to do.
        options: see `Harness`.

    Raises:
        HarnessFailure: the controller does not do what it must. The scenario may raise other errors. Their notes have
            the story of the run, with the warnings that were logged, and the plan that repeats it.
    """
    state = random.getstate()
    log = get_logger("aioinformer")

    async def live() -> HarnessReport:
        harness = Harness(make_manager, plan, **options)
        log.addHandler(harness.story)
        harness.start()
        try:
            await scenario(harness)
            await harness.settle()
            changes = harness.checker.changes
            if restart:
                await harness.restart()
                await harness.settle()
            if harness.checker.changes != changes:
                raise HarnessFailure(f"a new manager finds something to do: {harness.checker.last}")
        except Exception as error:
            error.add_note(f"{harness.story}\nTo repeat this run: run(make_manager, scenario, {harness.plan!r})")
            raise
        finally:
            await harness.stop()
            log.removeHandler(harness.story)
        return HarnessReport(1, harness.scheduler.steps, harness.sent, Counter(harness.dice.faults), harness.ends())

    random.seed(f"run {plan}")
    # Time slices would end by real time, and make runs differ.
    clock = patch("aioinformer.concurrency.perf_counter", float)
    try:
        with clock, patch.object(log, "propagate", False), asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(live())
    finally:
        random.setstate(state)


def explore(
    make_manager: MakeManager,
    scenario: Scenario,
    *,
    seeds: Iterable[int] = range(200),
    crashes: bool = True,
    stale: bool = True,
    lost: bool = True,
    conflicts: bool = True,
    merged: bool = True,
    compare: bool = True,
    **options: Any,
) -> HarnessReport:
    """Run a scenario without faults, then once for each seed, in another order of events and with other faults.

    It is a plain function: call it in a test that is not async. A run that fails is repeated with fewer faults, and the
    error of the smallest run that fails in this way is raised.

    Args:
        make_manager: see `Harness`.
        scenario: see `run`.
        seeds: one run for each.
        crashes: the process ends right before it sends a write, or right after the server has processed it, and a new
            one starts. Successive seeds take the writes of the run without faults in turn.
        stale: events of watches, answers and garbage collection are late, by up to 6 s.
        lost: the server processes a write, and its answer is lost.
        conflicts: the server refuses updates and patches with 409.
        merged: a watch breaks, and its history expires. The next list shows only the last state of each object.
        compare: the objects at the end must be those of the run without faults; see `Harness.ends`.
        options: see `run` and `Harness`.
    """
    wanted = zip(FAULTS, (crashes, stale, lost, conflicts, merged), strict=True)
    unwanted = [kind for kind, may_occur in wanted if not may_occur]
    total = run(make_manager, scenario, **options)
    length = total.writes

    def attempt(plan: Plan) -> HarnessReport | Exception:
        try:
            outcome = run(make_manager, scenario, plan, **options)
            if compare and (found := differences(total.ends, outcome.ends)):
                raise HarnessFailure(
                    f"with {plan!r}, objects differ from those of a run without faults: {'; '.join(found)}"
                )
        except Exception as error:
            return error
        return outcome

    for seed in seeds:
        plan = Plan.draw(seed, length).without(*unwanted)
        outcome = attempt(plan)
        for kind in (*FAULTS, "seed") if isinstance(outcome, Exception) else ():
            smaller = attempt(plan.without(kind))
            if type(smaller) is type(outcome):
                plan = plan.without(kind)
                outcome = smaller
        if isinstance(outcome, Exception):
            raise outcome
        total.runs += 1
        total.steps += outcome.steps
        total.writes += outcome.writes
        total.faults += outcome.faults
    return total
