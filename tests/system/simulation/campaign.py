"""Plays one or many seeds, reduces failing scenarios, and searches for seeds that find the planted bugs."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
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


def shrunk(scenario: Scenario, without: Iterable[int], invariant: str) -> tuple[int, ...]:
    """Return the numbers of removable actions: first halves are tried, then smaller and smaller parts."""
    left_out = set(without)
    size = max(1, len(scenario.actions) // 2)
    while True:
        kept = [number for number in range(len(scenario.actions)) if number not in left_out]
        smaller = False
        for begin in range(0, len(kept), size):
            candidate = left_out | set(kept[begin : begin + size])
            violation = play(scenario.without(candidate)).violation
            if violation is not None and violation.invariant == invariant:
                left_out, smaller = candidate, True
        if size == 1 and not smaller:
            return tuple(sorted(left_out))
        size = max(1, size // 2)


def ranges_of(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: "4,7-19"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def numbers_in(ranges: str) -> tuple[int, ...]:
    """Return the numbers in ranges such as "4,7-19"."""
    numbers: list[int] = []
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


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


#: The seeds to search.
SEEDS = range(1, 1601)

_BEGIN = "<!-- planted bugs -->"
_END = "<!-- end -->"


class Catch(NamedTuple):
    """The seed that found a bug.

    Attributes:
        seed: of the first scenario that violates something.
        invariant: what it violates; "" if nothing was found.
        what: describes the violation.
    """

    seed: int
    invariant: str
    what: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.invariant}: {self.what}" if self.seed else "NOT FOUND"


def hunt(bug: Planted, seeds: Iterable[int]) -> Catch:
    """Play seeds with a planted bug until one finds it."""
    with bug.plant():
        for seed in seeds:
            violation = play(draw(seed)).violation
            if violation is not None:
                return Catch(seed, violation.invariant, violation.what)
    return Catch(0, "", "")


def bug_named(name: str) -> Planted:
    """Return the bug with a name.

    Raises:
        SystemExit: there is none.
    """
    for bug in PLANTED:
        if bug.name == name:
            return bug
    raise SystemExit(f"there is no planted bug {name!r}; choose one of {', '.join(bug.name for bug in PLANTED)}")


def hunt_by_name(name: str, seeds: range) -> Catch:
    """Search for a bug by its name, in another process."""
    return hunt(bug_named(name), seeds)


def hunt_all(jobs: int, page: Path) -> int:
    """Search for all bugs, write the table of the page, and return the exit status."""
    rows = ["| bug | what is wrong | first seed | violates |", "|---|---|---|---|"]
    missed = 0
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=gc.freeze) as pool:
        catches = pool.map(hunt_by_name, [bug.name for bug in PLANTED], repeat(SEEDS))
        for bug, catch in zip(PLANTED, catches, strict=True):
            rows.append(f"| {bug.name} | {bug.about} | {catch.seed or 'none'} | {catch.invariant} |")
            missed += not catch.seed
            print(f"{bug.name}: {catch}", flush=True)
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n" + "\n".join(rows) + f"\n{_END}{after}")
    return 1 if missed else 0


def found_by(page: Path) -> dict[str, int]:
    """Return the seed that finds each bug, from the table of the page."""
    table = page.read_text().partition(_BEGIN)[2].partition(_END)[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {cell[0].removeprefix("| "): int(cell[2]) for cell in cells if cell[2].isdigit()}
