"""Generates docs/conformance.md: each numbered behaviour of client-go, and the tests that hold us to it.

What is true comes from the tests: `@pytest.mark.conformance("REF-07")` says that the test fails when that behaviour is
broken. docs/conformance.toml gives each behaviour its name, and a reason where ours differs or is missing. A behaviour
is "the same" only where a script of tests/oracle shows it, which was played to client-go itself; elsewhere it is
"tested here". Without arguments the page is written; with `--check` nothing is, and the exit status is 1 if the page is
out of date or if `problems()` finds any.
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
sys.path.insert(0, str(PROJECT))

from tests.oracle import records  # noqa: E402
from tests.oracle.compare import expect, load_rules  # noqa: E402
from tests.oracle.script import load as load_scripts  # noqa: E402

ROWS = PROJECT / "docs" / "conformance.toml"
PAGE = PROJECT / "docs" / "conformance.md"
SOURCE = "https://github.com/kubernetes/client-go"

#: What may be said of a behaviour, and how the page calls it.
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
        group: its file.
        covers: the behaviours that it shows.
        used: the declared differences between client-go and aioinformer.
        own: whether aioinformer does something that only this script declares.
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


def read_scripts() -> list[Shown]:
    """Return the scripted servers, and what came of playing them to client-go."""
    rules, theirs = load_rules(), records.read()
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


def _citations(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.conformance":
                for argument in decorator.args:
                    yield function.name, ast.literal_eval(argument)


def problems(sections: Mapping[str, Sequence[Row]], tests: Tests, scripts: Sequence[Shown] = ()) -> list[str]:
    """What is wrong, a line each; nothing if every behaviour has a test or a reason, and every mark a behaviour."""
    rows = {row.id: row for section in sections.values() for row in section}
    claims = [(script, number) for script in scripts for number in script.covers]
    unfounded = [
        f"{number} is covered by the script {script.name}, but {ROWS.name} has no such row"
        for script, number in claims
        if number not in rows
    ] + [
        f"{number} is said to be the same, but the script {script.name} declares a difference"
        for script, number in claims
        if number in rows and not rows[number].remark and script.own
    ]
    unknown = [
        f"{number} is cited by {test}, but {ROWS.name} has no such row"
        for number in sorted(tests.keys() - rows.keys())
        for test in tests[number]
    ]
    silent = [
        f"{row.id} has neither a test that cites it nor a reason in {ROWS.name}"
        for row in rows.values()
        if not row.remark and row.id not in tests and not any(row.id == number for _, number in claims)
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
    return unknown + unfounded + silent + there + unproven


def render(sections: Mapping[str, Sequence[Row]], tests: Tests, scripts: Sequence[Shown] = ()) -> str:
    """The page."""
    by_row: Scripts = {}
    for script in scripts:
        for number in script.covers:
            by_row.setdefault(number, []).append(script)
    parts = [
        "<!-- Written by scripts/conformance.py; edit docs/conformance.toml, or the marks in the tests. -->",
        "# Conformance",
        f"*What [client-go]({SOURCE}) does, behaviour by behaviour, and what holds aioinformer to it.*",
        "The tests named in a row fail when the behaviour is broken. Where we deliberately differ, the reason is "
        "given, and the tests are of our way. The numbers are this project's own; `scripts/conformance.py` makes this "
        "page from the marks in the tests, and a test fails when it is out of date.",
        "A row says *the same* where a script shows the behaviour: it was played to client-go's own informer, which "
        "did what aioinformer does. A row that says *tested here* has tests of aioinformer alone.",
        _summary(sections, tests, by_row),
        *_scripted(scripts),
    ]
    for name, rows in sections.items():
        heading = "Answered by" if name == WEAKNESSES else "How"
        parts += [f"## {name}"]
        if name == WEAKNESSES:
            parts += ["What client-go's users complain of, and its authors know."]
        lines = [f"| | behaviour | {heading.lower()} |", "|---|---|---|"]
        lines += [
            f"| {row.id} | {row.title} | {_how(row, tests.get(row.id, []), by_row.get(row.id, []))} |" for row in rows
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _scripted(scripts: Sequence[Shown]) -> list[str]:
    """The tables of the scripted servers and of the declared differences."""
    if not scripts:
        return []
    lines = ["| servers | scripts | equal | but for general rules | other differences |", "|---|---|---|---|---|"]
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
        f"{len(scripts)} servers are scripts in `tests/oracle/scripts`. One player serves each of them to client-go's "
        "own informer, whose records are in `tests/oracle/recorded`, and, in every run of the tests, to aioinformer. "
        "Compared are the kind and start version of every request; whether it comes at once, after a delay of the "
        "backoff, or later; the notifications of each key; and the store at the end. They are equal, or a rule "
        "declares the difference. General rules turn a line of client-go's record into the one that aioinformer must "
        "have instead; where the difference is another one, the script says exactly what aioinformer does.",
        "\n".join(lines),
        "\n".join(rules),
    ]


def _summary(sections: Mapping[str, Sequence[Row]], tests: Tests, scripts: Scripts) -> str:
    rows = [row for name, section in sections.items() if name != WEAKNESSES for row in section]
    tested = [row for row in rows if row.id in tests or row.id in scripts]
    same = [row for row in tested if _is_same(row, scripts.get(row.id, ()))]
    counts = {
        "the same, as scripts show that were played to both": len(same),
        "tested here": sum(not row.remark for row in tested) - len(same),
        "different on purpose, with tests": sum(row.remark == "differs" for row in tested),
        "different on purpose, without": sum(row.remark == "differs" and row not in tested for row in rows),
        "not applicable": sum(row.remark == "absent" for row in rows),
        "later": sum(row.remark == "later" for row in rows),
        "neither": sum(not row.remark and row not in tested for row in rows),
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


def _is_same(row: Row, scripts: Sequence[Shown]) -> bool:
    return not row.remark and row.id.partition("-")[0] in SCRIPTED and bool(scripts)


def _how(row: Row, tests: Sequence[str], scripts: Sequence[Shown]) -> str:
    label = REMARKS[row.remark] if row.remark else "The same" if _is_same(row, scripts) else "Tested here"
    reason = f"{label}: {row.reason}" if label and row.reason else label or row.reason
    names = [f"scripts: {', '.join(f'`{each.name}`' for each in scripts)}"] if scripts else []
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        path, name = test.split("::")
        by_file[path].append(name)
    links = [f"{path}: " + ", ".join(f"`{name}`" for name in names) for path, names in by_file.items()]
    return "<br>".join([*([reason] if reason else []), *names, *links])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only say what is wrong")
    check = parser.parse_args().check
    sections, tests, scripts = read_rows(), read_tests(), read_scripts()
    page, found = render(sections, tests, scripts), problems(sections, tests, scripts)
    if not check:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        found.append(f"out of date: {PAGE.relative_to(PROJECT)}; run scripts/conformance.py")
    print("\n".join(found) or "every behaviour has a test or a reason")
    sys.exit(1 if check and found else 0)


if __name__ == "__main__":
    main()
