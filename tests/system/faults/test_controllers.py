"""Widget controllers through each fault of the server: whatever happens, all converges, and nothing is done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.faults.controllers import CONTROLLER_ROWS, RENEW_DEADLINE, measure

if TYPE_CHECKING:
    from tests.system.faults.matrix import Row


@pytest.mark.behaviour("C-95", "C-97", "C-98")
@pytest.mark.parametrize("row", CONTROLLER_ROWS, ids=lambda row: row.title)
def test_controllers_converge_and_do_nothing_twice(row: Row) -> None:
    figures = measure(row)
    assert figures.latest <= RENEW_DEADLINE
    assert figures.terms >= 1
