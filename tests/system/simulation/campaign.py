"""Plays one or many seeds, reduces failing scenarios, and searches for seeds that find the planted bugs."""

from __future__ import annotations

import gc
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from tests.system.simulation.planted import PLANTED
from tests.system.simulation.scenario import FAULTS, draw
from tests.system.simulation.simulate import play

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.system.simulation.planted import Planted
    from tests.system.simulation.scenario import Scenario
    from tests.system.simulation.world import Violation


def shrunk(scenario: Scenario, invariant: str) -> Scenario:
    """Remove the actions that a violation does not need: first halves are tried, then smaller and smaller parts."""
    size = max(1, len(scenario.actions) // 2)
    while True:
        begin, before = 0, len(scenario.actions)
        while begin < len(scenario.actions):
            candidate = scenario.without(range(begin, begin + size))
            violation = play(candidate).violation
            if violation is not None and violation.invariant == invariant:
                scenario = candidate
            else:
                begin += size
        if size == 1 and len(scenario.actions) == before:
            return scenario
        size = max(1, size // 2)


_BATCH = 50
#: Number of failures that are printed in full.
_STORIES = 3


class Result(NamedTuple):
    """The result of one seed: what it violates, or "", and how often each thing happened and each fault took effect."""

    seed: int
    violation: str
    numbers: Mapping[str, int]
    struck: Mapping[str, int]


def results_of(seeds: range) -> list[Result]:
    """Play several seeds."""
    outcomes = ((seed, play(draw(seed))) for seed in seeds)
    return [Result(seed, str(each.violation or ""), each.numbers, each.struck) for seed, each in outcomes]


def many(first: int, number: int, jobs: int) -> int:
    """Play many seeds in several processes, and return the exit status."""
    seeds = range(first, first + number)
    batches = [seeds[at : at + _BATCH] for at in range(0, number, _BATCH)]
    bad, numbers, struck = list[int](), Counter[str](), Counter(dict.fromkeys(FAULTS, 0))
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=gc.freeze) as pool:
        for result in chain.from_iterable(pool.map(results_of, batches)):
            numbers.update(result.numbers)
            struck.update(result.struck)
            if result.violation:
                bad.append(result.seed)
                print(f"seed {result.seed}: {result.violation}", flush=True)
    for seed in bad[:_STORIES]:
        one(seed, shrink=True)
    counts = ", ".join(f"{count} {what}" for what, count in numbers.items())
    print(f"{number} seeds from {first} on, {len(bad)} failed: {counts}")
    print("Strikes: " + ", ".join(f"{name} {count}" for name, count in sorted(struck.items())))
    return 1 if bad else 0


def one(seed: int, *, shrink: bool) -> int:
    """Print the log of one seed, and return the exit status."""
    scenario = draw(seed)
    outcome = play(scenario)
    if shrink and outcome.violation is not None:
        scenario = shrunk(scenario, outcome.violation.invariant)
        outcome = play(scenario)
    print(f"Seed {seed}: {scenario.described()}")
    print(outcome.story.render())
    print(f"Seed {seed}: {outcome.violation or 'nothing is violated'}\n")
    return 0 if outcome.violation is None else 1


#: The seeds to search.
SEEDS = range(1, 1601)

_BEGIN = "<!-- planted bugs -->"
_END = "<!-- end -->"


def hunt(bug: Planted, seeds: Iterable[int]) -> tuple[int, Violation] | None:
    """Play seeds with a planted bug until one violates something; return the seed and the violation."""
    with bug.plant():
        for seed in seeds:
            violation = play(draw(seed)).violation
            if violation is not None:
                return seed, violation
    return None


def hunt_by_number(number: int, recorded: int | None) -> tuple[int, Violation] | None:
    """Search for a bug, in another process; play its recorded seed last, which may be a later one."""
    return hunt(PLANTED[number], SEEDS if recorded is None else chain(SEEDS, [recorded]))


def hunt_all(jobs: int, page: Path) -> int:
    """Search for all bugs, write the table of the page, and return the exit status."""
    rows = ["| bug | what is wrong | first seed | violates |", "|---|---|---|---|"]
    missed = 0
    found = found_by(page)
    recorded = [found.get(bug.name) for bug in PLANTED]
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=gc.freeze) as pool:
        for bug, catch in zip(PLANTED, pool.map(hunt_by_number, range(len(PLANTED)), recorded), strict=True):
            seed, invariant = ("none", "") if catch is None else (catch[0], catch[1].invariant)
            rows.append(f"| {bug.name} | {bug.about} | {seed} | {invariant} |")
            missed += catch is None
            print(f"{bug.name}: {'NOT FOUND' if catch is None else f'seed {seed}: {catch[1]}'}", flush=True)
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n" + "\n".join(rows) + f"\n{_END}{after}")
    return 1 if missed else 0


def found_by(page: Path) -> dict[str, int]:
    """Return the seed that finds each bug, from the table of the page."""
    table = page.read_text().partition(_BEGIN)[2].partition(_END)[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {cell[0].removeprefix("| "): int(cell[2]) for cell in cells if cell[2].isdigit()}
