"""Looks for each planted bug, seed after seed, until one of them finds it."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.planted import PLANTED
from tests.simulation.scenario import draw
from tests.simulation.simulate import play

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.simulation.planted import Planted

#: Where a bug is looked for.
SEEDS = range(1, 301)

_BEGIN = "<!-- planted bugs -->"
_END = "<!-- end -->"


class Catch(NamedTuple):
    """How a bug was found.

    Attributes:
        seed: of the first scenario that violates something.
        invariant: what it violates; "" if nothing was found.
        what: was seen.
    """

    seed: int
    invariant: str
    what: str


def hunt(bug: Planted, seeds: Iterable[int]) -> Catch:
    """Plays seeds with a bug in the product until one finds it."""
    with bug.plant():
        for seed in seeds:
            violation = play(draw(seed)).violation
            if violation is not None:
                return Catch(seed, violation.invariant, violation.what)
    return Catch(0, "", "")


def hunt_by_name(name: str, seeds: range) -> Catch:
    """The same for another process."""
    return hunt(next(bug for bug in PLANTED if bug.name == name), seeds)


def hunt_all(jobs: int, page: Path) -> int:
    """Looks for all bugs, and writes into the page what found them; the exit status."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver"), initializer=gc.freeze) as pool:
        catches = list(pool.map(hunt_by_name, [bug.name for bug in PLANTED], repeat(SEEDS)))
    rows = ["| bug | what is wrong | first seed | violates |", "|---|---|---|---|"]
    for bug, catch in zip(PLANTED, catches, strict=True):
        rows.append(f"| {bug.name} | {bug.about} | {catch.seed or 'none'} | {catch.invariant} |")
        print(f"{bug.name}: {f'seed {catch.seed}: {catch.invariant}: {catch.what}' if catch.seed else 'NOT FOUND'}")
    before, _, rest = page.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    page.write_text(f"{before}{_BEGIN}\n" + "\n".join(rows) + f"\n{_END}{after}")
    return 0 if all(catch.seed for catch in catches) else 1


def found_by(page: Path) -> dict[str, int]:
    """name of a bug -> the seed that found it, as the page says."""
    cells = [line.split(" | ") for line in page.read_text().partition(_BEGIN)[2].splitlines() if line.startswith("| ")]
    return {cell[0].removeprefix("| "): int(cell[2]) for cell in cells if cell[2].isdigit()}
