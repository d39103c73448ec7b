"""The table of what the server for tests checks is true on both servers."""

from __future__ import annotations

import secrets
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import Conversation

if TYPE_CHECKING:
    from tests.real.contract.servers import Access

ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("checked.toml").read_text())["row"]


@pytest.mark.parametrize("row", ROWS, ids=[row["mistake"].replace(" ", "_") for row in ROWS])
async def test_mistake_has_the_status_of_the_table(row: dict[str, Any], side: str, access: Access) -> None:
    namespace = f"row-{secrets.token_hex(4)}"
    async with access.session() as session:
        api = Conversation(session, access.server, namespace)
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        path = row["path"] + ("&" if "?" in row["path"] else "?") + "dryRun=All"
        answer = await api("POST", path, row["body"])
        await api("DELETE", f"/api/v1/namespaces/{namespace}")
    assert answer.status == row[side], answer.body
