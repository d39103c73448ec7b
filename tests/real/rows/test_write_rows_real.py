"""Own writes on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.transport.auth.credentials import connect
from tests.real.rows.write_rows import ROWS, check_row

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster


@pytest.mark.parametrize("name", ROWS)
async def test_caches_show_each_write_when_the_wait_ends(cluster: RealCluster, name: str) -> None:
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        made = await connection.client.core.v1.namespaces.create({"metadata": {"generateName": "own-writes-"}})
        await check_row(ROWS[name], connection.transport, made.metadata.name)
