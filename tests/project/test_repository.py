"""Generated files and pages, the sample of rows, full runs, and locked dependencies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import behaviours
import conformance
import contract
import dependencies
import pytest
from conformance import read_tests

import full_run
from full_run import FOLDERS, FullRun
from tests.selection import ONE_OF, sample

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


FOLDERS_NOW = dict.fromkeys(FOLDERS, "a")
RUN = FullRun(real_server=True, folders=FOLDERS_NOW)
WITHOUT_SERVER = FullRun(real_server=False, folders=FOLDERS_NOW)
CHANGED = FullRun(real_server=True, folders={**FOLDERS_NOW, "tests/real/contract": "b"})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with a file in each folder."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "module.py").write_text("a = 1\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("run", "recorded", "reason"),
    [
        pytest.param(RUN, RUN, "", id="unchanged"),
        pytest.param(RUN, None, "no full run is recorded", id="first run"),
        pytest.param(CHANGED, RUN, "changed since the last recorded full run: tests/real/contract", id="changed"),
        pytest.param(RUN, WITHOUT_SERVER, "had no real API server", id="with a server"),
        pytest.param(WITHOUT_SERVER, RUN, "", id="without a server"),
    ],
)
def test_reason_for_a_full_run(run: FullRun, recorded: FullRun | None, reason: str) -> None:
    found = full_run.reason_for(run, recorded)
    assert reason in found
    assert bool(found) is bool(reason)


def test_hash_depends_on_tracked_contents_only(checkout: Path) -> None:
    before = full_run.this_run(checkout)
    (checkout / "tests/real/contract/untracked.py").write_text("b = 2\n")
    (checkout / "tests/real/contract/module.py").touch()
    assert full_run.this_run(checkout) == before
    (checkout / "tests/real/contract/module.py").write_text("a = 2\n")
    after = full_run.this_run(checkout)
    assert [folder for folder in FOLDERS if after.folders[folder] != before.folders[folder]] == ["tests/real/contract"]


def test_sample_has_one_of_ten_rows_of_each_module() -> None:
    rows = {(module, f"row{number}") for module, count in (("small", 1), ("large", 95)) for number in range(count)}
    chosen = sample(rows)
    assert sorted(module for module, _ in chosen) == ["large"] * -(-95 // ONE_OF) + ["small"]
    assert chosen == sample(sorted(rows))


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
