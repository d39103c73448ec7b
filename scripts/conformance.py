"""Generates docs/conformance.md: each numbered behaviour of client-go, and the tests that hold us to it.

What is true comes from the tests: `@pytest.mark.conformance("REF-07")` says that the test fails when that behaviour is
broken. docs/conformance.toml gives each behaviour its name, and a reason where ours differs or is missing. Without
arguments the page is written; with `--check` nothing is, and the exit status is 1 if the page is out of date or if
`problems()` finds any.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROJECT = Path(__file__).resolve().parent.parent
ROWS = PROJECT / "docs" / "conformance.toml"
PAGE = PROJECT / "docs" / "conformance.md"
SOURCE = "https://github.com/kubernetes/client-go"

#: What may be said of a behaviour, and how the page calls it.
REMARKS = {"differs": "Differs", "absent": "Not applicable", "later": "Later", "answered": ""}
WEAKNESSES = "Weaknesses"

Tests = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Row:
    """One behaviour.

    Attributes:
        id: its number, such as "REF-07".
        title: what it is, in a few words.
        remark: one of `REMARKS`, or "" if ours is the same.
        reason: of the remark.
    """

    id: str
    title: str
    remark: str = ""
    reason: str = ""


def read_rows(path: Path = ROWS) -> dict[str, list[Row]]:
    """The behaviours by section, in the order of the file.

    Raises:
        ValueError: a row is not as the head of the file says; the message names it.
    """
    sections = tomllib.loads(path.read_text())
    return {name: [_row(number, said) for number, said in rows.items()] for name, rows in sections.items()}


def _row(number: str, said: str | dict[str, str]) -> Row:
    if isinstance(said, str):
        return Row(number, said)
    remarks = {name: reason for name, reason in said.items() if name != "is"}
    if "is" not in said or len(remarks) != 1 or not REMARKS.keys() >= remarks.keys():
        raise ValueError(f"{number} must say `is` and one of {', '.join(REMARKS)}, not {said!r}")
    [(remark, reason)] = remarks.items()
    return Row(number, said["is"], remark, reason)


def read_tests(project: Path = PROJECT) -> Tests:
    """The tests that cite each behaviour, as `path::function`, by number."""
    cited: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((project / "tests").rglob("test_*.py")):
        for name, number in _citations(ast.parse(path.read_text())):
            cited[number].append(f"{path.relative_to(project).as_posix()}::{name}")
    return dict(cited)


def _citations(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.conformance":
                for argument in decorator.args:
                    yield function.name, ast.literal_eval(argument)


def problems(sections: Mapping[str, Sequence[Row]], tests: Tests) -> list[str]:
    """What is wrong, a line each; nothing if every behaviour has a test or a reason, and every mark a behaviour."""
    rows = {row.id: row for section in sections.values() for row in section}
    unknown = [
        f"{number} is cited by {test}, but {ROWS.name} has no such row"
        for number in sorted(tests.keys() - rows.keys())
        for test in tests[number]
    ]
    silent = [
        f"{row.id} has neither a test that cites it nor a reason in {ROWS.name}"
        for row in rows.values()
        if not row.remark and row.id not in tests
    ]
    there = [
        f"{row.id} is said to be missing ({row.remark}), but {tests[row.id][0]} tests it"
        for row in rows.values()
        if row.remark in ("later", "absent") and row.id in tests
    ]
    unproven = [
        f"{row.id} is said to be answered, but no test cites it"
        for row in rows.values()
        if row.remark == "answered" and row.id not in tests
    ]
    return unknown + silent + there + unproven


def render(sections: Mapping[str, Sequence[Row]], tests: Tests) -> str:
    """The page."""
    parts = [
        "<!-- Written by scripts/conformance.py; edit docs/conformance.toml, or the marks in the tests. -->",
        "# Conformance",
        f"*What [client-go]({SOURCE}) does, behaviour by behaviour, and what holds aioinformer to it.*",
        "The tests named in a row fail when the behaviour is broken. Where we deliberately differ, the reason is "
        "given, and the tests are of our way. The numbers are this project's own; `scripts/conformance.py` makes this "
        "page from the marks in the tests, and a test fails when it is out of date.",
        _summary(sections, tests),
    ]
    for name, rows in sections.items():
        heading = "Answered by" if name == WEAKNESSES else "How"
        parts += [f"## {name}"]
        if name == WEAKNESSES:
            parts += ["What client-go's users complain of, and its authors know."]
        lines = [f"| | behaviour | {heading.lower()} |", "|---|---|---|"]
        lines += [f"| {row.id} | {row.title} | {_how(row, tests.get(row.id, []))} |" for row in rows]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _summary(sections: Mapping[str, Sequence[Row]], tests: Tests) -> str:
    rows = [row for name, section in sections.items() if name != WEAKNESSES for row in section]
    tested = [row for row in rows if row.id in tests]
    counts = {
        "the same, with tests": sum(not row.remark for row in tested),
        "different on purpose, with tests": sum(row.remark == "differs" for row in tested),
        "different on purpose, without": sum(row.remark == "differs" and row.id not in tests for row in rows),
        "not applicable": sum(row.remark == "absent" for row in rows),
        "later": sum(row.remark == "later" for row in rows),
        "neither": sum(not row.remark and row.id not in tests for row in rows),
    }
    covered = len(rows) - counts["later"] - counts["neither"]
    weak = sections.get(WEAKNESSES, ())
    answered = sum(row.remark == "answered" for row in weak)
    return "\n".join(
        [
            f"Of {len(rows)} behaviours, {covered} ({covered / len(rows):.1%}) are covered:",
            "",
            *(f"- {kind}: {count}" for kind, count in counts.items() if count),
            "",
            f"Of {len(weak)} weaknesses, {answered} are answered, each with a test.",
        ]
    )


def _how(row: Row, tests: Sequence[str]) -> str:
    label = REMARKS[row.remark] if row.remark else ""
    reason = f"{label}: {row.reason}" if label else row.reason
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        path, name = test.split("::")
        by_file[path].append(name)
    links = [f"{path}: " + ", ".join(f"`{name}`" for name in names) for path, names in by_file.items()]
    return "<br>".join([*([reason] if reason else []), *links])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say what is wrong")
    check = parser.parse_args().check
    sections, tests = read_rows(), read_tests()
    page, found = render(sections, tests), problems(sections, tests)
    if not check:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        found.append(f"out of date: {PAGE.relative_to(PROJECT)}; run scripts/conformance.py")
    print("\n".join(found) or "every behaviour has a test or a reason")
    sys.exit(1 if check and found else 0)


if __name__ == "__main__":
    main()
