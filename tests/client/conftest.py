"""A client of the API server in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import Client, HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[Client]:
    async with HttpTransport(api_server.url) as transport:
        made = Client(transport, namespace="shop", field_manager="tests")
        await made.core.v1.namespaces.create({"metadata": {"name": "shop"}})
        yield made
