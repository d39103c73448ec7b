"""Lists and watches of custom resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.tables import variants
from tests.contract.talk import JSON, PARTIAL, PARTIAL_LIST, TABLE, YAML
from tests.contract.test_custom_resources import clean as clean
from tests.contract.test_custom_resources import defined, path, version, widget

if TYPE_CHECKING:
    from tests.contract.talk import Talk

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
async def test_accept_header_selects_the_representation(talk: Talk, accept: str) -> None:
    await two(talk)
    for each in (path(talk), path(talk, "a"), path(talk, "missing")):
        answer = await talk("GET", each, accept=accept)
        assert answer.status in (200, 404, 406, 500)


@variants("accept", FORMS)
async def test_watch_accept_header_selects_the_representation(talk: Talk, accept: str) -> None:
    await two(talk)
    answer = await talk.watched(f"{path(talk)}?{STREAMING}", accept=accept, events=3)
    assert answer.status in (200, 406)


async def test_list_is_sorted_with_complete_items(talk: Talk) -> None:
    await two(talk)
    answer = await talk("GET", f"{path(talk)}?limit=1", as_text=True)
    assert answer.body.startswith('{"apiVersion":')


@pytest.mark.parametrize("accept", [JSON, YAML, TABLE, PARTIAL_LIST], ids=["json", "yaml", "table", "metadata"])
async def test_empty_list(talk: Talk, accept: str) -> None:
    await defined(talk)
    answer = await talk("GET", path(talk), accept=accept)
    assert answer.status == 200


async def test_list_parameters(talk: Talk) -> None:
    await two(talk)
    for query in QUERIES:
        answer = await talk("GET", f"{path(talk)}?{query}")
        assert answer.status in (200, 400, 422)


async def test_watch_delivers_add_and_delete(talk: Talk) -> None:
    await two(talk)
    await talk("DELETE", path(talk, "a"), kept=False)
    answer = await talk.watched(f"{path(talk)}?watch=true&resourceVersion={{v}}", events=2)
    assert [event["type"] for event in answer.body] == ["ADDED", "DELETED"]


async def two(talk: Talk) -> None:
    """Two widgets. Sets {v}, the version at which there was one of them."""
    await defined(talk, version())
    for number, name in enumerate("ab", 1):
        metadata = {"name": name, "labels": {"n": str(number)}}
        made = await talk.made(path(talk), widget(talk, metadata=metadata, spec={"x": number}))
        talk.words.setdefault("v", made["metadata"]["resourceVersion"])
