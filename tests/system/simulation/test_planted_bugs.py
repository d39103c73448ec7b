"""The simulation finds every planted bug."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.simulation.hunt import PLANTED, SEEDS, found_by, hunt
from tests.system.simulation.scenario import draw
from tests.system.simulation.simulate import play

if TYPE_CHECKING:
    from tests.system.simulation.planted import Planted

_PAGE = Path(__file__).parents[3] / "docs" / "simulation.md"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_planted_bug_is_found(bug: Planted) -> None:
    found = found_by(_PAGE)
    assert bug.name in found, "run python -m tests.system.simulation --bugs"
    seed = hunt(bug, chain([found[bug.name]], SEEDS)).seed
    assert seed
    assert play(draw(seed)).violation is None, "the seed fails without the bug, too"
