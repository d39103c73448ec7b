"""Tables as responses: writes, pages, watches, errors, Accept headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.contract.conversation import JSON, MERGE_PATCH, TABLE
from tests.real.contract.paths import CONFIGMAPS, PODS
from tests.real.contract.tables import variants

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation

BETA = TABLE.replace("v=v1", "v=v1beta1")
A = {"metadata": {"name": "a"}, "data": {"k": "v"}}
KUBECTL = f"{TABLE},{BETA},{JSON}"


@pytest.mark.parametrize("include", ["None", "Metadata", "Object", "Other"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_write_responses_as_tables(api: Conversation, accept: str, include: str) -> None:
    asked = f"includeObject={include}"
    await api("POST", f"{CONFIGMAPS}?{asked}", A, accept=accept)
    await api("PUT", f"{CONFIGMAPS}/a?{asked}", A | {"data": {"k": "w"}}, accept=accept)
    await api("PATCH", f"{CONFIGMAPS}/a?{asked}", {"data": {"l": "v"}}, content_type=MERGE_PATCH, accept=accept)
    answer = await api("DELETE", f"{CONFIGMAPS}/a?{asked}", accept=accept)
    assert answer.status in (200, 400, 404)


async def test_deleted_pod_as_a_table(api: Conversation) -> None:
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    answer = await api("DELETE", f"{PODS}/a", accept=TABLE)
    assert answer.body["kind"] == "Table"


async def test_deletecollection_response_as_a_table(api: Conversation) -> None:
    for name in "ab":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    answer = await api("DELETE", CONFIGMAPS, accept=TABLE)
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
async def test_errors_are_never_tables(api: Conversation, asked: tuple[str, str, object]) -> None:
    await api.create(CONFIGMAPS, A)
    answer = await api(*asked, accept=TABLE)
    assert answer.status >= 400


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_pages_as_tables(api: Conversation, accept: str, include: str) -> None:
    for name in "abc":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    page = await api("GET", f"{CONFIGMAPS}?limit=2&includeObject={include}", accept=accept)
    api.variables["token"] = page.metadata["continue"]
    answer = await api("GET", f"{CONFIGMAPS}?limit=2&continue={{token}}&includeObject={include}", accept=accept)
    assert len(answer.body["rows"]) == 1


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("accept", [TABLE, BETA], ids=["v1", "v1beta1"])
async def test_watch_events_as_tables(api: Conversation, accept: str, include: str) -> None:
    for name in "ab":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    async with api.open_watch(f"{CONFIGMAPS}?watch=true&includeObject={include}", accept=accept) as watch:
        await watch.read(2)
        await api("DELETE", f"{CONFIGMAPS}/a", recorded=False)
        await watch.read()
    assert watch.events[-1]["type"] == "DELETED"


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("path", [CONFIGMAPS, PODS], ids=["configmaps", "pods"])
async def test_initial_events_bookmark_as_a_table(api: Conversation, path: str, include: str) -> None:
    asked = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    answer = await api.watch(f"{path}?{asked}&includeObject={include}", events=1, accept=TABLE)
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
async def test_accept_header_decides_on_a_table(api: Conversation, path: str, accept: str) -> None:
    await api.create(CONFIGMAPS, A)
    if "watch" in path:
        answer = await api.watch(path, events=1, accept=accept)
    else:
        answer = await api("GET", path, accept=accept)
    assert answer.status in (200, 406)
