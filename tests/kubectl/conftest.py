"""kubectl, the real one, beside an API server of ours in this process."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.kubectl.running import Kubectl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(scope="session")
def kubectl_program() -> str:
    program = os.environ.get("AIOINFORMER_KUBECTL") or shutil.which("kubectl")
    if not program:
        pytest.skip("no kubectl: put one on PATH, or name it in AIOINFORMER_KUBECTL")
    return program


@pytest.fixture
async def server(kubectl_program: str) -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
def kubectl(kubectl_program: str, server: ApiServer, tmp_path: Path) -> Kubectl:
    config = server.kubeconfig(tmp_path / "kubeconfig")
    # The home is a new one: kubectl caches discovery and OpenAPI there, by the server's host and port.
    return Kubectl(kubectl_program, {"HOME": str(tmp_path), "KUBECONFIG": str(config), "PATH": os.defpath})
