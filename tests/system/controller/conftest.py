"""A server with Widgets, and requests for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import Client, HttpTransport
from tests.support.bench import Bench, definition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    async with HttpTransport(api_server.url) as transport:
        yield Client(transport, field_manager="widgets")


@pytest.fixture
async def bench(api_server: ApiServer, client: Client) -> Bench:
    """Provide a server with one Widget, "web", whose status is a subresource."""
    api_server.create("customresourcedefinitions", definition())
    api_server.create("widgets", {"metadata": {"name": "web"}, "spec": {"size": 3}})
    return Bench(api_server, client)
