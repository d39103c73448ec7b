"""A short soak test, and the verdict on its figures."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.soak.__main__ import Soak
from tests.system.soak.page import PAGE, PLOT, RESULTS, TARGETS, page, plot, verdict
from tests.system.soak.targets import OwnTarget

if TYPE_CHECKING:
    from pathlib import Path

FIGURES: dict[str, Any] = {
    "target": "some server",
    "seconds": 3600,
    "writes": 5,
    "faults": {"cut": 2},
    "informers": ["a", "b"],
    "samples": [{"at": 30, "rss_kib": 1000}],
    "rests": [
        {
            **{"at": at, "rss_kib": 1000, "objects": 70, "tasks": 5, "sockets": 2, "threads": 1},
            **{"settled_after": 1.0, "visits": 3, "state_changes": 4},
        }
        for at in range(0, 3600, 100)
    ],
    "left": {"tasks_left": [], "sockets": 0, "lies": [], "cpu_seconds": 100.0},
}


async def test_short_soak_converges_and_leaves_nothing(tmp_path: Path) -> None:
    async with OwnTarget(tmp_path) as target:
        target.faults = ("cut", "compaction")
        figures = await Soak(target, seconds=3, seed=7).run()
    found = verdict(figures)
    assert (found["checkpoints"], found["checkpoints_settled"]) == (2, 2)
    assert (found["tasks_left"], found["sockets_left"], found["lies"]) == ([], 0, [])


def changed(**values: Any) -> dict[str, Any]:
    """Return the figures with values that differ in the later rests."""
    figures = copy.deepcopy(FIGURES)
    for rest in figures["rests"][20:]:
        rest |= values
    return figures


@pytest.mark.parametrize(
    ("figures", "passed"),
    [
        pytest.param(FIGURES, True, id="flat"),
        pytest.param(changed(rss_kib=1100), False, id="memory"),
        pytest.param({**changed(rss_kib=1100), "seconds": 900}, True, id="memory during the warm-up"),
        pytest.param(changed(objects=80), False, id="objects"),
        pytest.param(changed(tasks=6), False, id="tasks"),
        pytest.param(changed(sockets=3), False, id="sockets"),
        pytest.param(changed(settled_after=None), False, id="not settled"),
        *(
            pytest.param({**FIGURES, "left": {**FIGURES["left"], **left}}, False, id=f"left: {next(iter(left))}")
            for left in ({"tasks_left": ["x"]}, {"sockets": 1}, {"lies": ["x"]})
        ),
    ],
)
def test_verdict(figures: dict[str, Any], passed: bool) -> None:
    assert verdict(figures)["passed"] is passed


def test_page_agrees_with_the_figures() -> None:
    runs = [json.loads((RESULTS / f"{name}.json").read_text()) for name in TARGETS]
    assert (PAGE.read_text(), PLOT.read_text()) == (page(runs), plot(runs)), "run python -m tests.system.soak.page"
    assert all(verdict(run)["passed"] for run in runs)
