"""Coordinated leader election with a real API server."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aioinformer.leaderelection.candidate import LeaseCandidate
from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost
from aioinformer.leaderelection.lease import LeaderElectionOptions
from aioinformer.transport.auth.credentials import connect
from tests.support.real_cluster import RealCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

GATES = ("--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true")
OPTIONS = LeaderElectionOptions(coordinated=True)


@pytest.fixture
def coordinated_cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Provide a separate cluster with the feature gate for coordinated election."""
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        pytest.skip("needs a real API server: set AIOINFORMER_TEST_CLUSTER (see docs/contributing.md)")
    cluster = RealCluster(Path(tools), tmp_path / "data", GATES)
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.mark.conformance("LE-13", "LE-14")
async def test_server_prefers_the_older_version(coordinated_cluster: RealCluster) -> None:
    terms: asyncio.Queue[str] = asyncio.Queue()
    async with AsyncExitStack() as stack, asyncio.timeout(120):
        connection = await stack.enter_async_context(await connect(kubeconfig=coordinated_cluster.kubeconfig))

        async def stand(name: str, version: str) -> None:
            async with LeaseCandidate(connection.transport, name, lease="it", binary_version=version) as candidate:
                elector = LeaderElector(connection.transport, candidate.lease, identity=name, options=OPTIONS)
                try:
                    async with elector.leading():
                        terms.put_nowait(f"{name} leads")
                        await asyncio.Event().wait()
                except LeadershipLost:
                    terms.put_nowait(f"{name} gave way")

        newer = asyncio.create_task(stand("newer", "1.5.0"))
        older = None
        try:
            assert await terms.get() == "newer leads"
            older = asyncio.create_task(stand("older", "1.4.0"))
            assert await terms.get() == "newer gave way"
            assert await terms.get() == "older leads"
        finally:
            tasks = {task for task in (newer, older) if task is not None}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
