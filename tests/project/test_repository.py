"""Generated files and pages, the commands that run the tests, and locked dependencies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import behaviours
import conformance
import contract
import dependencies
import pytest
from conformance import read_tests

from tests.selection import deselect_values

PROJECT = Path(__file__).parents[2]
BENCHMARKS = PROJECT / "benchmarks"


def test_generated_files_are_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_behaviours_have_tests_or_reasons_and_their_pages_are_up_to_date() -> None:
    rows, tests, scripts = conformance.read_rows(), read_tests(), conformance.read_scripts()
    ours, proofs = behaviours.read_rows(), read_tests(mark=behaviours.MARK)
    assert conformance.find_problems(rows, tests, scripts) + behaviours.find_problems(ours, proofs) == []
    assert conformance.PAGE.read_text() == conformance.render(rows, tests, scripts), "run scripts/conformance.py"
    assert behaviours.PAGE.read_text() == behaviours.render(ours, proofs), "run scripts/behaviours.py"


def test_page_of_the_contract_is_up_to_date() -> None:
    page = contract.render(contract.read_rows(), contract.read_checks())
    assert page == contract.PAGE.read_text(), "run scripts/contract.py"


def test_licences_of_dependencies_are_up_to_date() -> None:
    page = dependencies.PAGE.read_text()
    assert page == dependencies.render(page), "run scripts/dependencies.py"


def selected(names: list[str], values: int) -> list[str]:
    """Return those of some tests that a run with `--values` has."""
    items: list[Any] = [Mock(nodeid=name) for name in names]
    config = Mock()
    config.getoption.return_value = values
    deselect_values(config, items)
    return [item.nodeid for item in items]


def test_run_with_values_has_so_many_of_each_test() -> None:
    names = ["a.py::test_plain", "a.py::test_two[x]", "a.py::test_two[y]", *(f"b.py::test_many[{n}]" for n in range(9))]
    found = selected(names, 3)
    assert found[:3] == names[:3]
    assert len(found) == 6
    assert [name for name in names if name in found] == found
    assert sorted(selected(names[::-1], 3)) == sorted(found), "it depends on the order of the tests"
    assert set(selected(names, 1)) < set(found)


PYPROJECT: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
LOWEST = (PROJECT / "requirements" / "lowest.txt").read_text()


def test_lowest_lock_has_the_declared_floors() -> None:
    locked = dict(re.findall(r"^([a-z0-9-]+)==([0-9.]+)", LOWEST, re.MULTILINE))
    project = PYPROJECT["project"]
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        name, floor = re.findall(r"^([\w-]+)>=([0-9.]+)", requirement)[0]
        version = locked[name.replace("_", "-")].split(".")
        width = max(len(version), floor.count(".") + 1)
        assert padded(version, width) == padded(floor.split("."), width), requirement


def padded(version: list[str], width: int) -> list[str]:
    return version + ["0"] * (width - len(version))


@pytest.mark.parametrize("lock", sorted((PROJECT / "requirements").glob("*.txt")), ids=lambda path: path.stem)
def test_locks_have_hashes_and_no_addresses(lock: Path) -> None:
    lines = lock.read_text().splitlines()
    assert [line for line in lines if "://" in line or line.startswith("-")] == []
    assert all(line.endswith("\\") for line in lines if "==" in line)
    assert any("--hash=sha256:" in line for line in lines)


#: Programs that build peers.
BUILDERS = [path.stem for path in BENCHMARKS.glob("*.py") if re.search(r"Peers\(\)[^\0]*__main__", path.read_text())]


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_help_of_a_benchmark_builds_and_downloads_nothing(name: str, tmp_path: Path) -> None:
    for tool in ("go", "cargo"):
        (tmp_path / tool).write_text(f"#!/bin/sh\ntouch {tmp_path}/{tool}.called\nexit 1\n")
        (tmp_path / tool).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), "--help"]
    environments = sorted(BENCHMARKS.glob("peers/.built/*"))
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"usage: {name}.py")
    assert list(tmp_path.glob("*.called")) == []
    assert sorted(BENCHMARKS.glob("peers/.built/*")) == environments
