"""Searches for a seed that finds each planted bug."""

from __future__ import annotations

import gc
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from tests.system.simulation import planted_following, planted_telling
from tests.system.simulation.scenario import draw
from tests.system.simulation.simulate import play

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.system.simulation.planted import Planted

PLANTED: list[Planted] = [*planted_telling.PLANTED, *planted_following.PLANTED]

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
    cells = [line.split(" | ") for line in page.read_text().partition(_BEGIN)[2].splitlines() if line.startswith("| ")]
    return {cell[0].removeprefix("| "): int(cell[2]) for cell in cells if cell[2].isdigit()}
