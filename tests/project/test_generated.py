"""Generated files and pages agree with the generator, the tests and the recordings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import behaviours
import conformance
import contract
import pytest
from conformance import Row, Shown, read_tests

from tests.real.contract.recordings import keep

PROJECT = Path(__file__).parents[2]


def test_generated_files_are_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


# Behaviours of client-go and of controllers.


def test_every_behaviour_has_a_test_or_a_reason() -> None:
    found = conformance.find_problems(conformance.read_rows(), read_tests(), conformance.read_scripts())
    assert found + behaviours.find_problems(behaviours.read_rows(), read_tests(mark=behaviours.MARK)) == []


def test_pages_of_behaviours_are_up_to_date() -> None:
    page = conformance.render(conformance.read_rows(), read_tests(), conformance.read_scripts())
    assert conformance.PAGE.read_text() == page, "run scripts/conformance.py"
    page = behaviours.render(behaviours.read_rows(), read_tests(mark=behaviours.MARK))
    assert behaviours.PAGE.read_text() == page, "run scripts/behaviours.py"


def test_marks_of_functions_and_methods_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "deep"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(
        'import pytest\n\n\n@pytest.mark.behaviour("C-01")\n@pytest.mark.conformance("A-1", "A-2")\n'
        'async def test_one() -> None: ...\n\n\nclass TestMore:\n    @pytest.mark.conformance("A-1")\n'
        "    def test_two(self) -> None: ...\n"
    )
    one, two = "tests/deep/test_some.py::test_one", "tests/deep/test_some.py::test_two"
    assert read_tests(tmp_path) == {"A-1": [one, two], "A-2": [one]}
    assert read_tests(tmp_path, mark=behaviours.MARK) == {"C-01": [one]}


@pytest.mark.parametrize(
    ("row", "cited", "problem"),
    [
        pytest.param(Row("A-1", "x"), {}, "A-1 has neither a test that cites it nor a reason", id="nothing"),
        pytest.param(Row("A-1", "x"), {"A-1": ["t::f"], "A-2": ["t::g"]}, "t::g cites A-2, but", id="an unknown row"),
        pytest.param(
            Row("A-1", "x", "later", "y"),
            {"A-1": ["t::f"]},
            "A-1 is missing according to conformance.toml (later), but t::f",
            id="a test",
        ),
        pytest.param(
            Row("A-1", "x", "answered", "y"),
            {},
            "A-1 is answered according to conformance.toml, but no test",
            id="no test",
        ),
    ],
)
def test_problem_names_row_and_test(row: Row, cited: dict[str, list[str]], problem: str) -> None:
    [found] = conformance.find_problems({"Some": [row]}, cited)
    assert found.startswith(problem)


def test_script_shows_what_is_the_same_as_in_client_go() -> None:
    rows = {"Some": [Row("REF-1", "x"), Row("REF-2", "y"), Row("QUE-1", "z")]}
    tests = {number: ["tests/t.py::f"] for number in ("REF-1", "REF-2", "QUE-1")}
    page = conformance.render(rows, tests, [Shown("slow", "some", ("REF-1", "QUE-1"))])
    assert "| REF-1 | x | The same<br>scripts: `slow`" in page
    assert "| REF-2 | y | Tested here<br>" in page
    assert "| QUE-1 | z | Tested here<br>" in page
    script = Shown("slow", "some", ("A-1", "A-2"), frozenset({"rule"}), own=True)
    assert conformance.find_problems({"Some": [Row("A-1", "x")]}, {}, [script]) == [
        "the script slow covers A-2, but conformance.toml has no such row",
        "A-1 has no remark in conformance.toml, but the script slow declares a difference",
    ]


# Rows of the API server for tests.


def test_page_of_the_contract_is_up_to_date() -> None:
    page = contract.render(contract.read_rows(), contract.read_checks())
    assert page == contract.PAGE.read_text(), "run scripts/contract.py"


def test_rows_and_recordings_of_the_contract_belong_together(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    keep("test_some/test_one", [{"request": "GET /", "status": 200}], recorded)
    (tmp_path / "test_some.py").write_text('"""Some."""\n\n\nasync def test_one(): ...\n')
    (tmp_path / "differences.toml").write_text('["test_some/test_one"]\n"0/body" = "why"\n')
    assert contract.read_rows(tmp_path) == {"Some": [contract.Row("One", ["GET 200"], {"0/body": "why"})]}
    keep("test_some/test_gone", [], recorded)
    with pytest.raises(ValueError, match="no test has the name of test_some/test_gone"):
        contract.read_rows(tmp_path)
    (tmp_path / "test_some.py").write_text('"""Some."""\n\n\nasync def test_two(): ...\n')
    with pytest.raises(ValueError, match="test_some/test_two is not recorded"):
        contract.read_rows(tmp_path)
