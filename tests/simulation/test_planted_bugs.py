"""The simulation finds every planted bug."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.simulation.hunt import PLANTED, SEEDS, found_by, hunt
from tests.simulation.scenario import draw
from tests.simulation.simulate import play

if TYPE_CHECKING:
    from tests.simulation.planted import Planted

_PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_planted_bug_is_found(bug: Planted) -> None:
    found = found_by(_PAGE)
    assert bug.name in found, "run python -m tests.simulation --bugs"
    seed = hunt(bug, chain([found[bug.name]], SEEDS)).seed
    assert seed
    assert play(draw(seed)).violation is None, "the seed fails without the bug, too"
