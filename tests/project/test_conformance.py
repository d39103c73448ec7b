"""docs/conformance.md agrees with the tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

sys.path.insert(0, str(PROJECT / "scripts"))

import conformance  # noqa: E402
from conformance import Row, Shown  # noqa: E402


def test_every_behaviour_has_a_test_or_a_reason() -> None:
    found = conformance.find_problems(conformance.read_rows(), conformance.read_tests(), conformance.read_scripts())
    assert found == []


def test_page_is_up_to_date() -> None:
    page = conformance.render(conformance.read_rows(), conformance.read_tests(), conformance.read_scripts())
    assert conformance.PAGE.read_text() == page, "run scripts/conformance.py"


def test_marks_of_functions_and_methods_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "deep"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(
        'import pytest\n\n\n@pytest.mark.timeout(3)\n@pytest.mark.conformance("A-1", "A-2")\n'
        'async def test_one() -> None: ...\n\n\nclass TestMore:\n    @pytest.mark.conformance("A-1")\n'
        "    def test_two(self) -> None: ...\n"
    )
    assert conformance.read_tests(tmp_path) == {
        "A-1": ["tests/deep/test_some.py::test_one", "tests/deep/test_some.py::test_two"],
        "A-2": ["tests/deep/test_some.py::test_one"],
    }


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


@pytest.mark.parametrize("row", ['{ is = "x" }', '{ is = "x", soon = "y" }', '{ later = "y" }'])
def test_malformed_row_is_refused_by_number(tmp_path: Path, row: str) -> None:
    path = tmp_path / "rows.toml"
    path.write_text(f"[Some]\nA-1 = {row}\n")
    with pytest.raises(ValueError, match="A-1 must have"):
        conformance.read_rows(path)


def test_same_needs_a_script_played_to_client_go() -> None:
    rows = {"Some": [Row("REF-1", "x"), Row("REF-2", "y"), Row("QUE-1", "z")]}
    tests = {number: ["tests/t.py::f"] for number in ("REF-1", "REF-2", "QUE-1")}
    page = conformance.render(rows, tests, [Shown("slow", "some", ("REF-1", "QUE-1"))])
    assert "| REF-1 | x | The same<br>scripts: `slow`" in page
    assert "| REF-2 | y | Tested here<br>" in page
    assert "| QUE-1 | z | Tested here<br>" in page


def test_script_with_a_difference_is_not_the_same() -> None:
    script = Shown("slow", "some", ("A-1", "A-2"), frozenset({"rule"}), own=True)
    assert conformance.find_problems({"Some": [Row("A-1", "x")]}, {}, [script]) == [
        "the script slow covers A-2, but conformance.toml has no such row",
        "A-1 has no remark in conformance.toml, but the script slow declares a difference",
    ]
