"""Fixtures: the transports, and a server on loopback."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import aiohttp
import pytest
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import HttpTransport
from aioinformer.transport import KubernetesTransport
from tests.support.loopback import Server, ok

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aioinformer.transport import Transport
    from tests.support.loopback import MakeTransport


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Use sockets, in real time."""
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def no_sockets() -> None:
    """Let the tests of this room use sockets, which are its subject."""


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server().started(ok) as server:
        yield server


@pytest.fixture(params=["own session", "borrowed session", "kubernetes_asyncio"])
async def make_transport(request: pytest.FixtureRequest) -> AsyncIterator[MakeTransport]:
    async with AsyncExitStack() as stack:

        def make(url: str, *, token: str = "", compression: bool = False, header_timeout: float = 60.0) -> Transport:
            transport: HttpTransport | KubernetesTransport
            if request.param == "kubernetes_asyncio":
                client = ApiClient(Configuration(host=url, api_key={"BearerToken": f"Bearer {token}"} if token else {}))
                stack.push_async_callback(client.close)
                transport = KubernetesTransport(client, compression=compression, header_timeout=header_timeout)
            else:
                session = None
                if request.param == "borrowed session":
                    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
                    stack.push_async_callback(session.close)
                transport = HttpTransport(
                    url,
                    session,
                    token=token or None,
                    compression=compression,
                    header_timeout=header_timeout,
                )
            stack.push_async_callback(transport.aclose)
            return transport

        yield make


@pytest.fixture
async def transport(make_transport: MakeTransport, server: Server) -> Transport:
    return make_transport(server.url)
