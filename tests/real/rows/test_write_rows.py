"""Own writes on a server that answers as kube-apiserver does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.transport import HttpTransport
from tests.real.rows.write_rows import ROWS, check_row

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.behaviour("C-37", "C-42", "C-43")
async def test_caches_show_each_write_when_the_wait_ends(api_server: ApiServer, name: str) -> None:
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    async with HttpTransport(api_server.url) as transport:
        await check_row(ROWS[name], transport, "shop")
