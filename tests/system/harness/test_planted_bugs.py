"""The harness finds each planted bug, most of them only by faults; and it finds nothing in the right controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.testing.harness import explore, run
from tests.system.harness import planted
from tests.system.harness.sample import DEFINITION, Widgets, life, namesake, taken_name

if TYPE_CHECKING:
    from aioinformer.controller import Manager
    from aioinformer.testing.harness import Harness
    from aioinformer.testing.harness.exploring import Scenario

#: The bug, the scenario, and what is wrong then.
NEED_FAULTS: list[tuple[type[Widgets], Scenario, str]] = [
    (planted.CreatesFromStaleCache, life, "the parts are"),
    (planted.RemovesFinalizerFirst, life, "a disk is left"),
    (planted.FollowsDeletions, life, "a disk is left"),
    (planted.FollowsDeletions, namesake, "a disk is left"),
    (planted.AdoptsLater, life, "the parts are .*nobody"),
    (planted.SwallowsErrors, life, "the parts are"),
]
NEED_NONE: list[tuple[type[Widgets], Scenario, str]] = [
    (planted.CountsRuns, life, "was changed 30 times .* metadata.annotations.example.com/runs"),
    (planted.MakesDiskFirst, life, "a disk is left"),
    (planted.RemembersParts, life, "the parts are"),
    (planted.ReportsLatestGeneration, life, "the status is that of another generation"),
    (planted.TakesOver, taken_name, "it was taken over"),
]


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize("scenario", [life, namesake, taken_name])
def test_right_controller_passes_all_seeds(scenario: Scenario) -> None:
    def manager(harness: Harness) -> Manager:
        return Widgets(harness).manager()

    outcome = explore(manager, scenario, seeds=range(40), objects=[DEFINITION])
    assert outcome.runs == 41
    assert min(outcome.faults[kind] for kind in ("stale", "lost", "conflicts", "merged")) > 0


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize(("bug", "scenario", "wrong"), NEED_FAULTS)
def test_faults_reveal_bugs(bug: type[Widgets], scenario: Scenario, wrong: str) -> None:
    def manager(harness: Harness) -> Manager:
        return bug(harness).manager()

    run(manager, scenario, objects=[DEFINITION])  # without faults, all is well
    with pytest.raises(AssertionError, match=wrong) as failure:
        explore(manager, scenario, seeds=range(100), objects=[DEFINITION])
    assert "To repeat this run" in failure.value.__notes__[0]


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize(("bug", "scenario", "wrong"), NEED_NONE)
def test_first_run_reveals_bugs(bug: type[Widgets], scenario: Scenario, wrong: str) -> None:
    def manager(harness: Harness) -> Manager:
        return bug(harness).manager()

    with pytest.raises(AssertionError, match=wrong):
        run(manager, scenario, objects=[DEFINITION])
