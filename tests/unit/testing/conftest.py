from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.support.api import Api

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Use sockets, in real time."""
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def no_sockets() -> None:
    """Let the tests of this room use sockets, which are its subject."""


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(version_wait=0.05) as server:
        yield server


@pytest.fixture
async def api(server: ApiServer) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession(server.url) as session:
        yield Api(session)
