"""A short soak test, and the verdict on its figures."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.soak.__main__ import Soak, seconds_of
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


def test_flat_figures_pass_and_make_a_page() -> None:
    assert verdict(FIGURES)["passed"]
    assert "| some server |" in page([FIGURES])
    assert "<polyline" in plot([FIGURES])


@pytest.mark.parametrize(
    ("name", "value"),
    [("rss_kib", 1100), ("objects", 80), ("tasks", 6), ("sockets", 3), ("settled_after", None)],
)
def test_growth_does_not_pass(name: str, value: object) -> None:
    figures = copy.deepcopy(FIGURES)
    for rest in figures["rests"][20:]:
        rest[name] = value
    assert not verdict(figures)["passed"]


def test_memory_is_not_judged_during_warm_up() -> None:
    figures = copy.deepcopy(FIGURES)
    figures["rests"][-1]["rss_kib"] = 100_000
    assert not verdict(figures)["passed"]
    assert verdict({**figures, "seconds": 900})["passed"]


@pytest.mark.parametrize(("name", "value"), [("tasks_left", ["x"]), ("sockets", 1), ("lies", ["x"])])
def test_leftovers_do_not_pass(name: str, value: object) -> None:
    figures = copy.deepcopy(FIGURES)
    figures["left"][name] = value
    assert not verdict(figures)["passed"]


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1h", 3600)])
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_page_agrees_with_the_figures() -> None:
    runs = [json.loads((RESULTS / f"{name}.json").read_text()) for name in TARGETS]
    assert (PAGE.read_text(), PLOT.read_text()) == (page(runs), plot(runs)), "run python -m tests.system.soak.page"
    assert all(verdict(run)["passed"] for run in runs)
