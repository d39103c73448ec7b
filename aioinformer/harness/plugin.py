"""The pytest plugin: fixtures for an API server for each test, and for its usual clients.

| fixture | |
|---|---|
| `api_server` | an `ApiServer` with only the namespaces that every cluster has |
| `api_faults` | a `FaultController` of that server; the faults that it started end with the test |
| `api_client` | a `kubernetes_asyncio.client.ApiClient` for it |
| `informer_factory` | a `SharedInformerFactory` for it, entered |

They work with pytest-asyncio and with anyio's plugin: each is an ordinary async generator.

In the process of the tests, a write that a controller does not declare raises, unless its manager says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

# pytest imports this plugin in every run; all other modules are imported where they are used.
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kubernetes_asyncio.client import ApiClient

    from aioinformer.factory.factory import SharedInformerFactory
    from aioinformer.testing.server.api_server import ApiServer, FaultController


def pytest_configure(config: pytest.Config) -> None:
    """Let managers without `strict_writes` raise for writes that their controllers do not declare."""
    from aioinformer.controller.writes import defaults

    before = defaults.strict_writes
    defaults.strict_writes = True
    config.add_cleanup(lambda: setattr(defaults, "strict_writes", before))


async def _api_server() -> AsyncIterator[ApiServer]:
    """An `aioinformer.testing.ApiServer` on loopback, with only the namespaces that every cluster has.

    It is stopped after the test, within about a second, whatever the test left open.
    """
    from aioinformer.testing.server.api_server import ApiServer

    async with ApiServer() as server:
        yield server


async def _api_faults(api_server: ApiServer) -> AsyncIterator[FaultController]:
    """Start and end faults of `api_server`; the remaining ones end with the test."""
    from aioinformer.testing.server.api_server import FaultController

    async with FaultController(api_server) as controller:
        yield controller


async def _api_client(api_server: ApiServer) -> AsyncIterator[ApiClient]:
    """A client of kubernetes_asyncio for `api_server`; closed after the test."""
    from kubernetes_asyncio.client import ApiClient, Configuration

    async with ApiClient(Configuration(host=api_server.url)) as client:
        yield client


async def _informer_factory(api_server: ApiServer) -> AsyncIterator[SharedInformerFactory]:
    """A `SharedInformerFactory` for `api_server`, entered. Get informers from it, then `start()` them.

    It is closed before the server stops.
    """
    from aioinformer.factory.factory import SharedInformerFactory
    from aioinformer.transport.http import HttpTransport

    async with HttpTransport(api_server.url) as transport, SharedInformerFactory(transport) as factory:
        yield factory


def _fixture(function: Callable[..., Any]) -> Any:
    name = function.__name__.removeprefix("_")
    try:
        import pytest_asyncio
    except ImportError:
        # anyio's plugin takes async generators of plain fixtures.
        return pytest.fixture(name=name)(function)
    return pytest_asyncio.fixture(name=name, loop_scope="function")(function)


api_server = _fixture(_api_server)
api_faults = _fixture(_api_faults)
api_client = _fixture(_api_client)
informer_factory = _fixture(_informer_factory)
