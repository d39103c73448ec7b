"""The rows on the API server in this process. tests/real/rows/test_client_rows_real.py runs them on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.rows.client_rows import ROWS

if TYPE_CHECKING:
    from aioinformer import Client
    from tests.real.rows.client_rows import Row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row(client: Client, row: Row) -> None:
    await row(client)
