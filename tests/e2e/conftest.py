"""One real cluster for all tests of this folder, where AIOINFORMER_TEST_CLUSTER says how to make it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.real_cluster import Operator, RealCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# The first test may have to wait for the API server to be compiled.
_FIRST_BUILD = 3600
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_FIRST_BUILD))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A running cluster. Tests leave it running; what they leave in it, they leave in namespaces of their own."""
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        pytest.skip("needs a real API server: AIOINFORMER_TEST_CLUSTER names no test cluster")
    cluster = RealCluster(Path(tools), tmp_path_factory.mktemp("cluster") / "data")
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
async def operator(cluster: RealCluster) -> AsyncIterator[Operator]:
    """Somebody with all rights in the cluster."""
    async with Operator(cluster) as operator:
        yield operator
