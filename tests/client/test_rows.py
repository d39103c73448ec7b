"""The rows on the API server in this process. tests/e2e/test_client.py runs them on a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client.rows import ROWS

if TYPE_CHECKING:
    from aioinformer import Client
    from tests.client.rows import Row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row(client: Client, row: Row) -> None:
    await row(client)
