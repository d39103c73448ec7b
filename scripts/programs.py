"""Write the programs of examples/ into the pages that show them, so that the pages are complete where they are read as
files.

A comment before a code block names the file that the block shows: `<!-- program: examples/widgets.py -->`. Of a page
(`README.md`), it shows the first Python block. Without options, the script writes the blocks. With `--check` it writes
nothing, and exits with status 1 if a block is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(^<!-- program: (?P<path>\S+) -->\n```\w+\n).*?(^```$)", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def with_programs(page: str) -> str:
    """Return a page with the current programs.

    Raises:
        OSError: a page names a file that does not exist.
        ValueError: a page names a page without a Python block.
    """
    return _BLOCK.sub(lambda block: f"{block[1]}{_program(block['path'])}{block[3]}", page)


def _program(path: str) -> str:
    text = (PROJECT / path).read_text()
    if not path.endswith(".md"):
        return text
    if (block := _PYTHON.search(text)) is None:
        raise ValueError(f"{path} has no Python block")
    return block[1]


def outdated() -> dict[Path, str]:
    """Return the pages whose programs are out of date, with what they should be."""
    pages = {path: path.read_text() for path in sorted((PROJECT / "docs").rglob("*.md"))}
    return {path: new for path, old in pages.items() if (new := with_programs(old)) != old}


def main() -> int:
    check = "--check" in sys.argv[1:]
    found = outdated()
    for path, text in found.items():
        if check:
            print(f"out of date: {path.relative_to(PROJECT)}; run scripts/programs.py")
        else:
            path.write_text(text)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
