"""mypy and pyright agree: they accept every right use of the types, and refuse every wrong one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
FOLDER = "tests/project/typing"
RIGHT = [f"{FOLDER}/{name}.py" for name in ("right_uses", "controller_right_uses")]
WRONG = [f"{FOLDER}/{name}.py" for name in ("wrong_uses", "controller_wrong_uses")]

#: An error by file and line, and the places that a checker reports.
Errors = dict[tuple[str, int], str]

UNANNOTATED = """
from aioinformer.controller import Controller, Manager, Request
from aioinformer.models import core_v1

manager = Manager()

@manager.controller(core_v1.PODS)
async def pods(request):
    print(request.name)

async def nothing(request: Request[core_v1.Pod]) -> None:
    print(request.name)

declared = Controller("pods", core_v1.PODS, lambda request: nothing(reveal_type(request)))
reveal_type(pods)
"""

pytestmark = pytest.mark.timeout(300)


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: there are errors in the checked files
    return done.stdout


def reports_of_mypy(*paths: str) -> list[tuple[str, int, str, str]]:
    """Return path, line, severity and message of each report."""
    pytest.importorskip("mypy")
    output = run("mypy", "--strict", "--output=json", *paths).splitlines()
    found = [json.loads(line) for line in output if line.startswith("{")]
    return [(each["file"], each["line"], each["severity"], each["message"]) for each in found]


def reports_of_pyright(*paths: str) -> list[tuple[str, int, str, str]]:
    """Return path, line, severity and message of each report."""
    pytest.importorskip("pyright")
    report = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, *paths))
    return [
        (
            str(Path(each["file"]).relative_to(PROJECT)) if each["file"].startswith(str(PROJECT)) else each["file"],
            each["range"]["start"]["line"] + 1,
            each["severity"],
            each["message"],
        )
        for each in report["generalDiagnostics"]
    ]


CHECKERS = {"mypy": reports_of_mypy, "pyright": reports_of_pyright}


def errors(checker: str, *paths: str) -> Errors:
    """Return the errors in modules by place."""
    found = CHECKERS[checker](*paths)
    return {(path, line): message for path, line, severity, message in found if severity == "error" and path in paths}


@pytest.mark.conformance("CTL-08", "SI-24", "FAC-08")
@pytest.mark.parametrize("checker", CHECKERS)
def test_right_uses_are_accepted(checker: str) -> None:
    found = CHECKERS[checker](*RIGHT)
    assert [each for each in found if each[2] == "error" and each[0] in RIGHT] == []
    assert [each for each in found if "could not be resolved from source" in each[3]] == []


@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_uses_are_refused(checker: str) -> None:
    found = errors(checker, *WRONG)
    lines = {
        (path, number): line
        for path in WRONG
        for number, line in enumerate((PROJECT / path).read_text().splitlines(), 1)
    }
    wrong = {place for place, line in lines.items() if line.endswith("# wrong")}
    assert {place: lines[place] for place in wrong - found.keys()} == {}, "not refused"
    assert {place: found[place] for place in found.keys() - wrong} == {}, "refused, but right"


@pytest.mark.parametrize("checker", CHECKERS)
def test_controller_of_the_readme_is_accepted(checker: str, tmp_path: Path) -> None:
    readme = (PROJECT / "README.md").read_text()
    [program] = [
        each for each in re.findall(r"```python\n(.+?)```", readme, re.DOTALL) if "@manager.controller" in each
    ]
    path = tmp_path / "readme.py"
    path.write_text(f"# pyright: strict\n{program}")
    assert errors(checker, str(path)) == {}


@pytest.mark.parametrize(("checker", "refused"), [("mypy", ["Function is missing a type annotation"]), ("pyright", [])])
def test_unannotated_request_is_accepted(checker: str, refused: list[str], tmp_path: Path) -> None:
    path = tmp_path / "unannotated.py"
    path.write_text(UNANNOTATED)
    # `mypy --strict` refuses each function without annotations, whatever it is used for.
    messages = [message for _, _, severity, message in CHECKERS[checker](str(path)) if severity == "error"]
    assert [each.split("  [")[0] for each in messages] == refused
    revealed = [re.sub(r"aioinformer(\.\w+)+\.", "", each[3]) for each in CHECKERS[checker](str(path))]
    assert any("Controller[Pod]" in each for each in revealed)
    assert any("Request[Pod]" in each for each in revealed), "editors complete the parameter of a lambda"
