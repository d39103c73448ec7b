"""The rows of the helpers of controllers on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.transport.auth.credentials import connect
from tests.real.rows.helper_rows import PARTS, ROWS, check_part

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import Client
    from tests.real.rows.helper_rows import Row
    from tests.support.real_cluster import RealCluster


@pytest.fixture
async def client(cluster: RealCluster) -> AsyncIterator[Client]:
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        made = await connection.client.core.v1.namespaces.create({"metadata": {"generateName": "helpers-"}})
        yield connection.client.with_options(namespace=made.metadata.name or "", field_manager="tests")


@pytest.mark.parametrize("part", ["transform", "class", "projection"])
async def test_parts_of_objects_remove_nothing_of_others(client: Client, part: str) -> None:
    await check_part(client, *PARTS[part])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row_holds_on_a_real_server(client: Client, row: Row) -> None:
    await row(client)
