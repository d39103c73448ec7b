"""Compare the page on compatibility with pyproject.toml and the lock files."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.project.docs.blocks import DOCS, PROJECT

PAGE = (DOCS / "compatibility.md").read_text()
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (PROJECT / "requirements" / "dev.txt").read_text(), re.MULTILINE))


def row(name: str) -> str:
    """Return the line of a table that begins with a name."""
    [line] = re.findall(rf"^\| {re.escape(name)}[ (].*$", PAGE, re.MULTILINE | re.IGNORECASE)
    return str(line)


@pytest.mark.parametrize("requirement", METADATA["dependencies"])
def test_page_lists_the_versions_of_a_dependency(requirement: str) -> None:
    name = re.split("[<>=]", requirement)[0]
    line = row(name)
    for bound in re.findall(r">=([\d.]+)", requirement):
        assert f" {bound} or later" in line
    for bound in re.findall(r"<([\d.]+)", requirement):
        assert f"below {bound}" in line
    assert LOCKED[name.replace("_", "-")] in line


def test_page_lists_the_locked_version_of_pydantic() -> None:
    assert LOCKED["pydantic"] in row("pydantic")


def test_page_lists_the_oldest_version_of_python() -> None:
    assert METADATA["requires-python"].removeprefix(">=") in row("Python")


@pytest.mark.parametrize("extra", METADATA["optional-dependencies"])
def test_page_lists_the_packages_of_an_extra(extra: str) -> None:
    line = row(f"`{extra}`")
    for requirement in METADATA["optional-dependencies"][extra]:
        assert re.split("[<>=]", requirement)[0] in line
