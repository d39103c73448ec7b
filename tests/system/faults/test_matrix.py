"""The effects of each fault on an informer are those of docs/fault-matrix.md; controllers converge in spite of it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import fault_matrix
import pytest

from tests.system.faults import controllers
from tests.system.faults.matrix import LASTS, ROWS, measure

if TYPE_CHECKING:
    from tests.system.faults.matrix import Row


def test_page_agrees_with_figures_and_rows() -> None:
    figures = json.loads(fault_matrix.FIGURES.read_text())
    assert fault_matrix.find_problems(figures, fault_matrix.PAGE.read_text()) == [], "run scripts/fault_matrix.py"


async def test_faults_have_the_effects_on_the_page() -> None:
    rows = [row for row in ROWS if row.lasts == LASTS]
    cells = await asyncio.gather(*(measure(row, lasts=1.5) for row in rows))
    page = {cell["title"]: cell for cell in json.loads(fault_matrix.FIGURES.read_text())["rows"]}
    found = {cell.title: (cell.shown, cell.lost > 0, cell.untrue) for cell in cells}
    assert found == {each: (page[each]["shown"], page[each]["lost"] > 0, page[each]["untrue"]) for each in found}


@pytest.mark.behaviour("C-95", "C-97", "C-98")
@pytest.mark.parametrize("row", controllers.CONTROLLER_ROWS, ids=lambda row: row.title)
def test_controllers_converge_and_do_nothing_twice(row: Row) -> None:
    figures = controllers.measure(row)
    assert figures.latest <= controllers.RENEW_DEADLINE
    assert figures.terms >= 1
