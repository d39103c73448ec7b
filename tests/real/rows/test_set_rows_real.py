"""The rows of `apply_set` on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.transport.auth.credentials import connect
from tests.real.rows.set_rows import ROWS, Sets

if TYPE_CHECKING:
    from tests.real.rows.set_rows import Row
    from tests.support.real_cluster import RealCluster


@pytest.mark.behaviour("C-85", "C-86", "C-101", "C-102", "C-103")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row_holds_on_a_real_server(cluster: RealCluster, row: Row) -> None:
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        made = await connection.client.core.v1.namespaces.create({"metadata": {"generateName": "sets-"}})
        await row(Sets(connection.transport, made.metadata.name))
