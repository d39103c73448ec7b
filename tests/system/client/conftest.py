"""A client of the API server in this process, with roles and their bindings, and a server without an API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import Client, HttpTransport
from aioinformer.testing import ApiServer
from tests.support.loopback import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def own_server() -> AsyncIterator[ApiServer]:
    async with ApiServer(tokens={"token": "admin,system:masters"}, authorization_mode="RBAC") as server:
        yield server


@pytest.fixture
async def client(own_server: ApiServer) -> AsyncIterator[Client]:
    async with HttpTransport(own_server.url, token="token") as transport:
        made = Client(transport, namespace="shop", field_manager="tests")
        await made.core.v1.namespaces.create({"metadata": {"name": "shop"}})
        yield made


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Provide a server whose answers a test states."""
    server = Server()
    await server.start()
    yield server
    await server.stop()
