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
RIGHT = [f"{FOLDER}/{name}.py" for name in ("right_uses", "controller_right_uses", "web_right_uses")]
WRONG = [f"{FOLDER}/{name}.py" for name in ("wrong_uses", "controller_wrong_uses", "web_wrong_uses")]

#: Line, severity and message of each report, by name of the module.
Reports = dict[str, list[tuple[int, str, str]]]

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

pytestmark = pytest.mark.timeout(600)


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


@pytest.fixture(scope="module", params=[reports_of_mypy, reports_of_pyright], ids=["mypy", "pyright"])
def reports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The reports of one checker on all modules, by name of the module."""
    folder = tmp_path_factory.mktemp("typing")
    readme = (PROJECT / "README.md").read_text()
    programs = re.findall(r"```python\n(.+?)```", readme, re.DOTALL)
    [program] = [each for each in programs if "@manager.controller" in each]
    (folder / "readme.py").write_text(f"# pyright: strict\n{program}")
    (folder / "unannotated.py").write_text(UNANNOTATED)
    others = [str(folder / name) for name in ("readme.py", "unannotated.py")]
    found: Reports = {Path(path).name: [] for path in (*RIGHT, *WRONG, *others)}
    for path, line, severity, message in request.param(*RIGHT, *WRONG, *others):
        found.setdefault(Path(path).name, []).append((line, severity, message))
    return found


def errors(reports: Reports, path: str) -> dict[int, str]:
    """Return the errors in a module by line."""
    return {line: message for line, severity, message in reports[Path(path).name] if severity == "error"}


@pytest.mark.conformance("CTL-08", "SI-24", "FAC-08")
@pytest.mark.parametrize("path", [*RIGHT, "readme.py"])
def test_right_uses_are_accepted(reports: Reports, path: str) -> None:
    assert errors(reports, path) == {}
    assert [
        message for _, _, message in reports[Path(path).name] if "could not be resolved from source" in message
    ] == []


@pytest.mark.parametrize("path", WRONG)
def test_wrong_uses_are_refused(reports: Reports, path: str) -> None:
    found = errors(reports, path)
    lines = dict(enumerate((PROJECT / path).read_text().splitlines(), 1))
    wrong = {number for number, line in lines.items() if line.endswith("# wrong")}
    assert {number: lines[number] for number in wrong - found.keys()} == {}, "not refused"
    assert {number: found[number] for number in found.keys() - wrong} == {}, "refused, but right"


def test_unannotated_request_is_accepted(reports: Reports) -> None:
    # `mypy --strict` refuses each function without annotations, whatever it is used for.
    refused = {message.split("  [")[0] for message in errors(reports, "unannotated.py").values()}
    assert refused <= {"Function is missing a type annotation"}
    revealed = [re.sub(r"aioinformer(\.\w+)+\.", "", message) for _, _, message in reports["unannotated.py"]]
    assert any("Controller[Pod]" in each for each in revealed)
    assert any("Request[Pod, Any]" in each for each in revealed), "editors complete the parameter of a lambda"
