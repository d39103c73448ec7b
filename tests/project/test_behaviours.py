"""docs/controllers.md agrees with the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

sys.path.insert(0, str(PROJECT / "scripts"))

import behaviours  # noqa: E402
from conformance import read_tests  # noqa: E402


def test_every_behaviour_of_controllers_has_a_test() -> None:
    assert behaviours.find_problems(behaviours.read_rows(), read_tests(mark=behaviours.MARK)) == []


def test_page_of_controllers_is_up_to_date() -> None:
    page = behaviours.render(behaviours.read_rows(), read_tests(mark=behaviours.MARK))
    assert behaviours.PAGE.read_text() == page, "run scripts/behaviours.py"


@pytest.mark.parametrize(
    ("rows", "cited", "problem"),
    [
        pytest.param({"C-01": "x"}, {}, "C-01 has no test that cites it", id="no test"),
        pytest.param({}, {"C-01": ["t::f"]}, "t::f cites C-01, but controllers.toml has no such row", id="no row"),
        pytest.param(
            {"C-02": "x", "C-01": "y"},
            {"C-01": ["t::f"], "C-02": ["t::f"]},
            "C-01 comes after C-02 in controllers.toml; order the rows by number",
            id="wrong order",
        ),
        pytest.param({"D-1": "x"}, {"D-1": ["t::f"]}, "D-1 is no number of the form C-07", id="wrong form"),
    ],
)
def test_problem_names_row_and_test(rows: dict[str, str], cited: dict[str, list[str]], problem: str) -> None:
    assert behaviours.find_problems({"Some": rows}, cited) == [problem]


def test_marks_of_conformance_are_no_marks_of_behaviours(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_some.py").write_text(
        'import pytest\n\n\n@pytest.mark.conformance("A-1")\n@pytest.mark.behaviour("C-01", "C-02")\n'
        "async def test_one() -> None: ...\n"
    )
    cited = read_tests(tmp_path, mark=behaviours.MARK)
    assert cited == {number: ["tests/test_some.py::test_one"] for number in ("C-01", "C-02")}
    page = behaviours.render({"Queue": {"C-01": "A key.", "C-02": "Another."}}, cited)
    assert "## Queue" in page
    assert "| C-02 | Another. | tests/test_some.py: `test_one` |" in page
