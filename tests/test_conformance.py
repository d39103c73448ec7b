"""docs/conformance.md says what the tests say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent

sys.path.insert(0, str(PROJECT / "scripts"))

import conformance  # noqa: E402
from conformance import Row  # noqa: E402


def test_every_behaviour_has_a_test_or_a_reason() -> None:
    assert conformance.problems(conformance.read_rows(), conformance.read_tests()) == []


def test_the_page_is_up_to_date() -> None:
    page = conformance.render(conformance.read_rows(), conformance.read_tests())
    assert conformance.PAGE.read_text() == page, "run scripts/conformance.py"


def test_a_mark_is_read_wherever_the_test_is(tmp_path: Path) -> None:
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
        pytest.param(
            Row("A-1", "x"), {"A-1": ["t::f"], "A-2": ["t::g"]}, "A-2 is cited by t::g, but", id="an unknown row"
        ),
        pytest.param(
            Row("A-1", "x", "later", "y"), {"A-1": ["t::f"]}, "A-1 is said to be missing (later), but t::f", id="a test"
        ),
        pytest.param(Row("A-1", "x", "answered", "y"), {}, "A-1 is said to be answered, but no test", id="no test"),
    ],
)
def test_what_does_not_add_up_is_named(row: Row, cited: dict[str, list[str]], problem: str) -> None:
    [found] = conformance.problems({"Some": [row]}, cited)
    assert found.startswith(problem)


@pytest.mark.parametrize("row", ['{ is = "x" }', '{ is = "x", soon = "y" }', '{ later = "y" }'])
def test_a_row_that_says_nothing_is_refused_by_its_number(tmp_path: Path, row: str) -> None:
    path = tmp_path / "rows.toml"
    path.write_text(f"[Some]\nA-1 = {row}\n")
    with pytest.raises(ValueError, match="A-1 must say"):
        conformance.read_rows(path)
