"""Fresh seeds of the simulation, seeds that failed in the past, and planted bugs, which it must find."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

import pytest

from tests.system.simulation.campaign import SEEDS, found_by, hunt
from tests.system.simulation.planted import PLANTED
from tests.system.simulation.scenario import draw
from tests.system.simulation.simulate import play

if TYPE_CHECKING:
    from tests.system.simulation.planted import Planted


#: So many new seeds are played in each run of the tests; `make simulate` plays others.
_FRESH_SEEDS = 30
_ROOT = Path(__file__).parents[3]
_PAGE = _ROOT / "docs" / "simulation.md"
#: Seeds that found a defect, some in the simulation. After a change of `scenario.draw` they are other scenarios.
_ONCE_FAILED = (
    275,
    367,
    390,
    1415,
    2912,
    20007,
    53733,
    500277,
    501067,
    600347,
    700816,
    700964,
    701706,
    712543,
    721103,
    722232,
)


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in its own process, where the order of sets does not vary."""
    command = [sys.executable, "-m", "tests.system.simulation", *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)


def test_fresh_seeds_violate_nothing() -> None:
    first = SystemRandom().randrange(10**9)
    run = simulate("--first", str(first), "--seeds", str(_FRESH_SEEDS), "--jobs", "1")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("seed", _ONCE_FAILED)
def test_previously_failing_seed_violates_nothing(seed: int) -> None:
    outcome = play(draw(seed))
    assert outcome.violation is None, outcome.story.render()


def test_seed_is_deterministic() -> None:
    assert play(draw(7)).story.render() == play(draw(7)).story.render()


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_planted_bug_is_found(bug: Planted) -> None:
    found = found_by(_PAGE)
    assert bug.name in found, "run python -m tests.system.simulation --bugs"
    catch = hunt(bug, chain([found[bug.name]], SEEDS))
    assert catch is not None
    assert catch[1].invariant != "error logged", "the bug only raises: what it replaces has changed"
    assert play(draw(catch[0])).violation is None, "the seed fails without the bug, too"
