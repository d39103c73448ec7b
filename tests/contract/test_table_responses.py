"""Tables as responses: writes, pages, watches, errors, Accept headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.paths import CONFIGMAPS, PODS
from tests.contract.tables import variants
from tests.contract.talk import JSON, MERGE_PATCH, TABLE

if TYPE_CHECKING:
    from tests.contract.talk import Talk

BETA = TABLE.replace("v=v1", "v=v1beta1")
A = {"metadata": {"name": "a"}, "data": {"k": "v"}}
KUBECTL = f"{TABLE},{BETA},{JSON}"


@pytest.mark.parametrize("include", ["None", "Metadata", "Object", "Other"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_write_responses_as_tables(talk: Talk, accept: str, include: str) -> None:
    asked = f"includeObject={include}"
    await talk("POST", f"{CONFIGMAPS}?{asked}", A, accept=accept)
    await talk("PUT", f"{CONFIGMAPS}/a?{asked}", A | {"data": {"k": "w"}}, accept=accept)
    await talk("PATCH", f"{CONFIGMAPS}/a?{asked}", {"data": {"l": "v"}}, content_type=MERGE_PATCH, accept=accept)
    answer = await talk("DELETE", f"{CONFIGMAPS}/a?{asked}", accept=accept)
    assert answer.status in (200, 400, 404)


async def test_deleted_pod_as_a_table(talk: Talk) -> None:
    await talk.made(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    answer = await talk("DELETE", f"{PODS}/a", accept=TABLE)
    assert answer.body["kind"] == "Table"


async def test_deletecollection_response_as_a_table(talk: Talk) -> None:
    for name in "ab":
        await talk.made(CONFIGMAPS, {"metadata": {"name": name}})
    answer = await talk("DELETE", CONFIGMAPS, accept=TABLE)
    assert len(answer.body["rows"]) == 2


@variants(
    "asked",
    {
        "missing": ("GET", f"{CONFIGMAPS}/missing", None),
        "conflict": ("POST", CONFIGMAPS, A),
        "invalid": ("POST", CONFIGMAPS, {"metadata": {"name": "A"}}),
        "bad-limit": ("GET", f"{CONFIGMAPS}?limit=x", None),
        "no-resource": ("GET", "/api/v1/nothings", None),
    },
)
async def test_errors_are_never_tables(talk: Talk, asked: tuple[str, str, object]) -> None:
    await talk.made(CONFIGMAPS, A)
    answer = await talk(*asked, accept=TABLE)
    assert answer.status >= 400


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_pages_as_tables(talk: Talk, accept: str, include: str) -> None:
    for name in "abc":
        await talk.made(CONFIGMAPS, {"metadata": {"name": name}})
    page = await talk("GET", f"{CONFIGMAPS}?limit=2&includeObject={include}", accept=accept)
    talk.words["token"] = page.metadata["continue"]
    answer = await talk("GET", f"{CONFIGMAPS}?limit=2&continue={{token}}&includeObject={include}", accept=accept)
    assert len(answer.body["rows"]) == 1


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_watch_events_as_tables(talk: Talk, accept: str, include: str) -> None:
    for name in "ab":
        await talk.made(CONFIGMAPS, {"metadata": {"name": name}})
    async with talk.watching(f"{CONFIGMAPS}?watch=true&includeObject={include}", accept=accept) as watch:
        await watch.read(2)
        await talk("DELETE", f"{CONFIGMAPS}/a", kept=False)
        await watch.read()
    assert watch.events[-1]["type"] == "DELETED"


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("path", [CONFIGMAPS, PODS], ids=["configmaps", "pods"])
async def test_initial_events_bookmark_as_a_table(talk: Talk, path: str, include: str) -> None:
    asked = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await talk.watched(f"{path}?{asked}&includeObject={include}", events=1, accept=TABLE)
    assert answer.body[0]["type"] == "BOOKMARK"


@variants(
    "accept",
    {
        "kubectl": KUBECTL,
        "json-first": f"{JSON},{TABLE}",
        "table-worse": f"{TABLE};q=0.5,{JSON}",
        "table-or-anything": f"{TABLE},*/*",
        "v2-then-v1": f"{TABLE.replace('v=v1', 'v=v2')},{TABLE}",
        "yaml-then-table": f"{TABLE.replace('json', 'yaml')},{TABLE}",
        "protobuf-table": TABLE.replace("json", "vnd.kubernetes.protobuf"),
        "protobuf-table-or-json": f"{TABLE.replace('json', 'vnd.kubernetes.protobuf')},{TABLE}",
        "spaces": TABLE.replace(";", " ; ").replace("=", " = "),
        "quoted": TABLE.replace("as=Table", 'as="Table"'),
        "pretty": f"{TABLE};pretty=1",
        "charset": f"{TABLE};charset=utf-8",
        "lower-case": TABLE.replace("as=Table", "as=table"),
        "as-twice": f"{TABLE};as=PartialObjectMetadata",
        "table-of-watch": f"{TABLE};stream=watch",
        "any-with-as": TABLE.replace("application/json", "*/*"),
        "list-of-metadata-then-table": f"{TABLE.replace('Table', 'PartialObjectMetadata')},{TABLE}",
    },
)
@pytest.mark.parametrize("path", [f"{CONFIGMAPS}/a", CONFIGMAPS, f"{CONFIGMAPS}?watch=1"], ids=["one", "list", "watch"])
async def test_accept_header_decides_on_a_table(talk: Talk, path: str, accept: str) -> None:
    await talk.made(CONFIGMAPS, A)
    if "watch" in path:
        answer = await talk.watched(path, events=1, accept=accept)
    else:
        answer = await talk("GET", path, accept=accept)
    assert answer.status in (200, 406)
