"""The rows of edits, applies and own writes on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.transport.auth.credentials import connect
from tests.real.rows.change_rows import ROWS

if TYPE_CHECKING:
    from tests.real.rows.change_rows import Row
    from tests.support.real_cluster import RealCluster


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
async def test_row_holds_on_a_real_server(cluster: RealCluster, row: Row) -> None:
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        namespace = await connection.client.core.v1.namespaces.create({"metadata": {"generateName": "changes-"}})
        name = namespace.metadata.name
        await row(connection.client.with_options(namespace=name, field_manager="tests"))
