"""Generate docs/contract.md: the responses of the server for tests, compared with those of a real kube-apiserver.

Each test in tests/real/contract is a row: one conversation, recorded with the real server and repeated with the server
for tests. differences.toml declares where the two differ, with the reason. Without options, the script
writes the page. With `--check` it writes nothing, and exits with status 1 if the page is out of date.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.real.contract.recordings import read  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.contract.recordings import Exchanges

SUITE = PROJECT / "tests" / "real" / "contract"
PAGE = PROJECT / "docs" / "contract.md"

#: Tests without recordings: of the answers in checked.toml, and of the program that compares two servers.
_NO_ROWS = ("test_checked.py", "test_compare.py")

HEAD = """---
search: { exclude: true }
---

# Evidence: the API contract

Each row is a conversation over plain HTTP, recorded with a real kube-apiserver: status, headers and body of each
response. `aioinformer.testing.ApiServer` must answer the same, field by field, after placeholders have replaced uids,
versions, times and generated names. Of an error, the status, the reason and the wrong fields are compared, not the
text. With a real cluster, the suite also checks that the real server still answers as recorded. If a response of the
real server depends on the order in which its components ran, the suite repeats the row once. The last column contains
the declared differences.

`scripts/contract.py` generates this page.
"""

CHECKED = """## What is checked, and what is not { #what-is-checked }

Each mistake is sent to both servers, and each part of the API is requested from both. A number is the status of the
response. `tests/real/contract/checked.toml` has the requests.

| Mistake, or part of the API | Same here | Here | kube-apiserver |
|---|---|---|---|"""


@dataclass(frozen=True)
class Row:
    """One conversation.

    Attributes:
        claim: the name of the test as a sentence.
        exchanges: methods and statuses, for each recorded variant of the row.
        differences: reasons of declared differences, by place.
    """

    claim: str
    exchanges: list[str]
    differences: dict[str, str]


def read_checks(suite: Path = SUITE) -> list[tuple[str, str, str]]:
    """Return mistakes and parts of the API, and the answers of the server for tests and of a real one."""
    rows = tomllib.loads((suite / "checked.toml").read_text())["row"]
    return [(row.get("mistake") or row["part"], _answer(row["ours"]), _answer(row["real"])) for row in rows]


def read_rows(suite: Path = SUITE) -> dict[str, list[Row]]:
    """Return the rows by section; a section is the first line of a test module's docstring.

    Raises:
        ValueError: a test is not recorded, or no test belongs to a recording or to a declared difference.
    """
    explained = tomllib.loads((suite / "differences.toml").read_text())
    recorded = read(suite / "recorded")
    sections: dict[str, list[Row]] = {}
    for path in sorted(suite.glob("test_*.py")):
        if path.name in _NO_ROWS:
            continue
        tree = ast.parse(path.read_text())
        title = (ast.get_docstring(tree) or path.stem).partition("\n")[0].rstrip(".")
        for name in _tests(tree):
            row = f"{path.stem}/{name}"
            own = [each for each in recorded if each == row or each.startswith(f"{row}-")]
            if not own:
                raise ValueError(f"{row} is not recorded")
            variants = [_summary(recorded.pop(each)) for each in sorted(own)]
            reasons = {place: why for each in own for place, why in explained.pop(each, {}).items()}
            sections.setdefault(title, []).append(Row(_sentence(name), variants, reasons))
    if left := sorted(recorded.keys() | explained.keys() - {"*"}):
        raise ValueError(f"no test has the name of {', '.join(left)}")
    return sections


def render(sections: dict[str, list[Row]], checks: list[tuple[str, str, str]]) -> str:
    """Return the text of the page."""
    rows = [row for section in sections.values() for row in section]
    conversations = sum(len(row.exchanges) for row in rows)
    differing = sum(bool(row.differences) for row in rows)
    parts = [
        HEAD,
        f"- rows: {len(rows)}, with {conversations} conversations",
        f"- rows with a difference: {differing}",
        "",
        CHECKED,
        *(f"| {what} | {_answer(ours == real)} | {ours} | {real} |" for what, ours, real in checks),
        "",
    ]
    for title, section in sections.items():
        parts += [f"## {title}", "", "| Row | Requests and statuses | Declared difference |", "|---|---|---|"]
        parts += [f"| {row.claim} | {_shown(row.exchanges)} | {_reasons(row.differences)} |" for row in section]
        parts.append("")
    return "\n".join(parts)


def _answer(value: bool | int) -> str:
    return str(value) if type(value) is int else "yes" if value else "no"


def _tests(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def _summary(exchanges: Exchanges) -> str:
    return ", ".join(f"{each['request'].partition(' ')[0]} {each['status']}" for each in exchanges)


def _shown(variants: list[str]) -> str:
    distinct = list(dict.fromkeys(variants))
    shown = "; ".join(distinct[:3]) + (" …" if len(distinct) > 3 else "")
    if len(variants) == 1:
        return shown
    return f"{len(variants)} times" + (f": {shown}" if shown else "")


def _sentence(name: str) -> str:
    words = name.removeprefix("test_").replace("_", " ")
    return words[:1].upper() + words[1:]


def _reasons(differences: dict[str, str]) -> str:
    return "; ".join(dict.fromkeys(differences.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with status 1 if the page is out of date"
    )
    arguments = parser.parse_args()
    page = render(read_rows(), read_checks())
    if not arguments.check:
        PAGE.write_text(page)
        return 0
    return PAGE.read_text() != page


if __name__ == "__main__":
    sys.exit(main())
