"""A client of the server for tests."""

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
        yield Client(transport, field_manager="widgets")
