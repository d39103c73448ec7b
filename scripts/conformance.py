"""Generate docs/conformance.md: each numbered behaviour of client-go, and the tests that cover it.

The mark `@pytest.mark.conformance("REF-07")` states that a test fails if that behaviour is broken.
docs/conformance.toml describes each behaviour, and gives a reason if aioinformer differs or lacks it. A behaviour is
"the same" only if a script of tests/system/oracle, which was played to client-go as well, shows it. All others are
"tested here". Without options, the script writes the page. With `--check` it writes nothing, and exits with status 1 if
the page is out of date or `find_problems` finds any.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from tests.system.oracle.compare import expect, load_rules, read  # noqa: E402
from tests.system.oracle.script import load as load_scripts  # noqa: E402

ROWS = PROJECT / "docs" / "conformance.toml"
PAGE = PROJECT / "docs" / "conformance.md"
SOURCE = "https://github.com/kubernetes/client-go"

#: The remarks of a row, and their labels on the page.
REMARKS = {"differs": "Differs", "absent": "Not applicable", "later": "Later", "answered": ""}
WEAKNESSES = "Weaknesses"

#: Scripts can show behaviours of these groups, since a server sees them.
SCRIPTED = ("REF", "LW", "PG", "TW", "SI", "CTL")

Tests = dict[str, list[str]]
Scripts = dict[str, list["Shown"]]


@dataclass(frozen=True, slots=True)
class Shown:
    """One scripted server.

    Attributes:
        name: of the script.
        group: the name of its file.
        covers: the behaviours that it shows.
        used: the declared differences between client-go and aioinformer.
        own: whether the script declares what aioinformer does, besides the general rules.
    """

    name: str
    group: str
    covers: tuple[str, ...] = ()
    used: frozenset[str] = frozenset()
    own: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One behaviour.

    Attributes:
        id: its number, such as "REF-07".
        title: a short description.
        remark: one of `REMARKS`, or "" if aioinformer does the same.
        reason: of the remark.
    """

    id: str
    title: str
    remark: str = ""
    reason: str = ""


def read_rows(path: Path = ROWS) -> dict[str, list[Row]]:
    """Return the behaviours by section, in the order of the file.

    Raises:
        ValueError: a row does not have the form that the head of the file describes. The message names the row.
    """
    sections = tomllib.loads(path.read_text())
    return {name: [_row(number, entry) for number, entry in rows.items()] for name, rows in sections.items()}


def _row(number: str, entry: str | dict[str, str]) -> Row:
    if isinstance(entry, str):
        return Row(number, entry)
    remarks = {name: reason for name, reason in entry.items() if name != "is"}
    if "is" not in entry or len(remarks) != 1 or not REMARKS.keys() >= remarks.keys():
        raise ValueError(f"{number} must have `is` and one of {', '.join(REMARKS)}, not {entry!r}")
    [(remark, reason)] = remarks.items()
    return Row(number, entry["is"], remark, reason)


def read_tests(project: Path = PROJECT, mark: str = "conformance") -> Tests:
    """Return the tests that cite each behaviour in a mark, as `path::function`, by number."""
    cited: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((project / "tests").rglob("test_*.py")):
        for name, number in _citations(ast.parse(path.read_text()), f"pytest.mark.{mark}"):
            cited[number].append(f"{path.relative_to(project).as_posix()}::{name}")
    return dict(cited)


def read_scripts() -> list[Shown]:
    """Return the scripted servers, with the differences that their records show."""
    rules, theirs = load_rules(), read()
    return [
        Shown(
            script.name,
            script.group,
            script.covers,
            frozenset(expect(script, theirs[script.name], rules).used),
            bool(script.ours),
        )
        for script in load_scripts()
    ]


def _citations(tree: ast.Module, mark: str) -> Iterator[tuple[str, str]]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == mark:
                for argument in decorator.args:
                    yield function.name, ast.literal_eval(argument)


def find_problems(sections: Mapping[str, Sequence[Row]], tests: Tests, scripts: Sequence[Shown] = ()) -> list[str]:
    """Return one line for each problem: rows with neither test nor reason, marks without a row, contradictions."""
    rows = {row.id: row for section in sections.values() for row in section}
    claims = [(script, number) for script in scripts for number in script.covers]
    covered = tests.keys() | {number for _, number in claims}
    return [
        *(
            f"{test} cites {number}, but {ROWS.name} has no such row"
            for number in sorted(tests.keys() - rows.keys())
            for test in tests[number]
        ),
        *(
            f"the script {script.name} covers {number}, but {ROWS.name} has no such row"
            for script, number in claims
            if number not in rows
        ),
        *(
            f"{number} has no remark in {ROWS.name}, but the script {script.name} declares a difference"
            for script, number in claims
            if number in rows and not rows[number].remark and script.own
        ),
        *(
            f"{row.id} has neither a test that cites it nor a reason in {ROWS.name}"
            for row in rows.values()
            if not row.remark and row.id not in covered
        ),
        *(
            f"{row.id} is missing according to {ROWS.name} ({row.remark}), but {tests[row.id][0]} tests it"
            for row in rows.values()
            if row.remark in ("later", "absent") and row.id in tests
        ),
        *(
            f"{row.id} is answered according to {ROWS.name}, but no test cites it"
            for row in rows.values()
            if row.remark == "answered" and row.id not in tests
        ),
    ]


def render(sections: Mapping[str, Sequence[Row]], tests: Tests, scripts: Sequence[Shown] = ()) -> str:
    """Return the text of the page."""
    by_row: Scripts = {}
    for script in scripts:
        for number in script.covers:
            by_row.setdefault(number, []).append(script)
    parts = [
        "---\nsearch: { exclude: true }\n---",
        "<!-- Generated by scripts/conformance.py from docs/conformance.toml and the marks in the tests. -->",
        "# Evidence: conformance with client-go",
        f"*Each behaviour of [client-go]({SOURCE}), and how aioinformer compares.*",
        "The tests named in a row fail if the behaviour is broken. If aioinformer deliberately differs, the row gives "
        "the reason, and the tests cover aioinformer's behaviour. The numbers belong to this project. "
        "`scripts/conformance.py` generates this page from the marks in the tests; a test fails if it is out of date.",
        "A row says *the same* if a scripted server shows the behaviour: client-go's informer and aioinformer both "
        "ran against it and did the same. A row says *tested here* if only aioinformer has been tested.",
        _summary(sections, tests, by_row),
        *_scripted(scripts),
    ]
    for name, rows in sections.items():
        weak = name == WEAKNESSES
        parts += [f"## {name}"]
        if weak:
            parts += ["Known weaknesses of client-go's informers, and what aioinformer does about them."]
        lines = [f"| | {'weakness' if weak else 'behaviour'} | aioinformer |", "|---|---|---|"]
        lines += [
            f"| {row.id} | {row.title} | {_evidence(row, tests.get(row.id, []), by_row.get(row.id, []))} |"
            for row in rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _scripted(scripts: Sequence[Shown]) -> list[str]:
    """Return the tables of scripted servers and of declared differences."""
    if not scripts:
        return []
    lines = ["| group | scripts | equal | equal after general rules | other differences |", "|---|---|---|---|---|"]
    groups = list(dict.fromkeys(script.group for script in scripts))
    for name, chosen in [(group, [each for each in scripts if each.group == group]) for group in groups] + [
        ("all", list(scripts))
    ]:
        equal = sum(not each.used for each in chosen)
        own = sum(each.own for each in chosen)
        lines.append(f"| {name} | {len(chosen)} | {equal} | {len(chosen) - equal - own} | {own} |")
    rules = ["| difference | client-go | aioinformer | scripts |", "|---|---|---|---|"]
    rules += [
        f"| {rule.name.replace('-', ' ')} | {rule.differs} | {rule.reason} | {sum(name in s.used for s in scripts)} |"
        for name, rule in load_rules().items()
    ]
    return [
        "## Scripted servers",
        f"`tests/system/oracle/scripts` describes {len(scripts)} servers as scripts. A player serves each script to "
        "client-go's informer, whose records are in `tests/system/oracle/recorded.jsonl`, and, in each test run, to "
        "aioinformer. The tests compare the type and start version of each request; whether it is immediate, after a "
        "backoff delay, or later; the notifications of each key; and the final store. All must be equal, or a rule "
        "declares the difference. A general rule rewrites a line of client-go's record into the line that "
        "aioinformer's record must have. For any other difference, the script states exactly what aioinformer does.",
        "\n".join(lines),
        "\n".join(rules),
    ]


def _summary(sections: Mapping[str, Sequence[Row]], tests: Tests, scripts: Scripts) -> str:
    rows = [row for name, section in sections.items() if name != WEAKNESSES for row in section]
    tested = [row for row in rows if row.id in tests or row.id in scripts]
    same = [row for row in tested if _is_same(row, scripts.get(row.id, ()))]
    counts = {
        "the same, shown by scripts that both ran against": len(same),
        "tested here": sum(not row.remark for row in tested) - len(same),
        "deliberately different, with tests": sum(row.remark == "differs" for row in tested),
        "deliberately different, without tests": sum(row.remark == "differs" and row not in tested for row in rows),
        "not applicable": sum(row.remark == "absent" for row in rows),
        "later": sum(row.remark == "later" for row in rows),
        "not covered": sum(not row.remark and row not in tested for row in rows),
    }
    covered = len(rows) - counts["later"] - counts["not covered"]
    weak = sections.get(WEAKNESSES, ())
    answered = sum(row.remark == "answered" for row in weak)
    return "\n".join(
        [
            f"Of {len(rows)} behaviours, {covered} ({covered / len(rows):.1%}) are covered:",
            "",
            *(f"- {kind}: {count}" for kind, count in counts.items() if count),
            "",
            f"Of {len(weak)} weaknesses, aioinformer answers {answered}, each with a test.",
        ]
    )


def _is_same(row: Row, scripts: Sequence[Shown]) -> bool:
    return not row.remark and row.id.partition("-")[0] in SCRIPTED and bool(scripts)


def _evidence(row: Row, tests: Sequence[str], scripts: Sequence[Shown]) -> str:
    label = REMARKS[row.remark] if row.remark else "The same" if _is_same(row, scripts) else "Tested here"
    reason = f"{label}: {row.reason}" if label and row.reason else label or row.reason
    names = [f"scripts: {', '.join(f'`{each.name}`' for each in scripts)}"] if scripts else []
    return "<br>".join([*([reason] if reason else []), *names, *by_file(tests)])


def by_file(tests: Sequence[str]) -> list[str]:
    """Return a line for each file of tests, such as "tests/test_one.py: `test_this`, `test_that`"."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        path, name = test.split("::")
        files[path].append(f"`{name}`")
    return [f"{path}: {', '.join(names)}" for path, names in files.items()]


def main() -> None:
    check = read_options(__doc__)
    sections, tests, scripts = read_rows(), read_tests(), read_scripts()
    conclude(PAGE, render(sections, tests, scripts), find_problems(sections, tests, scripts), check=check)


def read_options(description: str | None) -> bool:
    """Return whether the command line of a script that generates a page has `--check`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; print problems, and exit with status 1 if there are any"
    )
    return bool(parser.parse_args().check)


def conclude(path: Path, page: str, found: list[str], *, check: bool) -> NoReturn:
    """Write a page or check that it is up to date; print the problems, and exit."""
    if not check:
        path.write_text(page)
    elif not path.exists() or path.read_text() != page:
        found.append(f"out of date: {path.relative_to(PROJECT)}; run scripts/{Path(sys.argv[0]).name}")
    print("\n".join(found) or f"{path.relative_to(PROJECT)} is up to date")
    sys.exit(1 if check and found else 0)


if __name__ == "__main__":
    main()
