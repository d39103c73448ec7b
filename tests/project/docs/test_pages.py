"""Check all pages: languages and lines of code, imports, links, row numbers, navigation."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from typing import TYPE_CHECKING

import programs
import pytest

import aioinformer
from tests.project.docs.blocks import ALL, DOCS, PAGES, PROJECT, Block, in_language

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

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


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_page_of_the_package_index_has_no_relative_links(name: str) -> None:
    text = (PROJECT / name).read_text()
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    files = re.findall(r"`((?:docs/)?[\w-]+\.md)`", text)
    assert [file for file in files if not any((folder / file).exists() for folder in (PROJECT, DOCS))] == []


def test_pages_show_programs_as_they_are() -> None:
    shown = {block.program for block in ALL if block.program}
    assert len(shown) >= 6
    assert [path.name for path in programs.outdated()] == []
    assert [page.name for page in PAGES if "--8<--" in page.read_text()] == []  # only mkdocs resolves these


def test_examples_have_short_lines() -> None:
    long = [f"{path.name}: {line}" for path in EXAMPLES for line in path.read_text().splitlines() if len(line) > 100]
    assert long == []


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
    assert navigation == {"changelog.md", *(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))}


def _docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the docstrings of what a module exports, and of its public members, by name."""
    for name in module.__all__:
        exported = getattr(module, name)
        if inspect.isclass(exported) or inspect.isroutine(exported):
            yield name, inspect.getdoc(exported) or ""
        for member, value in vars(exported).items() if inspect.isclass(exported) else ():
            if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                yield f"{name}.{member}", inspect.getdoc(value) or ""


@pytest.mark.parametrize("name", ["", *(f".{each.name}" for each in pkgutil.iter_modules(aioinformer.__path__))])
def test_public_docstrings_have_no_row_numbers(name: str) -> None:
    if name == ".__main__":
        return
    module = importlib.import_module(f"aioinformer{name}")
    if hasattr(module, "__all__"):
        assert {where: ROW.findall(text) for where, text in _docstrings(module) if ROW.search(text)} == {}


def test_search_finds_guides_and_not_generated_tables() -> None:
    """The theme adds pages to its index unless they exclude themselves, and weights `tags` above titles."""
    generated = re.search(r"^not_in_nav: .*\n((?:  .*\n)+)", (PROJECT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert generated is not None
    for name in generated[1].split():
        text = (DOCS / name).read_text()
        assert text.startswith("---\nsearch: { exclude: true }\n---\n"), name
        assert re.findall("^# .*", text, re.MULTILINE)[0].startswith("# Evidence: "), name
        assert f"({name})" in (DOCS / "evidence.md").read_text()
    assert "\ntags: [controller, controllers, " in (DOCS / "write-a-controller.md").read_text()
