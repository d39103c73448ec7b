"""Create one object of a kind with its status, and read it as a row of a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.contract.talk import MERGE_PATCH, TABLE

if TYPE_CHECKING:
    from tests.contract.talk import Talk

Case = tuple[str, dict[str, Any], dict[str, Any]]
"""Where it is made, what is made, and its status if it has one to tell of. "{ns}" in it is the namespace of the row."""


def ago(**units: float) -> str:
    """A time so long ago, and some seconds more: it is told in the same words for a while."""
    return (datetime.now(UTC) - timedelta(**units) - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def row_of(talk: Talk, case: Case) -> list[Any]:
    """The cells of one object; the protocol has also what it was made into.

    Its name is "a"; that of the namespace where it lies in none, and then it is removed in the end.
    """
    path, content, status = case
    obj = _placed(content, talk.namespace)
    obj["metadata"] = {"name": "a" if "{ns}" in path else talk.namespace} | obj.get("metadata", {})
    item = f"{path}/{obj['metadata']['name']}"
    created = await talk("POST", path, obj)
    assert created.status == 201, created.body
    try:
        if status:
            change = {"status": _placed(status, talk.namespace)}
            answer = await talk("PATCH", f"{item}/status", change, content_type=MERGE_PATCH)
            assert answer.status == 200, answer.body
        answer = await talk("GET", f"{item}?includeObject=None", accept=TABLE)
    finally:
        if "{ns}" not in path:
            await talk("DELETE", item, kept=False)
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
