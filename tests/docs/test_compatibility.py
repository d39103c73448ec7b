"""The page on compatibility names the versions of pyproject.toml and of the locks."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.blocks import DOCS, PROJECT

PAGE = (DOCS / "compatibility.md").read_text()
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (PROJECT / "requirements" / "dev.txt").read_text(), re.MULTILINE))


def row(name: str) -> str:
    """Return the line of a table that begins with a name."""
    [line] = re.findall(rf"^\| {re.escape(name)}[ (].*$", PAGE, re.MULTILINE | re.IGNORECASE)
    return str(line)


@pytest.mark.parametrize("requirement", METADATA["dependencies"])
def test_a_dependency_is_listed_with_its_versions(requirement: str) -> None:
    name = re.split("[<>=]", requirement)[0]
    line = row(name)
    for bound in re.findall(r">=([\d.]+)", requirement):
        assert f" {bound} or later" in line
    for bound in re.findall(r"<([\d.]+)", requirement):
        assert f"below {bound}" in line
    assert LOCKED[name.replace("_", "-")] in line


def test_pydantic_is_listed_with_its_locked_version() -> None:
    assert LOCKED["pydantic"] in row("pydantic")


def test_python_is_listed_with_its_oldest_version() -> None:
    assert METADATA["requires-python"].removeprefix(">=") in row("Python")


@pytest.mark.parametrize("extra", METADATA["optional-dependencies"])
def test_an_extra_is_listed_with_its_packages(extra: str) -> None:
    line = row(f"`{extra}`")
    for requirement in METADATA["optional-dependencies"][extra]:
        assert re.split("[<>=]", requirement)[0] in line
