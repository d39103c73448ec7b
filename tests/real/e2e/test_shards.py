"""Shards on a real API server that supports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.pager import ListPager
from aioinformer.reflector.sharding import ShardedListWatch, shard_selectors
from aioinformer.transport.auth.credentials import connect
from tests.real.e2e.witnesses import CONFIG_MAPS

if TYPE_CHECKING:
    from tests.support.real_cluster import Operator, RealCluster


@pytest.mark.conformance("SHD-01", "SHD-02")
async def test_server_and_client_agree_on_shards(cluster: RealCluster, operator: Operator) -> None:
    body = {"metadata": {"generateName": "shards-"}}
    namespace = (await operator.create("/api/v1/namespaces", body))["metadata"]["name"]
    for number in range(30):
        await operator.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": f"map-{number}"}})
    seen: list[str] = []
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        for shard in shard_selectors(3):
            lister_watcher = ShardedListWatch(connection.transport, CONFIG_MAPS, shard, namespace)
            listed = {each.metadata.name for each in await ListPager(lister_watcher).list()}
            async with SharedIndexInformer(lister_watcher) as informer:
                await informer.wait_for_sync()
                assert {each.metadata.name for each in informer.lister().list()} == listed
            assert lister_watcher.left_out == 0  # the server has excluded them already
            seen += listed
    assert sorted(seen) == sorted(f"map-{number}" for number in range(30))
