"""Lists and watches of custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.conversation import JSON, PARTIAL, PARTIAL_LIST, TABLE, YAML
from tests.contract.tables import variants
from tests.contract.test_custom_resources import clean as clean
from tests.contract.test_custom_resources import define, path, version, widget

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

STREAMING = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
FORMS = {
    "any": "*/*",
    "yaml": YAML,
    "text": "text/plain",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "protobuf-or-json": "application/vnd.kubernetes.protobuf,application/json",
    "stream": "application/json;stream=watch",
    "table": TABLE,
    "table-v2": TABLE.replace("v=v1", "v=v2"),
    "metadata": PARTIAL,
    "metadata-list": PARTIAL_LIST,
    "metadata-list-beta": PARTIAL_LIST.replace("v=v1", "v=v1beta1"),
}
QUERIES = (
    "resourceVersion=abc",
    "resourceVersion=0&limit=1",
    "resourceVersion={v}&resourceVersionMatch=Exact",
    "resourceVersion={v}&limit=1",
    "resourceVersionMatch=Exact",
    "sendInitialEvents=true",
    "limit=1",
    "limit=abc",
    "continue=abc",
    "labelSelector=n%3D1",
    "labelSelector=a%20b",
    "fieldSelector=metadata.name%3Db",
    "fieldSelector=spec.x%3Db",
    "fieldSelector=metadata.name",
)


@variants("accept", FORMS)
async def test_accept_header_selects_the_representation(api: Conversation, accept: str) -> None:
    await create_two(api)
    for each in (path(api), path(api, "a"), path(api, "missing")):
        answer = await api("GET", each, accept=accept)
        assert answer.status in (200, 404, 406, 500)


@variants("accept", FORMS)
async def test_watch_accept_header_selects_the_representation(api: Conversation, accept: str) -> None:
    await create_two(api)
    answer = await api.watch(f"{path(api)}?{STREAMING}", accept=accept, events=3)
    assert answer.status in (200, 406)


async def test_list_is_sorted_with_complete_items(api: Conversation) -> None:
    await create_two(api)
    answer = await api("GET", f"{path(api)}?limit=1", as_text=True)
    assert answer.body.startswith('{"apiVersion":')


@pytest.mark.parametrize("accept", [JSON, YAML, TABLE, PARTIAL_LIST], ids=["json", "yaml", "table", "metadata"])
async def test_empty_list(api: Conversation, accept: str) -> None:
    await define(api)
    answer = await api("GET", path(api), accept=accept)
    assert answer.status == 200


async def test_list_parameters(api: Conversation) -> None:
    await create_two(api)
    for query in QUERIES:
        answer = await api("GET", f"{path(api)}?{query}")
        assert answer.status in (200, 400, 422)


async def test_watch_delivers_add_and_delete(api: Conversation) -> None:
    await create_two(api)
    await api("DELETE", path(api, "a"), recorded=False)
    answer = await api.watch(f"{path(api)}?watch=true&resourceVersion={{v}}", events=2)
    assert [event["type"] for event in answer.body] == ["ADDED", "DELETED"]


async def create_two(api: Conversation) -> None:
    """Create two widgets, and set {v} to the version of the first."""
    await define(api, version())
    for number, name in enumerate("ab", 1):
        metadata = {"name": name, "labels": {"n": str(number)}}
        made = await api.create(path(api), widget(api, metadata=metadata, spec={"x": number}))
        api.variables.setdefault("v", made["metadata"]["resourceVersion"])
