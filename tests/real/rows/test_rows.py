"""Each row holds on the API server in this process, and on a real one if there is one."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, HttpTransport
from aioinformer.testing import ApiServer
from aioinformer.transport.auth.credentials import connect
from tests.real.rows import change_rows, client_rows, helper_rows, set_rows, write_rows

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


def name_of(row: Any) -> str:
    return str(row.__name__)


@pytest.mark.parametrize("row", client_rows.ROWS, ids=name_of)
async def test_verbs_options_and_errors(client: Client, row: client_rows.Row) -> None:
    await row(client)


@pytest.mark.parametrize("row", change_rows.ROWS, ids=name_of)
async def test_edits_applies_and_waits(client: Client, row: change_rows.Row) -> None:
    await row(client)


@pytest.mark.behaviour("C-84")
@pytest.mark.parametrize("row", helper_rows.ROWS, ids=name_of)
async def test_status_of_changing_definitions(client: Client, row: helper_rows.Row) -> None:
    await row(client)


@pytest.mark.behaviour("C-105")
@pytest.mark.parametrize("part", helper_rows.PARTS)
async def test_parts_of_objects_remove_nothing_of_others(client: Client, part: str) -> None:
    await helper_rows.check_part(client, *helper_rows.PARTS[part])


@pytest.mark.behaviour("C-85", "C-86", "C-101", "C-102", "C-103")
@pytest.mark.parametrize("row", set_rows.ROWS, ids=name_of)
async def test_applied_sets(client: Client, row: set_rows.Row) -> None:
    await row(set_rows.Sets(client.transport, client.namespace))


@pytest.mark.behaviour("C-37", "C-42", "C-43")
@pytest.mark.parametrize("name", write_rows.ROWS)
async def test_caches_show_each_write_when_the_wait_ends(client: Client, name: str) -> None:
    await write_rows.check_row(write_rows.ROWS[name], client.transport, client.namespace)
