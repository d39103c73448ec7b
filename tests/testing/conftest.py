from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.testing.api import Api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(version_wait=0.05) as server:
        yield server


@pytest.fixture
async def api(server: ApiServer) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession(server.url) as session:
        yield Api(session)
