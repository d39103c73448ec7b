"""The rows of edits, applies and own writes on the API server in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.rows.change_rows import ROWS

if TYPE_CHECKING:
    from aioinformer import Client
    from tests.real.rows.change_rows import Row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row(client: Client, row: Row) -> None:
    await row(client)
