"""Plays one or many seeds, and reports their results."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from tests.system.simulation.faults import FAULTS
from tests.system.simulation.scenario import draw
from tests.system.simulation.shrink import ranges_of, shrunk
from tests.system.simulation.simulate import play

if TYPE_CHECKING:
    from collections.abc import Mapping

_BATCH = 50
#: Number of seeds between two reports of progress.
_SIGN = 1000
#: Number of failures that are printed in full.
_STORIES = 3


class Result(NamedTuple):
    """The result of one seed."""

    seed: int
    violation: str
    turns: int
    seconds: float
    requests: int
    notifications: int
    cpu: float
    struck: Mapping[str, int]


def result_of(seed: int) -> Result:
    """Play one seed."""
    begin = time.process_time()
    outcome = play(draw(seed))
    violation = str(outcome.violation or "")
    used = time.process_time() - begin
    return Result(
        seed, violation, outcome.turns, outcome.seconds, outcome.requests, outcome.notifications, used, outcome.struck
    )


def results_of(seeds: range) -> list[Result]:
    """Play several seeds."""
    return [result_of(seed) for seed in seeds]


def many(first: int, number: int, jobs: int) -> int:
    """Play many seeds in several processes, and return the exit status."""
    begin = time.monotonic()
    seeds = range(first, first + number)
    batches = [seeds[at : at + _BATCH] for at in range(0, number, _BATCH)]
    results: list[Result] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=gc.freeze) as pool:
        for batch in pool.map(results_of, batches):
            results += batch
            for result in batch:
                if result.violation:
                    print(f"seed {result.seed}: {result.violation}", flush=True)
            if len(results) % _SIGN == 0:
                print(f"{len(results)} of {number} are played", file=sys.stderr, flush=True)
    bad = [result for result in results if result.violation]
    for result in bad[:_STORIES]:
        one(result.seed, (), shrink=True)
    hours = sum(result.seconds for result in results) / 3600
    print(
        f"{len(results)} seeds from {first} on, {len(bad)} failed: {hours:.0f} virtual hours, "
        f"{sum(result.turns for result in results)} turns of the loop, "
        f"{sum(result.requests for result in results)} requests, "
        f"{sum(result.notifications for result in results)} notifications; "
        f"{1000 * sum(result.cpu for result in results) / len(results):.0f} ms of CPU each, "
        f"{time.monotonic() - begin:.0f} s in all"
    )
    struck = Counter(dict.fromkeys(FAULTS, 0))
    for result in results:
        struck.update(result.struck)
    print("Strikes: " + ", ".join(f"{name} {number}" for name, number in sorted(struck.items())))
    return 1 if bad else 0


def one(seed: int, without: tuple[int, ...], *, shrink: bool) -> int:
    """Print the log of one seed, and return the exit status."""
    scenario = draw(seed).without(without)
    outcome = play(scenario)
    if shrink and outcome.violation is not None:
        without = shrunk(draw(seed), without, outcome.violation.invariant)
        outcome = play(draw(seed).without(without))
    scenario = draw(seed).without(without)
    print(f"Seed {seed}: {scenario.described()}")
    print(outcome.story.render())
    if outcome.violation is None:
        print(f"Seed {seed}: nothing is violated")
        return 0
    left_out = f" --without {ranges_of(without)}" if without else ""
    again = f"python -m tests.system.simulation --seed {seed}{left_out}"
    print(f"Seed {seed}: {outcome.violation}\nTo see it again: {again}\n")
    return 1
