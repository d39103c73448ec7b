"""One real cluster for all tests of this folder, made by the tools in the folder AIOINFORMER_TEST_CLUSTER."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.real_cluster import Operator, RealCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# The first test may have to compile the API server.
_FIRST_BUILD = 3600
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_FIRST_BUILD))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Provide a running cluster. Tests must not stop it, and leave objects only in their own namespaces."""
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        pytest.skip("needs a real API server: set AIOINFORMER_TEST_CLUSTER (see docs/contributing.md)")
    yield from _running(RealCluster(Path(tools), tmp_path_factory.mktemp("cluster") / "data"))


@pytest.fixture(scope="session")
def controlled_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Provide a running cluster with kube-controller-manager, and with nodes that finish the deletion of pods."""
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        pytest.skip("needs a real API server: set AIOINFORMER_TEST_CLUSTER (see docs/contributing.md)")
    options = ("--with-controllers", "--with-kubelet")
    yield from _running(RealCluster(Path(tools), tmp_path_factory.mktemp("controlled") / "data", options))


def _running(cluster: RealCluster) -> Iterator[RealCluster]:
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
async def operator(cluster: RealCluster) -> AsyncIterator[Operator]:
    """Provide an administrator of the cluster."""
    async with Operator(cluster) as operator:
        yield operator
