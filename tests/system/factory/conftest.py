"""Fixtures: a server, and dynamic informers of its resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from aioinformer import DynamicInformers, HttpTransport, RunOptions
from aioinformer.backoff import BackoffOptions
from aioinformer.testing import ApiServer
from tests.support.api import Api

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


@pytest.fixture
async def transport(server: ApiServer) -> AsyncIterator[HttpTransport]:
    async with HttpTransport(server.url) as transport:
        yield transport


@pytest.fixture
def dynamic(transport: HttpTransport) -> DynamicInformers:
    return DynamicInformers(transport, options=RunOptions(backoff=BackoffOptions(initial=0.02, cap=0.1)))
