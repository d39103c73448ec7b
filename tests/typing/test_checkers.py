"""mypy and pyright agree: they accept every right use of the types, and refuse every wrong one."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
RIGHT, WRONG = "tests/typing/right_uses.py", "tests/typing/wrong_uses.py"

pytestmark = pytest.mark.timeout(300)


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: there are errors in the checked files
    return done.stdout


def errors_of_mypy(path: str) -> dict[int, str]:
    """Return the errors in a module by line."""
    pytest.importorskip("mypy")
    found = [
        json.loads(line) for line in run("mypy", "--strict", "--output=json", path).splitlines() if line.startswith("{")
    ]
    return {each["line"]: each["message"] for each in found if each["severity"] == "error" and each["file"] == path}


def errors_of_pyright(path: str) -> dict[int, str]:
    """Return the errors in a module by line."""
    pytest.importorskip("pyright")
    report = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, path))
    found = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    return {each["range"]["start"]["line"] + 1: each["message"] for each in found}


CHECKERS = {"mypy": errors_of_mypy, "pyright": errors_of_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_uses_are_accepted(checker: str) -> None:
    assert CHECKERS[checker](RIGHT) == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_uses_are_refused(checker: str) -> None:
    errors = CHECKERS[checker](WRONG)
    lines = (PROJECT / WRONG).read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert {number: lines[number - 1] for number in wrong - errors.keys()} == {}, "not refused"
    assert {number: errors[number] for number in errors.keys() - wrong} == {}, "refused, but right"


def test_there_are_enough_uses() -> None:
    functions = [node for node in ast.walk(ast.parse((PROJECT / RIGHT).read_text())) if isinstance(node, ast.Call)]
    uses = [node for node in functions if ast.unparse(node.func) in ("assert_type", "informer.add_event_handler")]
    assert len(uses) >= 150
    assert (PROJECT / WRONG).read_text().count("# wrong\n") >= 60
