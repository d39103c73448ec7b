"""Check all pages: languages and lines of code, links, navigation, names, and statements about the package."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import llms_txt
import programs
import pytest

from aioinformer import (
    Client,
    EventRecorder,
    Indexer,
    LeaderElector,
    Lister,
    RateLimitingQueue,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.client import ResourceClient
from aioinformer.controller import Controller, Manager, Request
from aioinformer.exports import ADDRESSES, modules_of
from aioinformer.handlers import HandlerRegistration
from aioinformer.informer import InformerOptions
from tests.project.docs.blocks import ALL, DOCS, PAGES, PROJECT, Block, in_language

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = {"python", "console", "json", "text", "toml", "yaml"}
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
IMPORT = re.compile(r"\b(?:from|import) +(aioinformer(?:\.\w+)*)")
#: Modules that pages may name in imports: the addresses of public names, and the groups of types.
IMPORTABLE = re.compile(rf"aioinformer\.models\.\w+|{'|'.join(map(re.escape, ADDRESSES))}")
#: Public names, without their addresses.
PUBLIC = {name for address in ADDRESSES for name in modules_of(address)}
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

#: Pages that README.md need not link: the home of the site, and pages that "Evidence" and "Contributing" link.
LINKED_FROM_OTHERS = {
    "conformance.md",
    "contract.md",
    "controllers.md",
    "fault-matrix.md",
    "index.md",
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


def test_readme_links_to_files_and_names_every_page() -> None:
    """A code host resolves the links from the folder of README.md."""
    links = re.findall(r"\]\((?!https?:)([^)]*)\)", (PROJECT / "README.md").read_text())
    assert [link for link in links if not (PROJECT / link).exists()] == []
    pages = {f"docs/{page.name}" for page in DOCS.glob("*.md")}
    assert pages - set(links) - {f"docs/{name}" for name in LINKED_FROM_OTHERS} == set()


def test_pages_that_readme_names_are_links() -> None:
    text = (PROJECT / "README.md").read_text()
    assert re.findall(r"`[\w/-]+\.md`", text) == []


def test_changelog_has_no_relative_links() -> None:
    """It is a page of the site, too, which is in another folder."""
    text = (PROJECT / "CHANGELOG.md").read_text()
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []
    files = re.findall(r"`((?:docs/)?[\w-]+\.md)`", text)
    assert [file for file in files if not any((folder / file).exists() for folder in (PROJECT, DOCS))] == []


def test_pages_show_programs_as_they_are() -> None:
    shown = {block.program for block in ALL if block.program}
    assert len(shown) >= 6
    assert [path.name for path in programs.outdated()] == []
    assert [page.name for page in PAGES if "--8<--" in page.read_text()] == []  # only mkdocs resolves these


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_imports_are_from_addresses_of_public_names(path: Path) -> None:
    assert {module for module in IMPORT.findall(path.read_text()) if not IMPORTABLE.fullmatch(module)} == set()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in OF_CONTRIBUTORS], ids=lambda page: page.name
)
def test_user_pages_have_no_row_numbers(page: Path) -> None:
    assert ROW.findall(page.read_text()) == []


def test_navigation_has_every_page() -> None:
    navigation = set(re.findall(r"[\w/-]+\.md", (PROJECT / "mkdocs.yml").read_text()))
    assert navigation == {"changelog.md", *(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))}


# Statements about the package, its metadata and its tests: metrics, versions, security claims.

METRICS = (DOCS / "metrics.md").read_text()
COMPATIBILITY = (DOCS / "compatibility.md").read_text()
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
LOCKED = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (PROJECT / "requirements" / "dev.txt").read_text(), re.MULTILINE))


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


def test_page_lists_every_metric() -> None:
    exporter = (PROJECT / "aioinformer" / "prometheus.py").read_text()
    exported = set(re.findall(r"^ +((?:informer|reflector|workqueue)_\w+)\S* [a-z]+ ", exporter, re.MULTILINE))
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


def test_page_and_client_agree_which_requests_are_repeated() -> None:
    head = "| failure | reads and dry runs | writes |"
    of_page, of_client = (
        path.read_text().partition(head)[2].partition("\n\n")[0].splitlines()
        for path in (DOCS / "writing.md", PROJECT / "aioinformer" / "client" / "retries.py")
    )
    assert len(of_page) > 5
    assert of_page == of_client


# Names in the tables for users of client-go and of other frameworks.

#: What the variables of a page stand for.
VARIABLES: dict[str, dict[str, object]] = {
    "coming-from.md": {
        "client": Client,
        "controller": Controller,
        "elector": LeaderElector,
        "factory": SharedInformerFactory,
        "indexer": Indexer,
        "informer": SharedIndexInformer,
        "lister": Lister,
        "manager": Manager,
        "pods": ResourceClient,
        "queue": RateLimitingQueue,
        "recorder": EventRecorder,
        "registration": HandlerRegistration,
        "request": Request(None, None, None, state=None),  # type: ignore[arg-type] # some attributes are of instances
    },
}
OPTIONS = {
    *(
        name
        for made in (Manager, Controller, SharedInformerFactory, Client)
        for name in inspect.signature(made).parameters
    ),
    *inspect.signature(SharedIndexInformer.add_event_handler).parameters,
    *InformerOptions.__annotations__,
    *("after", "controller_only", "resources", "signals", "size", "to"),
}
#: Programs, operators, words of Python, and arguments that a page leaves to its reader.
WORDS = {"aioinformer", "async", "&", "~", "is_in_initial_list", "widgets"}


def code_of(page: str) -> list[str]:
    """Return the code in the last column of the tables of a page."""
    rows = [line.split(" | ") for line in (DOCS / page).read_text().splitlines() if line.startswith("| ")]
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row[-1])]


@pytest.mark.parametrize(("page", "code"), [(page, code) for page in VARIABLES for code in code_of(page)])
def test_names_of_the_page_exist(page: str, code: str) -> None:
    code = re.sub(r"^(?:async (?:with|def|for key in)|await|except) ", "", code)
    name, _, rest = re.split(r"[ (=]", code)[0].partition(".")
    if name in VARIABLES[page] and rest:
        assert hasattr(VARIABLES[page][name], rest.split(".")[0])
    elif name not in WORDS | VARIABLES[page].keys() | OPTIONS:
        assert name in PUBLIC


@pytest.mark.parametrize("page", VARIABLES)
def test_options_of_the_page_exist(page: str) -> None:
    calls = [re.sub(r'"[^"]*"', "", code) for code in code_of(page)]
    assert {name for code in calls for name in re.findall(r"(\w+)=", code)} <= OPTIONS


# The list of pages for language models.


def page(title: str, url: str, markdown: str) -> Any:
    return SimpleNamespace(is_page=True, is_section=False, title=title, url=url, markdown=markdown)


def test_lists_each_page_below_its_section(tmp_path: Path) -> None:
    guides = SimpleNamespace(
        is_page=False,
        is_section=True,
        title="Guides",
        children=[page("Handlers", "handlers.html", "# Handlers\n\nA [handler](a.md) is\nawaited. Then:\n")],
    )
    llms_txt.on_nav([page("Home", "index.html", "# Home\n\nCaches:\n\n- one"), guides], config=None, files=None)
    llms_txt.on_post_build(
        config=SimpleNamespace(site_name="name", site_description="what it is", site_dir=str(tmp_path))
    )
    assert (tmp_path / "llms.txt").read_text().splitlines() == [
        "# name",
        "",
        "> what it is",
        "",
        "- [Home](index.html): Caches.",
        "",
        "## Guides",
        "",
        "- [Handlers](handlers.html): A handler is awaited.",
    ]
