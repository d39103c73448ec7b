"""The rows of the helpers on the API server in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.rows.helper_rows import PARTS, ROWS, check_part

if TYPE_CHECKING:
    from aioinformer import Client
    from aioinformer.testing import ApiServer
    from tests.real.rows.helper_rows import Row


@pytest.fixture
async def shop(api_server: ApiServer, client: Client) -> Client:
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    return client.with_options(namespace="shop")


@pytest.mark.behaviour("C-105")
@pytest.mark.parametrize("part", PARTS)
async def test_parts_of_objects_remove_nothing_of_others(shop: Client, part: str) -> None:
    await check_part(shop, *PARTS[part])


@pytest.mark.behaviour("C-84")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row(shop: Client, row: Row) -> None:
    await row(shop)
