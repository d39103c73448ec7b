"""Extract the code blocks of the documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

PROJECT = Path(__file__).parents[3]
DOCS = PROJECT / "docs"
PAGES = (PROJECT / "README.md", PROJECT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")))

_FENCE = re.compile(
    r"(?:^<!-- program: (?P<program>\S+) -->\n)?"
    r"^(?P<indent> *)```(?P<language>[\w.+-]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    Attributes:
        page: relative to the project.
        line: of the page, where the code begins.
        language: after the fence; "" if there is none.
        code: without the indentation of the block.
        program: the file that the block shows, according to the comment before it; "" if there is none.
    """

    page: str
    line: int
    language: str
    code: str
    program: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the code blocks of a page, in order."""
    text = page.read_text()
    name = str(page.relative_to(PROJECT))
    return [
        Block(
            *(name, text.count("\n", 0, match.start("code")) + 1, match["language"], dedent(match["code"])),
            match["program"] or "",
        )
        for match in _FENCE.finditer(text)
    ]


ALL = [block for page in PAGES for block in blocks_of(page)]


def in_language(language: str) -> list[Block]:
    """Return all blocks in one language, without those that show a file."""
    return [block for block in ALL if block.language == language and not block.program]
