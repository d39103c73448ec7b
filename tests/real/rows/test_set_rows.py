"""The rows of `apply_set` on the API server for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import HttpTransport
from tests.real.rows.set_rows import ROWS, Sets

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer
    from tests.real.rows.set_rows import Row


@pytest.mark.behaviour("C-85", "C-86", "C-101", "C-102", "C-103")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row_holds_on_the_server_for_tests(api_server: ApiServer, row: Row) -> None:
    async with HttpTransport(api_server.url) as transport:
        await row(Sets(transport, "default"))
