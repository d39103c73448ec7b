"""The pytest plugin: an API server of its own for each test that asks for one.

It works with pytest-asyncio and with anyio's plugin: the fixture is an ordinary async generator, and whichever of the
two the test uses runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing.server import ApiServer


async def _api_server() -> AsyncIterator[ApiServer]:
    """An `aioinformer.testing.ApiServer` on loopback, empty but for the namespaces every cluster has.

    It is stopped after the test, within about a second, whatever the test left open.
    """
    # pytest imports this plugin in every run; the server is only loaded where it is used.
    from aioinformer.testing.server import ApiServer

    async with ApiServer() as server:
        yield server


def _fixture() -> Any:
    try:
        import pytest_asyncio
    except ImportError:
        # anyio's plugin takes async generators of plain fixtures.
        return pytest.fixture(name="api_server")(_api_server)
    return pytest_asyncio.fixture(name="api_server", loop_scope="function")(_api_server)


api_server = _fixture()
