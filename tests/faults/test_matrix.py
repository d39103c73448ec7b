"""docs/fault-matrix.md says what happens."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent

sys.path.insert(0, str(PROJECT / "scripts"))

import fault_matrix  # noqa: E402

from tests.faults.matrix import LASTS, ROWS, measured  # noqa: E402


def test_the_page_is_what_the_figures_say_of_the_rows_that_there_are() -> None:
    figures = json.loads(fault_matrix.FIGURES.read_text())
    assert fault_matrix.problems(figures, fault_matrix.PAGE.read_text()) == [], "run scripts/fault_matrix.py"


async def test_every_fault_is_shown_as_the_page_says_and_nothing_is_wrong_after_it() -> None:
    rows = [row for row in ROWS if row.lasts == LASTS]
    cells = await asyncio.gather(*(measured(row, lasts=1.5) for row in rows))
    said = {cell["says"]: cell for cell in json.loads(fault_matrix.FIGURES.read_text())["rows"]}
    seen = {cell.says: (cell.shown, cell.lost > 0, cell.untrue) for cell in cells}
    assert seen == {each: (said[each]["shown"], said[each]["lost"] > 0, said[each]["untrue"]) for each in seen}
