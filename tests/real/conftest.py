"""Real clusters for end-to-end tests and rows, made by the tools in the folder AIOINFORMER_TEST_CLUSTER."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.real_cluster import Operator, RealCluster, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# The first test may have to compile the API server.
_FIRST_BUILD = 3600
_FOLDERS = tuple(Path(__file__).parent / name for name in ("e2e", "rows"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(map(item.path.is_relative_to, _FOLDERS)):
            item.add_marker(pytest.mark.timeout(_FIRST_BUILD))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Provide a running cluster. Tests must not stop it, and leave objects only in their own namespaces."""
    yield from running(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="session")
def controlled_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Provide a running cluster with kube-controller-manager, and with nodes that finish the deletion of pods."""
    yield from running(tmp_path_factory.mktemp("controlled"), "--with-controllers", "--with-kubelet")


@pytest.fixture
def coordinated_cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Provide a separate cluster with the feature gate for coordinated election."""
    gates = ("--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true")
    yield from running(tmp_path, *gates)


@pytest.fixture
async def operator(cluster: RealCluster) -> AsyncIterator[Operator]:
    """Provide an administrator of the cluster."""
    async with Operator(cluster) as operator:
        yield operator
