"""Compare statements of pages with the package, its metadata and its tests: metrics, versions, security claims."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.project.docs.blocks import DOCS, PROJECT

METRICS = (DOCS / "metrics.md").read_text()
COMPATIBILITY = (DOCS / "compatibility.md").read_text()
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (PROJECT / "requirements" / "dev.txt").read_text(), re.MULTILINE))


def test_page_lists_every_metric() -> None:
    exporter = (PROJECT / "aioinformer" / "prometheus.py").read_text()
    exported = set(re.findall(r'"((?:informer|reflector|workqueue)_\w+)"', exporter))
    listed = set(re.findall(r"`((?:informer|reflector|workqueue)_\w+)`", METRICS))
    assert {name.removesuffix("_total") for name in listed} == exported


def test_page_lists_every_reason_of_a_relist() -> None:
    reflector = "\n".join(path.read_text() for path in (PROJECT / "aioinformer" / "reflector").rglob("*.py"))
    counted = set(re.findall(r'list_reason(?: = |\()"(\w+)"', reflector))
    table = METRICS.split("| reason | the informer lists because |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == counted


def row(name: str) -> str:
    """Return the line of a table on compatibility that begins with a name."""
    [line] = re.findall(rf"^\| {re.escape(name)}[ (].*$", COMPATIBILITY, re.MULTILINE | re.IGNORECASE)
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


def test_page_lists_versions_of_python_and_pydantic() -> None:
    assert LOCKED["pydantic"] in row("pydantic")
    assert METADATA["requires-python"].removeprefix(">=") in row("Python")


@pytest.mark.parametrize("extra", METADATA["optional-dependencies"])
def test_page_lists_the_packages_of_an_extra(extra: str) -> None:
    line = row(f"`{extra}`")
    for requirement in METADATA["optional-dependencies"][extra]:
        assert re.split("[<>=]", requirement)[0] in line


def test_every_security_claim_names_existing_tests() -> None:
    lines = (DOCS / "security.md").read_text().splitlines()
    claims = [line for line in lines if line.startswith("| ") and "| tests |" not in line]
    assert [claim for claim in claims if "`test_" not in claim] == []
    sources = "".join(path.read_text() for path in (PROJECT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"def (test_\w+)\(", sources))
    assert {name for claim in claims for name in re.findall(r"`(test_\w+)`", claim)} - existing == set()


def test_design_names_places_that_exist() -> None:
    table = (DOCS / "design.md").read_text().split("| question | place |")[1].split("\n\n")[0]
    places = [re.findall(r"`([^`]+)`", line.split(" | ")[1]) for line in table.splitlines()[2:]]
    assert len(places) >= 12
    for names in places:
        files = [name for name in names if name.endswith(".py")]
        source = "".join((PROJECT / "aioinformer" / name).read_text() for name in files)
        assert [name for name in names if name not in files and not re.search(rf"\b{name}\b", source)] == []
