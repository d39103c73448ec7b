"""Releases: notes from the changelog, one place for the version, and workflows that cannot be changed from outside."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import changelog
import pytest
import yaml

from aioinformer.exports import package_version

PROJECT = Path(__file__).parents[2]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))

CHANGELOG = """# Changelog

Versions follow semantic versioning.

## 0.3.0 (unreleased)

- Not yet.

## 0.2.0 (2026-12-24)

### Informers

- New.

## 0.1.0 (2026-12-01)
"""


def test_notes_are_the_section_of_the_version() -> None:
    assert changelog.notes("0.2.0", CHANGELOG) == "### Informers\n\n- New.\n"


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        pytest.param("0.3.0", r'has "## 0\.3\.0 \(unreleased\)": write the date', id="unreleased"),
        pytest.param("0.4.0", r"has no section 0\.4\.0", id="missing"),
        pytest.param("0.1.0", r"section 0\.1\.0 of CHANGELOG\.md is empty", id="empty"),
    ],
)
def test_release_without_notes_is_refused(version: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        changelog.notes(version, CHANGELOG)


def test_heading_without_date_is_named() -> None:
    with pytest.raises(ValueError, match="the heading '## Soon' of the changelog"):
        changelog.sections("## Soon\n")


def test_version_is_in_one_place() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert package_version() == project["version"] == changelog.sections()[0].version
    sources = [path.read_text() for path in (PROJECT / "aioinformer").rglob("*.py")]
    assert [text for text in sources if f'"{project["version"]}"' in text] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_of_workflows_are_pinned_by_hash(workflow: Path) -> None:
    lines = [line.strip() for line in workflow.read_text().splitlines() if "uses:" in line]
    assert lines
    pinned = re.compile(r"(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in lines if not pinned.fullmatch(line)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_no_more_rights_than_they_need(workflow: Path) -> None:
    read: dict[str, Any] = yaml.safe_load(workflow.read_text())
    assert read["permissions"] == {"contents": "read"}
    rights = {name: job["permissions"] for name, job in read["jobs"].items() if "permissions" in job}
    release = {"publish": {"id-token": "write"}, "notes": {"contents": "write"}}
    assert rights == (release if workflow.stem == "release" else {})
