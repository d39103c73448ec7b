"""docs/fault-matrix.md agrees with new measurements."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[3]

sys.path.insert(0, str(PROJECT / "scripts"))

import fault_matrix  # noqa: E402

from tests.system.faults.matrix import LASTS, ROWS, measure  # noqa: E402


def test_page_agrees_with_figures_and_rows() -> None:
    figures = json.loads(fault_matrix.FIGURES.read_text())
    assert fault_matrix.find_problems(figures, fault_matrix.PAGE.read_text()) == [], "run scripts/fault_matrix.py"


async def test_faults_have_the_effects_on_the_page() -> None:
    rows = [row for row in ROWS if row.lasts == LASTS]
    cells = await asyncio.gather(*(measure(row, lasts=1.5) for row in rows))
    page = {cell["title"]: cell for cell in json.loads(fault_matrix.FIGURES.read_text())["rows"]}
    found = {cell.title: (cell.shown, cell.lost > 0, cell.untrue) for cell in cells}
    assert found == {each: (page[each]["shown"], page[each]["lost"] > 0, page[each]["untrue"]) for each in found}
