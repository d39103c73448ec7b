"""What `make test-newest` and `make test-lowest` run with: the newest Python, and a lock of the lowest versions."""

from __future__ import annotations

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import newest_python

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
LOWEST = (PROJECT / "requirements" / "lowest.txt").read_text()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a function that adds a program to this machine: a Python that prints a version, or a failing shim."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(path: str, script: str) -> Path:
        program = tmp_path / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    return install


def test_newest_python_that_starts_is_found(install: Callable[[str, str], Path]) -> None:
    install("pyenv/versions/3.9.1/bin/python", "echo 3 9 1")
    install("pyenv/versions/3.12.1/bin/python", "echo 3 12 1")
    newest = install("pyenv/versions/3.13.0/bin/python", "echo 3 13 0")
    install("bin/python3.14", "exit 127")
    assert newest_python.newest([11, 12, 13, 14], (3, 11)) == str(newest)
    assert newest_python.newest([11, 12, 13, 14], (3, 13)) is None
    on_path = install("bin/python3.13", "echo 3 13 4")
    assert newest_python.newest([11, 12, 13, 14], (3, 11)) == str(on_path)


def test_python_that_is_not_declared_is_not_used(install: Callable[[str, str], Path]) -> None:
    install("pyenv/versions/3.15.0/bin/python", "echo 3 15 0")
    assert newest_python.newest([11, 12], (3, 11)) is None


def test_own_python_has_its_version() -> None:
    assert newest_python.version_of(sys.executable) == sys.version_info[:3]
    assert sys.version_info[1] in newest_python.supported()


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
