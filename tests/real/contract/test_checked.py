"""The table of what the server for tests does and does not is true on both servers."""

from __future__ import annotations

import secrets
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON, Conversation

if TYPE_CHECKING:
    from tests.support.access import Access

ROWS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("checked.toml").read_text())["row"]
NAMES = [(row.get("mistake") or row["part"]).replace(" ", "_") for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
async def test_row_of_the_table_is_true(row: dict[str, Any], side: str, access: Access) -> None:
    namespace = f"row-{secrets.token_hex(4)}"
    async with access.session() as session:
        api = Conversation(session, access.server, namespace)
        await api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        for path, body in row.get("setup", ()):
            await api.poll(path.partition("?")[0], lambda answer: answer.status == 200)
            await api.create(path, body.replace("{ns}", namespace))
        method, path = row.get("method", "POST"), row["path"]
        if method == "POST":
            path += ("&" if "?" in path else "?") + "dryRun=All"
        if method == "GET":
            await api.poll(path, lambda answer: answer.status != 404)
        answer = await api(
            method,
            path,
            row.get("body", "").replace("{ns}", namespace),
            content_type=row.get("content_type", "application/merge-patch+json" if method == "PATCH" else JSON),
            accept=row.get("accept", JSON),
            user=row.get("user"),
        )
        await api("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.{namespace}.example.com")
        await api("DELETE", f"/api/v1/namespaces/{namespace}")
    assert (has(answer.body, row["field"]) if "field" in row else answer.status) == row[side], answer.body


def has(value: Any, field: str) -> bool:
    """Return whether a response has the field at a dotted path, with a number for each element of a list."""
    for name in field.split("."):
        if isinstance(value, list) and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return False
    return True
