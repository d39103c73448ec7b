"""kubectl with the API server for tests in this process, or with a real API server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.real.kubectl.running import Kubectl, environment
from tests.support.real_cluster import RealCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

KUBECONFIG = os.environ.get("AIOINFORMER_TEST_KUBECONFIG")
TOOLS = os.environ.get("AIOINFORMER_TEST_CLUSTER")
_CONTROLLERS = "--controllers=garbage-collector-controller,namespace-controller"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "side" in metafunc.fixturenames:
        metafunc.parametrize("side", ["real", "ours"] if KUBECONFIG or TOOLS else ["ours"])


@pytest.fixture(scope="session")
def kubectl_program() -> str:
    program = os.environ.get("AIOINFORMER_KUBECTL") or shutil.which("kubectl")
    if not program:
        pytest.skip("no kubectl: put one on PATH, or name it in AIOINFORMER_KUBECTL")
    return program


@pytest.fixture(scope="session")
def client_version(kubectl_program: str) -> str:
    """The version of kubectl without its patch level, such as "v1.36"."""
    told = subprocess.run([kubectl_program, "version", "--client", "-o", "json"], check=True, stdout=subprocess.PIPE)
    version: str = json.loads(told.stdout)["clientVersion"]["gitVersion"]
    return version.rpartition(".")[0]


@pytest.fixture
async def server(kubectl_program: str) -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
def kubectl(kubectl_program: str, server: ApiServer, tmp_path: Path) -> Kubectl:
    config = server.kubeconfig(tmp_path / "kubeconfig")
    return Kubectl(kubectl_program, environment(tmp_path, config))


@pytest.fixture(scope="session")
def real_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a real API server: AIOINFORMER_TEST_KUBECONFIG, or that of a cluster that this suite starts."""
    if KUBECONFIG:
        yield Path(KUBECONFIG)
        return
    assert TOOLS is not None
    folder = tmp_path_factory.mktemp("kubectl") / "data"
    cluster = RealCluster(Path(TOOLS), folder, ("--with-controllers", _CONTROLLERS))
    cluster.up()
    try:
        yield cluster.kubeconfig
    finally:
        cluster.down()


@pytest.fixture
async def kubeconfig(side: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """The administrator's kubeconfig for the server of this test."""
    if side == "real":
        yield request.getfixturevalue("real_kubeconfig")
        return
    async with ApiServer(tls=True, authorization_mode="RBAC") as server:
        yield server.kubeconfig(tmp_path / "of-the-server")
