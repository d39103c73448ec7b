"""docs/contract.md agrees with the suite and its recordings."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

sys.path.insert(0, str(PROJECT / "scripts"))

import contract  # noqa: E402

from tests.real.contract.recordings import keep  # noqa: E402


def test_page_is_up_to_date() -> None:
    page = contract.render(contract.read_rows(), contract.read_checks())
    assert page == contract.PAGE.read_text(), "run scripts/contract.py"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "recorded").mkdir()
    keep("test_some/test_one", [{"request": "GET /", "status": 200}], tmp_path / "recorded")
    (tmp_path / "test_some.py").write_text('"""Some."""\n\n\nasync def test_one(): ...\n')
    (tmp_path / "differences.toml").write_text('["test_some/test_one"]\n"0/body" = "why"\n')
    return tmp_path


def test_row_has_exchanges_and_differences(suite: Path) -> None:
    assert contract.read_rows(suite) == {"Some": [contract.Row("One", ["GET 200"], {"0/body": "why"})]}


def test_row_without_a_recording_is_refused(suite: Path) -> None:
    with (suite / "test_some.py").open("a") as file:
        file.write("\n\nasync def test_two(): ...\n")
    with pytest.raises(ValueError, match="test_some/test_two is not recorded"):
        contract.read_rows(suite)


def test_recording_without_a_row_is_refused(suite: Path) -> None:
    keep("test_some/test_gone", [], suite / "recorded")
    with pytest.raises(ValueError, match="no test has the name of test_some/test_gone"):
        contract.read_rows(suite)
