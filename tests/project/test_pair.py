"""The comparison of two commits, `benchmarks/pair.py`, on costs that are planted instead of measured."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import commits
import pair
import pytest
import servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROJECT = Path(__file__).parents[2]


def planted(ratio: float, *, noise: float, seed: int = 1) -> pair.Round:
    """Costs whose ratio has some noise, on a machine whose speed changes by up to a factor of two."""
    random = Random(seed)

    def measure(number: int) -> Sequence[tuple[float, float]]:
        return [
            (speed * random.gauss(1.0, noise), speed * ratio * random.gauss(1.0, noise))
            for speed in (random.uniform(1.0, 2.0) for _ in range(10))
        ]

    return measure


def ticks() -> Iterator[float]:
    return (float(number) for number in count())


def answer(ratio: float, *, noise: float, seed: int = 1) -> pair.Answer:
    return pair.compare(planted(ratio, noise=noise, seed=seed), seconds=100.0, clock=ticks().__next__)


@pytest.mark.parametrize("seed", range(5))
def test_equal_costs_are_no_slower(seed: int) -> None:
    assert answer(1.0, noise=0.05, seed=seed).verdict == pair.NO_SLOWER


@pytest.mark.parametrize("seed", range(5))
def test_planted_slowdown_is_found(seed: int) -> None:
    found = answer(1.1, noise=0.05, seed=seed)
    assert found.verdict == pair.SLOWER
    assert found.bounds is not None
    assert found.bounds[0] < 1.1 < found.bounds[1]


def test_lower_cost_is_no_slower() -> None:
    assert answer(0.8, noise=0.02).verdict == pair.NO_SLOWER


def test_noise_that_stays_wide_is_no_answer() -> None:
    found = answer(1.0, noise=0.9)
    assert found.verdict == pair.NOT_MEASURED
    assert len(found.ratios) > 50


def test_interval_is_that_of_the_sign_test() -> None:
    ratios = [1.0, 1.3, 1.1, 1.2, 0.9, 0.7, 0.8, 1.5, 1.4]
    assert pair.interval(ratios[:5]) is None
    assert pair.interval(ratios[:6]) == (0.7, 1.3)
    assert pair.interval(ratios) == (0.8, 1.4)


def test_each_side_measures_its_own_package(tmp_path: Path) -> None:
    trees = [tmp_path / "old", tmp_path / "new"]
    for tree in trees:
        tree.mkdir()
        (tree / "aioinformer").symlink_to(PROJECT / "aioinformer", target_is_directory=True)
    with pair.sides("empty", trees) as both:
        for side in both:
            with pair.Client(side, "empty", seed=1, rate=None) as client:
                assert client.work(10) > 0
        elsewhere = pair.Side(tmp_path / "absent", both[0].url, both[0].environment)
        with pytest.raises(pair.Failed, match="not the package in"), pair.Client(elsewhere, "empty", seed=1, rate=None):
            pass


def test_commit_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "_CHECKOUTS", tmp_path)
    folder = pair.tree_of("HEAD")
    assert (folder / "aioinformer" / "__init__.py").is_file()
    assert pair.tree_of("HEAD") == folder
    assert list(tmp_path.iterdir()) == [folder]
    assert pair.tree_of(str(PROJECT)) == PROJECT


def test_checkout_of_pythonpath_is_measured_but_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/another/checkout")
    assert servers.client_environment()["PYTHONPATH"].split(os.pathsep)[0] == "/another/checkout"
    assert servers.server_environment()["PYTHONPATH"] == str(PROJECT)
    monkeypatch.delenv("PYTHONPATH")
    assert servers.client_environment()["PYTHONPATH"] == str(PROJECT)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_instructions_show_a_planted_loop() -> None:
    def instructions(loops: int) -> int:
        program = f"number=0; while [ $number -lt {loops} ]; do number=$((number + 1)); done"
        with pair.counting() as (under, read):
            subprocess.run([*under, "/bin/sh", "-c", program], check=True)
            return read()

    none, once, twice = instructions(0), instructions(20_000), instructions(40_000)
    assert (twice - none) / (once - none) == pytest.approx(2.0, rel=0.05)
