from __future__ import annotations

import json

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.testing.api import CONFIGMAPS, MERGE, NOT_OLDER, Api, told


@pytest.mark.conformance("FK-03", "FK-04")
async def test_a_watch_from_a_version_tells_every_change_after_it_in_order(api: Api) -> None:
    first = await api.create("a")
    await api("PATCH", f"{CONFIGMAPS}/a", {"data": {"x": "y"}}, content_type=MERGE)
    await api("DELETE", f"{CONFIGMAPS}/a")
    events = await api.events(f"resourceVersion={first['metadata']['resourceVersion']}")
    assert told(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    start = int(first["metadata"]["resourceVersion"])
    assert versions == [start + 1, start + 2]


@pytest.mark.parametrize("query", ["", "resourceVersion=0"])
async def test_a_watch_without_a_version_begins_with_what_there_is(api: Api, query: str) -> None:
    await api.create("a")
    await api.create("b")
    assert told(await api.events(query)) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_an_object_that_leaves_the_selector_is_deleted_to_that_watch(api: Api) -> None:
    first = await api.create("a", labels={"on": "1"})
    _, off = await api("PATCH", f"{CONFIGMAPS}/a", {"metadata": {"labels": {"on": "0"}}}, content_type=MERGE)
    await api("PATCH", f"{CONFIGMAPS}/a", {"metadata": {"labels": {"on": "1"}}}, content_type=MERGE)
    version = first["metadata"]["resourceVersion"]
    events = await api.events(f"resourceVersion={version}&labelSelector=on%3D1")
    assert told(events) == [("DELETED", "a"), ("ADDED", "a")]
    gone = events[0]["object"]["metadata"]
    assert (gone["labels"], gone["resourceVersion"]) == ({"on": "1"}, off["metadata"]["resourceVersion"])


async def test_a_watch_is_of_its_namespace_only(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    server.create("configmaps", {"metadata": {"name": "other", "namespace": "kube-system"}})
    await api.create("mine")
    assert told(await api.events(f"resourceVersion={version}")) == [("ADDED", "mine")]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_a_streaming_list_ends_with_a_marked_bookmark(api: Api, server: ApiServer) -> None:
    await api.create("a")
    events = await api.events(f"sendInitialEvents=true&allowWatchBookmarks=true&{NOT_OLDER}")
    assert told(events) == [("ADDED", "a"), ("BOOKMARK", "")]
    assert events[1]["object"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "resourceVersion": server.resource_version,
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("sendInitialEvents=true", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (f"resourceVersion=1&{NOT_OLDER}", "is forbidden for watch unless sendInitialEvents is provided"),
        ("continue=x", "resourceVersionMatch is forbidden when continue is provided"),
    ],
)
async def test_watch_parameters_that_contradict_each_other_are_refused(api: Api, query: str, message: str) -> None:
    status, body = await api("GET", f"{CONFIGMAPS}?watch=true&{query}")
    assert (status, body["reason"]) == (422, "Invalid")
    assert message in body["message"]


@pytest.mark.conformance("FK-07", "WEAK-29")
async def test_a_version_before_the_compaction_is_expired_as_an_event(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    await api.create("a")
    floor = server.compact()
    events = await api.events(f"resourceVersion={version}")
    assert [event["type"] for event in events] == ["ERROR"]
    assert events[0]["object"]["code"] == 410
    assert events[0]["object"]["message"] == f"too old resource version: {version} ({floor})"


async def test_a_watch_from_the_version_of_the_compaction_goes_on(api: Api, server: ApiServer) -> None:
    version = server.compact()
    await api.create("a")
    assert told(await api.events(f"resourceVersion={version}")) == [("ADDED", "a")]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_bookmarks_come_at_their_interval_with_the_version_of_the_server() -> None:
    async with ApiServer(bookmark_interval=0.02) as server:
        version = server.resource_version

        async with aiohttp.ClientSession(server.url) as session:
            query = f"watch=true&allowWatchBookmarks=true&resourceVersion={version}"
            async with session.get(f"{CONFIGMAPS}?{query}") as response:
                server.create("secrets", {"metadata": {"name": "elsewhere"}})
                event = json.loads(await response.content.readline())
                while event["object"]["metadata"]["resourceVersion"] == version:
                    event = json.loads(await response.content.readline())
    assert event["type"] == "BOOKMARK"
    assert int(event["object"]["metadata"]["resourceVersion"]) == int(version) + 1


async def test_metadata_watches_carry_metadata(api: Api) -> None:
    await api.create("a")
    events = await api.events(
        "allowWatchBookmarks=true", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    )
    assert [event["object"]["kind"] for event in events] == ["PartialObjectMetadata"] * 2


async def test_stopping_the_server_ends_watches_cleanly(api: Api, server: ApiServer) -> None:
    async with api.session.get(f"{CONFIGMAPS}?watch=true") as response:
        await server.stop()
        assert await response.content.read() == b""


async def test_a_watch_that_has_left_the_history_ends_and_is_expired_when_it_comes_back() -> None:

    async with ApiServer(history=3) as server, aiohttp.ClientSession(server.url) as session:
        version = server.resource_version
        for index in range(5):
            server.create("configmaps", {"metadata": {"name": f"c{index}"}})
        events = await Api(session).events(f"resourceVersion={version}")
    assert events[0]["object"]["reason"] == "Expired"
