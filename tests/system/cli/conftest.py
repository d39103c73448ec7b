"""A server, and a shell that starts commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer
from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    home = tmp_path / "home"
    home.mkdir()
    running = Shell(home)
    yield running
    await running.close()


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> Path:
    return server.kubeconfig(tmp_path / "kubeconfig")
