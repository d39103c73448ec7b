"""Tests of the client and the helpers that run on the API server in this process, and on a real one if there is one."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, HttpTransport, connect
from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.transport import Transport


@pytest.fixture(params=["ours", "real"] if os.environ.get("AIOINFORMER_TEST_CLUSTER") else ["ours"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of a new namespace, with all rights and the field manager "tests"."""
    transport: Transport
    async with AsyncExitStack() as stack:
        if request.param == "real":
            kubeconfig = request.getfixturevalue("cluster").kubeconfig
            transport = (await stack.enter_async_context(await connect(kubeconfig=kubeconfig))).transport
        else:
            rights: dict[str, Any] = {"tokens": {"token": "admin,system:masters"}, "authorization_mode": "RBAC"}
            server = await stack.enter_async_context(ApiServer(**rights))
            transport = await stack.enter_async_context(HttpTransport(server.url, token="token"))
        made = await Client(transport).core.v1.namespaces.create({"metadata": {"generateName": "rows-"}})
        yield Client(transport, namespace=made.metadata.name, field_manager="tests")
