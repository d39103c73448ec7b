"""Create one object of a kind with its status, and read it as a row of a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.real.contract.conversation import MERGE_PATCH, TABLE

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

Case = tuple[str, dict[str, Any], dict[str, Any]]
"""Path of the collection, object, and status ({} for none). "{ns}" is the namespace of the row."""


def ago(**units: float) -> str:
    """Return a time in the past, ten seconds earlier: its age is shown the same for a while."""
    return (datetime.now(UTC) - timedelta(**units) - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def row_of(api: Conversation, case: Case) -> list[Any]:
    """Create an object, and return the cells of its table row; the recording has the object too.

    Its name is "a". A cluster-scoped object has the name of the namespace, and is deleted at the end.
    """
    path, content, status = case
    obj = _placed(content, api.namespace)
    obj["metadata"] = {"name": "a" if "{ns}" in path else api.namespace} | obj.get("metadata", {})
    item = f"{path}/{obj['metadata']['name']}"
    created = await api("POST", path, obj)
    assert created.status == 201, created.body
    try:
        if status:
            change = {"status": _placed(status, api.namespace)}
            answer = await api("PATCH", f"{item}/status", change, content_type=MERGE_PATCH)
            assert answer.status == 200, answer.body
        answer = await api("GET", f"{item}?includeObject=None", accept=TABLE)
    finally:
        if "{ns}" not in path:
            await api("DELETE", item, recorded=False)
    cells: list[Any] = answer.body["rows"][0]["cells"]
    return cells


def _placed(value: Any, namespace: str) -> Any:
    match value:
        case dict():
            return {name: _placed(field, namespace) for name, field in value.items()}
        case list():
            return [_placed(item, namespace) for item in value]
        case str():
            return value.replace("{ns}", namespace)
    return value
