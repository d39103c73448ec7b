"""Replicas of a ring."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from aioinformer.ring import RingRefused
from tests.system.ring.replicas import OBJECTS, Replica, settled, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer


@pytest.fixture
async def server(api_server: ApiServer) -> ApiServer:
    for number in range(OBJECTS):
        api_server.create("configmaps", {"metadata": {"name": f"m{number:02}", "labels": {"app": "web"}}})
    return api_server


@pytest.fixture
async def replicas(server: ApiServer) -> AsyncIterator[list[Replica]]:
    replicas = [Replica(server, name) for name in "abc"]
    yield replicas
    for each in replicas:
        each.transport.cut = False
        with suppress(RingRefused):
            await each.stop()
        await each.transport.aclose()


@pytest.fixture
async def shared(server: ApiServer, replicas: list[Replica]) -> list[Replica]:
    """Provide three replicas that share the objects."""
    for each in replicas:
        await each.start()
    await until(lambda: settled(server, *replicas))
    return replicas
