"""Check all pages: languages and lines of code, imports, links, row numbers, navigation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.project.docs.blocks import ALL, DOCS, PAGES, PROJECT, Block, in_language

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = {"python", "console", "json", "text", "toml", "yaml"}
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
IMPORT = re.compile(r"\b(?:from|import) +(aioinformer(?:\.\w+)*)")
#: What a page of the reference shows.
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)
#: Numbers of rows of the conformance list and of the behaviours of controllers, such as REF-07 and C-07.
ROWS = (DOCS / "conformance.toml").read_text() + (DOCS / "controllers.toml").read_text()
ROW = re.compile(rf"\b(?:{'|'.join(sorted(set(re.findall(r'([A-Z]+)-[0-9]+', ROWS))))})-[0-9]+\b")
#: Pages that are about those rows, or about the code of this project.
OF_CONTRIBUTORS = {
    "conformance.md",
    "contract.md",
    "controllers.md",
    "design.md",
    "fault-matrix.md",
    "kubectl.md",
    "simulation.md",
    "soak.md",
}


@pytest.mark.parametrize("block", ALL, ids=str)
def test_block_has_a_known_language_and_short_lines(block: Block) -> None:
    assert block.language in LANGUAGES
    assert [line for line in block.code.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize("block", in_language("json"), ids=str)
def test_json_block_is_json(block: Block) -> None:
    try:
        json.loads(block.code)
    except json.JSONDecodeError:
        for line in block.code.splitlines():
            json.loads(line)


@pytest.mark.parametrize("page", [PROJECT / "README.md", PROJECT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_relative_links_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (PROJECT / link).exists()] == []


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_imports_are_from_the_root_or_a_room(path: Path) -> None:
    text = path.read_text().replace("aioinformer.testing.harness", "aioinformer.testing")  # a room in a room
    assert {module for module in IMPORT.findall(text) if module.count(".") > 1} == set()
    assert {name for name in DIRECTIVE.findall(text) if name.count(".") > 2} == set()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in OF_CONTRIBUTORS], ids=lambda page: page.name
)
def test_user_pages_have_no_row_numbers(page: Path) -> None:
    assert ROW.findall(page.read_text()) == []


def test_navigation_has_every_page() -> None:
    navigation = set(re.findall(r"[\w/-]+\.md", (PROJECT / "mkdocs.yml").read_text()))
    assert navigation == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
